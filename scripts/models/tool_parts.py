"""Parts that the kinds of tools for training alone are put together from."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tool_kind import Parameter, ToolKind, Value, one_of, plain_ok, some_text, whole_number
from words import ANIMALS, COLOURS, COUNTRIES, FOODS, LANGUAGES, THINGS, WORDS, invented

ROOMS = ["kitchen", "bedroom", "bathroom", "hall", "office", "garage", "cellar", "garden"]


def code(rng: Random, _: bool) -> str:
    return f"{invented(rng)[:3].upper()}{rng.choice(['', '-'])}{rng.randint(10, 9999)}"


def path(rng: Random, _: bool) -> str:
    return f"{invented(rng)}{rng.choice(['', '/' + invented(rng)])}.{rng.choice(['txt', 'md', 'json', 'csv', 'pdf'])}"


def web_address(rng: Random, _: bool) -> str:
    return f"https://{invented(rng)}.{rng.choice(['com', 'org', 'net', 'io'])}/{invented(rng)}"


def text(names: str, value: Callable[[Random, bool], Value]) -> Parameter:
    return Parameter(tuple(names.split()), "string", value)


def integer(names: str, low: int, high: int) -> Parameter:
    return Parameter(tuple(names.split()), "integer", whole_number(low, high))


def options(names: str, values: str) -> Parameter:
    allowed = tuple(values.split())
    return Parameter(tuple(names.split()), allowed, lambda rng, _: rng.choice(allowed))


def kind(
    names: str,
    descriptions: str,
    parameters: dict[str, Parameter],
    asks: str,
    answer: str = "Done.",
    result: Callable[[Random], dict[str, Any]] = plain_ok,
) -> ToolKind:
    parted = tuple(ask.strip() for ask in asks.split("|"))
    return ToolKind(tuple(names.split()), tuple(descriptions.split(" | ")), parameters, parted, result, answer, True)


COLOUR = text("colour color shade tint", one_of(COLOURS))
ANIMAL = text("animal species creature beast", one_of(ANIMALS))
FOOD = text("food dish ingredient meal", one_of(FOODS))
COUNTRY = text("country state land nation", one_of(COUNTRIES))
OBJECT = text("item thing object name", one_of(THINGS))
ROOM = text("room where place", lambda rng, _: rng.choice(ROOMS))
LANGUAGE = text("language lang to", one_of(LANGUAGES))
WORD = text("word term text", one_of(WORDS))
PATH = text("path file filename target", path)
TEXT = text("text content body message", some_text)
COUNT = integer("count number n amount quantity", 1, 60)
