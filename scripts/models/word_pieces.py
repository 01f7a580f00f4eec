"""Words of random tokens. Drills with them teach the letters of every token, and its forms with and without a space
before it, also of tokens that the word lists hold seldom or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from words import HELD_WORDS

PIECES = [
    letters
    for token in json.loads((Path(__file__).parent / "tokenizer.json").read_text())["learnt"]
    if (letters := token.removeprefix("\u2581")).isalpha() and letters.isascii()
]
LONGEST = 16


def pieces(rng: Random, most: int = 3) -> str:
    """A word of up to `most` random tokens, never one that is held out."""
    while True:
        word = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, most)))[:LONGEST]
        if word.lower() not in HELD_WORDS:
            return word
