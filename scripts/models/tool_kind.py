"""What a kind of tool is, and the values that its arguments take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Any

from word_pieces import pieces
from words import (
    DAYS,
    THINGS,
    WORDS,
    city,
    invented,
    name,
    pick,
)

Value = str | int
CURRENCIES = ["EUR", "USD", "GBP", "JPY", "CHF", "SEK"]
SKIES = ["sunny", "cloudy", "rainy", "windy", "foggy", "clear"]


@dataclass(frozen=True)
class Parameter:
    """One argument: its possible names, its type (or allowed values) and what a user may say for it."""

    names: tuple[str, ...]
    kind: str | tuple[str, ...]
    value: Callable[[Random, bool], Value]


@dataclass(frozen=True)
class ToolKind:
    """A family of tools of one meaning. Slots in `asks` are keys of `parameters`; the answer may also use results."""

    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    parameters: dict[str, Parameter]
    asks: tuple[str, ...]
    result: Callable[[Random], dict[str, Any]]
    answer: str
    training_only: bool = False
    """Whether no wording of it is held out."""


def check_slots(wish: str, slots: Iterable[str]) -> None:
    """Raises ValueError for a wish that does not hold each slot once."""
    if sorted(re.findall(r"\{(\w*)\}", wish)) != sorted(slots):
        raise ValueError(f"each slot must stand once in the wish: {wish}")


def some_text(rng: Random, held: bool) -> str:
    words = [pick(rng, WORDS, held) for _ in range(rng.randint(1, 3 if held else 4))]
    if not held and rng.random() < 0.35:
        words = [pieces(rng, 2) for _ in words]
    return " ".join(words) if rng.random() < (0.4 if held else 0.65) else f"{invented(rng)} {words[0]}"


def whole_number(low: int, high: int) -> Callable[[Random, bool], int]:
    return lambda rng, _: rng.randint(low, high)


def clock_time(rng: Random, _: bool) -> str:
    return f"{rng.randint(0, 23)}:{rng.choice(['00', '15', '30', '45'])}"


def one_of(words: list[str]) -> Callable[[Random, bool], str]:
    def value(rng: Random, held: bool) -> str:
        if not held and rng.random() < 0.3:
            return pieces(rng, 2).capitalize() if rng.random() < 0.4 else pieces(rng, 2)
        return invented(rng) if rng.random() < 0.4 else pick(rng, words, held)

    return value


def email_address(rng: Random, held: bool) -> str:
    return f"{name(rng, held).lower()}@{invented(rng)}.{rng.choice(['com', 'org', 'net'])}"


def some_sum(rng: Random, _: bool) -> str:
    return f"{rng.randint(2, 9999)} {rng.choice('+-*/')} {rng.randint(2, 999)}"


def number_result(key: str, low: int, high: int) -> Callable[[Random], dict[str, Any]]:
    return lambda rng: {key: rng.randint(low, high)}


def plain_ok(rng: Random) -> dict[str, Any]:
    return {"status": "ok"}


CITY = Parameter(("city", "location", "place", "town"), "string", city)
TOPIC = Parameter(("query", "q", "text", "term", "topic"), "string", some_text)
PERSON = Parameter(("name", "person", "to", "contact"), "string", name)
MESSAGE = Parameter(("message", "text", "body", "content"), "string", some_text)
TASK = Parameter(("title", "task", "text", "what"), "string", some_text)
DAY = Parameter(("day", "date", "when"), "string", one_of(DAYS))
TIME = Parameter(("time", "at", "when"), "string", clock_time)
THING = Parameter(("item", "product", "article", "thing"), "string", one_of(THINGS))
