"""A WordPiece vocabulary in llama.cpp's form: lower case, words begin with U+2581, continuations are bare."""

import re
import unicodedata
from functools import lru_cache

from conversations.words import DATA, read_vocabulary

PHANTOM = "\u2581"
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
PAD, UNK, CLS, SEP = range(4)
ENDINGS = "ations ation ings ing ments ment ers er ies ied ed es s ly".split()


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


class WordPiece:
    def __init__(self) -> None:
        self.tokens = read_vocabulary(DATA / "embedding-vocabulary.txt")
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.longest = max(map(len, self.tokens))
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
