"""A byte-fallback subword vocabulary in the SentencePiece form that llama.cpp calls `llama`.

Training is byte-pair encoding over words (digits and punctuation stand alone), so no token crosses a word's border.
The space before a word is a token of its own, so that a word to copy has the same tokens after a space, a quote or
a line break. Only words that hardly ever stand without a space before them are joined with it, after all other
merges. Encoding joins, again and again, the neighbouring pair whose joint token has the highest score, leftmost
first: the rule of llama.cpp's llm_tokenizer_spm.
"""

import argparse
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path

from conversations.words import DATA, HELD_WORDS, read_vocabulary, write_vocabulary

VOCABULARY = DATA / "chat-vocabulary.txt"
SPACE = "\u2581"
SPECIALS = [
    "<unk>",
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
]
UNK, END_OF_TEXT, IM_START, IM_END, THINK, THINK_END = range(6)
FIRST_BYTE = len(SPECIALS)
TOKEN_NORMAL, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER, TOKEN_BYTE = 1, 2, 3, 4, 6
# Each match is tokenised alone: a word with its space, a digit, a run of punctuation, a newline, spaces.
PIECES = re.compile(rf"{SPACE}?[^\W\d_]+|{SPACE}?[^\w{SPACE}\n]+|{SPACE}?_|\d|\n|{SPACE}|.", re.S)
SPECIAL_SPLIT = re.compile("(" + "|".join(re.escape(token) for token in SPECIALS[1:]) + ")")
ALPHABET = [chr(code) for code in range(33, 127)] + [SPACE, "\n"] + list("°éèàüöäßñç–…’“”×÷")
WORD = re.compile(rf"({SPACE}?)([^\W\d_]+)")
SIZE = 2048
"""Tokens before the held-out words are left out."""
RARE = 3
PUNCTUATION_RUN_MAX = 4
"""Characters in the longest learnt run of punctuation."""
JOINED = 220
"""Words that get a token with the space before them, at most."""
JOINED_BARE_MAX, JOINED_BEGINS_MAX = 0.03, 0.04
"""Against a word's uses after a space: its uses without one, and longer words that begin with it as a token."""


class Tokenizer:
    """Encodes and decodes; `tokens` and `scores` go into the GGUF as they are."""

    def __init__(self, learnt: list[str]) -> None:
        self.tokens = SPECIALS + [f"<0x{byte:02X}>" for byte in range(256)] + learnt
        first = FIRST_BYTE + 256
        self.scores = [0.0] * first + [-float(rank) for rank in range(len(learnt))]
        self.types = (
            [TOKEN_UNKNOWN] + [TOKEN_CONTROL] * 3 + [TOKEN_USER] * 6 + [TOKEN_BYTE] * 256 + [TOKEN_NORMAL] * len(learnt)
        )
        self.ids = {token: first + rank for rank, token in enumerate(learnt)}
        self.special_ids = {token: index for index, token in enumerate(SPECIALS)}
        self._encode_piece = lru_cache(maxsize=200_000)(self._join)

    @staticmethod
    def load() -> "Tokenizer":
        return Tokenizer(read_vocabulary(VOCABULARY))

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> list[int]:
        """Ids of a text in which special tokens are written out."""
        ids: list[int] = []
        for part in SPECIAL_SPLIT.split(text):
            if part in self.special_ids:
                ids.append(self.special_ids[part])
            elif part:
                for piece in PIECES.findall(part.replace(" ", SPACE)):
                    ids.extend(self._encode_piece(piece))
        return ids

    def decode(self, ids: list[int]) -> str:
        data = (
            bytes([index - FIRST_BYTE])
            if FIRST_BYTE <= index < FIRST_BYTE + 256
            else self.tokens[index].replace(SPACE, " ").encode()
            for index in ids
        )
        return b"".join(data).decode(errors="replace")

    def _join(self, piece: str) -> tuple[int, ...]:
        symbols = list(piece)
        while True:
            best = -1
            best_id = len(self.tokens)
            for index in range(len(symbols) - 1):
                joined = self.ids.get(symbols[index] + symbols[index + 1])
                # A lower id is a higher score.
                if joined is not None and joined < best_id:
                    best, best_id = index, joined
            if best < 0:
                break
            symbols[best : best + 2] = [symbols[best] + symbols[best + 1]]
        ids: list[int] = []
        for symbol in symbols:
            known = self.ids.get(symbol)
            ids.extend([known] if known is not None else [FIRST_BYTE + byte for byte in symbol.encode()])
        return tuple(ids)


def without(learnt: list[str], words: frozenset[str]) -> list[str]:
    """The vocabulary without these words (in small letters) and without the tokens that are reached through them."""
    kept = [token for token in learnt if token.lower() not in words]
    while True:
        tokenizer = Tokenizer(kept)
        reached = [token for token in kept if tokenizer.encode(token.replace(SPACE, " ")) == [tokenizer.ids[token]]]
        if len(reached) == len(kept):
            return kept
        kept = reached


def train(text: str) -> list[str]:
    """Learns merges until the whole vocabulary has SIZE tokens, and leaves out the held-out words then: as a token such
    a word would be one whose letters and uses nothing teaches; in pieces it is as any new word. Gives the learnt part,
    best score first.
    """
    parts = [part.replace(" ", SPACE) for part in SPECIAL_SPLIT.split(text) if part not in SPECIALS]
    counts = Counter(piece for part in parts for piece in PIECES.findall(part))
    bare: Counter[str] = Counter()
    for piece, number in counts.items():
        bare[piece.removeprefix(SPACE) if WORD.fullmatch(piece) else piece] += number
    kept = {
        piece: number
        for piece, number in bare.items()
        # Invented words occur once each: they teach nothing and would take most of the time.
        if number >= RARE and len(piece) > 1 and (piece.isalpha() or len(piece) <= PUNCTUATION_RUN_MAX)
    }
    merged = learn_merges(kept, SIZE - FIRST_BYTE - 256 - len(ALPHABET) - JOINED)
    # Single characters come last: they are never the result of a merge.
    characters = [character for character in ALPHABET if character not in merged]
    merged = [token for token in without(merged + characters, HELD_WORDS) if token not in characters]
    return merged + joined_words(counts, Tokenizer(merged + characters)) + characters


def joined_words(counts: Counter[str], tokenizer: Tokenizer) -> list[str]:
    """The commonest words that are one token, need hardly ever be copied to where no space is, and begin no other; with
    the space before them."""
    led = {piece[1:]: number for piece, number in counts.items() if piece[0] == SPACE and WORD.fullmatch(piece)}
    begun: Counter[str] = Counter()
    for word, number in led.items():
        ids = tokenizer.encode(word)
        if len(ids) > 1:
            begun[tokenizer.tokens[ids[0]]] += number
    fitting = [
        (number, word)
        for word, number in led.items()
        if word in tokenizer.ids
        and counts[word] <= JOINED_BARE_MAX * number
        and begun[word] <= JOINED_BEGINS_MAX * number
    ]
    return [SPACE + word for _, word in sorted(fitting, reverse=True)[:JOINED]]


def learn_merges(counts: dict[str, int], most: int) -> list[str]:
    """Byte-pair encoding of counted words: the tokens that it makes, the commonest pair first."""
    words = {tuple(word): number for word, number in counts.items()}
    merged: list[str] = []
    while len(merged) < most:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, number in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += number
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merged.append("".join(best))
        words = {_merged(word, best): number for word, number in words.items()}
    return list(dict.fromkeys(merged))


def _merged(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    if pair[0] not in word:
        return word
    result: list[str] = []
    for symbol in word:
        if result and (result[-1], symbol) == pair:
            result[-1] += symbol
        else:
            result.append(symbol)
    return tuple(result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path, help="what conversations.mixture prints")
    parser.add_argument("--out", type=Path, default=VOCABULARY)
    options = parser.parse_args()
    text = options.corpus.read_text()
    learnt = train(text)
    write_vocabulary(options.out, learnt)
    tokenizer = Tokenizer(learnt)
    print(f"{len(tokenizer)} tokens, {len(text) / len(tokenizer.encode(text)):.2f} characters a token")


if __name__ == "__main__":
    main()
