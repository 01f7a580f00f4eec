"""Words and wordings that the generators draw from, each parted into those for training and those held out."""

import json
import re
import zipfile
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")
_FOLDER = Path(__file__).parent.parent / "data"
DATA: Path | zipfile.Path = _FOLDER if _FOLDER.exists() else zipfile.Path(_FOLDER.with_suffix(".zip"))
"""All text that the models are made from; an unpacked folder goes before the archive."""
HELD_SHARE = 8
"""One word in so many is held out."""
PIECE_LONGEST = 16


def blocks(path: Path | zipfile.Path) -> list[list[str]]:
    """The lines of each block of a file; blank lines part the blocks, and lines that begin with # say nothing."""
    kept = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    return [block.splitlines() for block in re.split(r"\n\s*\n", "\n".join(kept).strip())]


@cache
def source(name: str) -> Any:
    """Content of a JSON file of the data."""
    return json.loads((DATA / f"{name}.json").read_text("utf-8"))


def wordings(group: str) -> Any:
    """The ways to say things of one group of data/wordings.json, by what is said."""
    return source("wordings")[group]


def read_vocabulary(path: Path | zipfile.Path) -> list[str]:
    """The tokens of a vocabulary's file, in their order."""
    return ["\n" if token == "\\n" else token for token in path.read_text("utf-8").split()]


def is_held(entity: str) -> bool:
    """Whether a word is kept from training: always the same, whatever list it stands in."""
    return zlib.crc32(entity.lower().encode()) % HELD_SHARE == 0


LISTS = {head.rstrip(":"): " ".join(lines).split() for head, *lines in blocks(DATA / "words.txt")}
NAMES, CITIES, COLOURS, ANIMALS, FOODS, THINGS, QUALITIES, DAYS, MONTHS = (
    LISTS[key] for key in "names cities colours animals foods things qualities days months".split()
)
WORDS = LISTS["words"] = sorted({*ANIMALS, *FOODS, *THINGS, *LISTS["nature"], *QUALITIES, *LISTS["verbs"], *COLOURS})
HELD_WORDS = frozenset(word.lower() for word in (*WORDS, *NAMES, *CITIES) if is_held(word))
NUMBER_WORDS = LISTS["number words"]
ENDINGS = ["", "", "", "n", "r", "s", "l", "th", "x", "m", "ck", "rd", "nt"]
PIECES = [
    letters
    for token in read_vocabulary(DATA / "chat-vocabulary.txt")
    if (letters := token.removeprefix("\u2581")).isalpha() and letters.isascii()
]


def pick(rng: Random, entities: Sequence[str], held: bool) -> str:
    """A random word of the wanted side."""
    side = [entity for entity in entities if is_held(entity) == held]
    return rng.choice(side or list(entities))


def random_words(rng: Random, held: bool, kinds: str) -> dict[str, str]:
    """A random word of each kind ("city"; "city2" is another), and the same with their articles ("a_city")."""
    words = {}
    for kind in kinds.split():
        one = kind.rstrip("2")
        words[kind] = pick(rng, next(LISTS[key] for key in (one, f"{one}s", f"{one[:-1]}ies") if key in LISTS), held)
    return words | {f"a_{kind}": article(word) for kind, word in words.items()}


def templates(options: Sequence[T], held: bool) -> Sequence[T]:
    """The wordings of one side: the last of three or more is held out."""
    if len(options) < 3:
        return options
    return options[-1:] if held else options[:-1]


def choose(rng: Random, options: Sequence[T], held: bool) -> T:
    """A random wording of the wanted side."""
    return rng.choice(templates(options, held))


def invented(rng: Random) -> str:
    """A word that nobody knows, so that a model must copy it rather than guess."""
    return "".join(rng.choice(LISTS["syllables"]) for _ in range(rng.randint(2, 3))) + rng.choice(ENDINGS)


def pieces(rng: Random, most: int = 3) -> str:
    """A word of up to `most` random tokens, never one that is held out. Drills with such words teach the letters of
    every token, and its forms with and without a space before it."""
    while True:
        word = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, most)))[:PIECE_LONGEST]
        if word.lower() not in HELD_WORDS:
            return word


def name(rng: Random, held: bool) -> str:
    return invented(rng).capitalize() if rng.random() < 0.5 else pick(rng, NAMES, held)


def city(rng: Random, held: bool) -> str:
    return invented(rng).capitalize() if rng.random() < 0.6 else pick(rng, CITIES, held)


def listed(items: Sequence[str]) -> str:
    """'a, b and c'"""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def plain_words(text: str) -> str:
    """A text without what hardly matters, to find out whether two say the same in the same words: in lower case,
    without punctuation and articles, with a space at both ends (' how do i load model ')."""
    bare = (word.strip(".,:;?!\"'`()") for word in text.lower().split())
    return f" {' '.join(word for word in bare if word and word not in {'a', 'an', 'the'})} "
