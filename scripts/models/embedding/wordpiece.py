"""A WordPiece vocabulary in llama.cpp's form: lower case, words begin with U+2581, continuations are bare."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from conversations.words import DATA

PHANTOM = "\u2581"
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
PAD, UNK, CLS, SEP = range(4)
CHARACTERS = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
PIECE_LENGTHS = range(2, 6)
"""Characters in a learnt continuation."""
ENDINGS = "ations ation ings ing ments ment ers er ies ied ed es s ly".split()
VOCABULARY, SIZE = DATA / "embedding-vocabulary.txt", 6400


def words(text: str) -> list[str]:
    """Lower-case words and single punctuation marks, accents dropped, as llama.cpp parts them."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c))
    return re.findall(r"[^\W_]+|[^\w\s]|_", plain)


def stem(word: str) -> str:
    """A word without its ending, good enough to find its relatives."""
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] in "ey" else word


def train(texts: Iterable[str], whole_words: Iterable[str]) -> list[str]:
    """All given words, then the commonest words and word parts of the texts, SIZE tokens in all."""
    counts = Counter(word for text in texts for word in words(text))
    tokens = SPECIALS + [PHANTOM + c for c in CHARACTERS] + [c for c in CHARACTERS if c.isalnum()]
    tokens += [
        PHANTOM + word for word in dict.fromkeys(w for text in whole_words for w in words(text)) if len(word) > 1
    ]
    parts: Counter[str] = Counter()
    for word, count in counts.items():
        for length in PIECE_LENGTHS:
            for start in range(1, len(word) - length + 1):
                parts[word[start : start + length]] += min(count, 20)
    room = max(0, SIZE - len(tokens))
    tokens += [PHANTOM + word for word, count in counts.most_common(room) if count > 1 and len(word) > 1]
    tokens += [part for part, _ in parts.most_common(max(SIZE // 6, SIZE - len(tokens)))]
    return list(dict.fromkeys(tokens))[:SIZE]


class WordPiece:
    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.ids = {token: index for index, token in enumerate(tokens)}
        self.longest = max(map(len, tokens))
        self._pieces = lru_cache(maxsize=100_000)(self._split)

    def _split(self, word: str) -> tuple[int, ...]:
        text = PHANTOM + word
        result: list[int] = []
        start = 0
        while start < len(text):
            for end in range(min(len(text), start + self.longest), start, -1):
                found = self.ids.get(text[start:end])
                if found is not None:
                    result.append(found)
                    start = end
                    break
            else:
                return (UNK,)
        return tuple(result)

    def encode(self, text: str, limit: int) -> list[int]:
        ids = [piece for word in words(text) for piece in self._pieces(word)]
        return [CLS, *ids[: limit - 2], SEP]
