"""Kinds of tools of daily life for training alone, read from data/tools: a block of lines for each kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

from tool_kind import (
    CITY,
    DAY,
    MESSAGE,
    PERSON,
    TIME,
    Parameter,
    ToolKind,
    Value,
    check_slots,
    email_address,
    one_of,
    plain_ok,
    whole_number,
)
from tool_parts import ANIMAL, COLOUR, COUNTRY, FOOD, LANGUAGE, OBJECT, PATH, ROOM, WORD, code, web_address
from word_pieces import pieces
from words import MONTHS, invented, is_held

VALUES: dict[str, Callable[[Random, bool], Value]] = {
    "name": PERSON.value,
    "city": CITY.value,
    "country": COUNTRY.value,
    "day": DAY.value,
    "month": one_of(MONTHS),
    "time": TIME.value,
    "text": MESSAGE.value,
    "code": code,
    "email": email_address,
    "file": PATH.value,
    "url": web_address,
    "animal": ANIMAL.value,
    "food": FOOD.value,
    "thing": OBJECT.value,
    "colour": COLOUR.value,
    "language": LANGUAGE.value,
    "room": ROOM.value,
    "word": WORD.value,
}
"""What a parameter of a type of this name may be."""
OTHER_VALUE_SHARE = 0.25
"""Share of values of a list that are random words instead."""


def _parted(text: str, by: str) -> list[str]:
    return [part.strip() for part in text.split(by)]


def _listed(values: list[str]) -> Callable[[Random, bool], Value]:
    """One of some values, none of which has a held-out word; or a word that is none of them."""
    known = [value for value in values if not any(is_held(word) for word in value.split())] or values

    def value(rng: Random, _: bool) -> Value:
        if rng.random() >= OTHER_VALUE_SHARE:
            return rng.choice(known)
        return invented(rng) if rng.random() < 0.5 else pieces(rng, 2)

    return value


def _parameter(line: str) -> tuple[str, Parameter]:
    """`slot (names): type`, where the type is a name of VALUES, `one of a, b`, `option a, b` or `number LOW-HIGH`."""
    match = re.fullmatch(r"(\w+) \(([\w ]+)\): (.+)", line)
    if match is None:
        raise ValueError(f"no parameter of a tool: {line}")
    slot, names, kind = match[1], tuple(match[2].split()), match[3].strip()
    form, _, rest = kind.partition(" ")
    if form == "number":
        low, high = rest.split("-")
        return slot, Parameter(names, "integer", whole_number(int(low), int(high)))
    if form == "option":
        allowed = tuple(_parted(rest, ","))
        return slot, Parameter(names, allowed, lambda rng, _: rng.choice(allowed))
    if kind.startswith("one of "):
        return slot, Parameter(names, "string", _listed(_parted(kind.removeprefix("one of "), ",")))
    return slot, Parameter(names, "string", VALUES[kind])


def _kind(block: str) -> ToolKind:
    """One block: `tools:`, `does:`, a line for each parameter, wishes after dashes, and `answer:`.

    Raises ValueError for a line that is none of these and for a wish that does not hold each slot once, KeyError for
    an unknown type.
    """
    names: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    answer = "Done."
    parameters: dict[str, Parameter] = {}
    wishes: list[str] = []
    for line in block.splitlines():
        if line.startswith("tools: "):
            names = tuple(line.removeprefix("tools: ").split())
        elif line.startswith("does: "):
            descriptions = tuple(_parted(line.removeprefix("does: "), " | "))
        elif line.startswith("answer: "):
            answer = line.removeprefix("answer: ")
        elif line.startswith("- "):
            wishes.append(line.removeprefix("- ").strip())
        else:
            slot, parameter = _parameter(line)
            parameters[slot] = parameter
    for wish in wishes:
        check_slots(wish, parameters)
    return ToolKind(names, descriptions, parameters, tuple(wishes), plain_ok, answer, True)


def _file(path: Path) -> list[ToolKind]:
    blocks = re.split(r"\n\s*\n", path.read_text().strip())
    return [_kind(block) for block in blocks]


DAILY_DOMAINS: list[list[ToolKind]] = [
    _file(path) for path in sorted((Path(__file__).parent / "data" / "tools").glob("*.txt"))
]
"""Kinds by domain, in the order of their files: neighbours share words, and are told apart by careful reading."""
