"""Kinds of tools, read from data/tools, and the values that their arguments take."""

import re
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from conversations.words import DATA, LISTS, WORDS, blocks, city, invented, is_held, name, pick, pieces, wordings

Value = str | int
Draw = Callable[[Random, bool], Value]
OTHER_VALUE_SHARE = 0.25
"""Share of values of a kind's own list that are random words instead."""


@dataclass(frozen=True)
class Parameter:
    """One argument: its possible names, its type (or allowed values) and what a user may say for it."""

    names: tuple[str, ...]
    kind: str | list[str]
    value: Draw


@dataclass(frozen=True)
class ToolKind:
    """A family of tools of one meaning. Slots in `asks` are keys of `parameters`; the answer may also use results."""

    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    parameters: dict[str, Parameter]
    asks: tuple[str, ...]
    answer: str
    result: str = "status ok"
    """Keys with the patterns of their values, parted by bars."""
    more: tuple[str, ...] = ()
    """Further wishes, for training alone."""
    training_only: bool = True
    """Whether none of `asks` is held out."""


def drawn(rng: Random, pattern: str) -> Value:
    """The pattern with each of its slots drawn: `{low..high}`, `{a, b}`, `{invented}` or a list of data/words.txt. A
    number alone stays a number."""

    def one(slot: re.Match[str]) -> str:
        if ".." in slot[1]:
            return str(rng.randint(*map(int, slot[1].split(".."))))
        if slot[1] in ("invented", "Invented"):
            word = invented(rng)
            return word.capitalize() if slot[1][0] == "I" else word
        return rng.choice(LISTS.get(slot[1]) or slot[1].split(", "))

    text = re.sub(r"\{(.+?)\}", one, pattern)
    return int(text) if re.fullmatch(r"\{-?\d+\.\.-?\d+\}", pattern) else text


def _like(pattern: str) -> Draw:
    return lambda rng, _: drawn(rng, pattern)


def _some_of(words: list[str]) -> Draw:
    """One of the words of the wanted side; or a word that nobody knows."""

    def value(rng: Random, held: bool) -> str:
        if not held and rng.random() < 0.3:
            return pieces(rng, 2).capitalize() if rng.random() < 0.4 else pieces(rng, 2)
        return invented(rng) if rng.random() < 0.4 else pick(rng, words, held)

    return value


def _own_list(values: list[str]) -> Draw:
    """One of the values that have no held-out word; or a word that is none of them."""
    known = [value for value in values if not any(is_held(word) for word in value.split())] or values

    def value(rng: Random, _: bool) -> str:
        if rng.random() >= OTHER_VALUE_SHARE:
            return rng.choice(known)
        return invented(rng) if rng.random() < 0.5 else pieces(rng, 2)

    return value


def some_text(rng: Random, held: bool) -> str:
    words = [pick(rng, WORDS, held) for _ in range(rng.randint(1, 3 if held else 4))]
    if not held and rng.random() < 0.35:
        words = [pieces(rng, 2) for _ in words]
    return " ".join(words) if rng.random() < (0.4 if held else 0.65) else f"{invented(rng)} {words[0]}"


VALUES: dict[str, Draw] = {
    "name": name,
    "city": city,
    "text": some_text,
    "email": lambda rng, held: f"{name(rng, held).lower()}@{invented(rng)}.{rng.choice(LISTS['domains'])}",
    "code": lambda rng, _: f"{invented(rng)[:3].upper()}{rng.choice(['', '-'])}{rng.randint(10, 9999)}",
    "file": lambda rng, _: invented(rng) + rng.choice(["", f"/{invented(rng)}"]) + drawn(rng, ".{file endings}"),
    "symbol": lambda rng, _: invented(rng).upper() if rng.random() < 0.5 else invented(rng).capitalize(),
}
"""What a parameter of a type of this name may be; names in TYPES stand for one of the forms below."""
TYPES: dict[str, str] = wordings("types")


def parameter(names: Iterable[str], kind: str) -> Parameter:
    """A parameter of a type: a name of VALUES or TYPES, `number LOW-HIGH`, `decimal LOW-HIGH`, `option a, b`, `one of
    a, b`, `some of` lists of data/words.txt, or `like PATTERN`. Raises KeyError for an unknown type."""
    form, _, rest = TYPES.get(kind, kind).partition(" ")
    values = rest.removeprefix("of ").split(", ")
    match form:
        case "number" | "decimal":
            draw = _like(f"{{{rest.replace('-', '..')}}}")
        case "option":
            draw = lambda rng, _: rng.choice(values)  # noqa: E731
        case "one":
            draw = _own_list(values)
        case "some":
            draw = _some_of([word for each in values for word in LISTS[each]])
        case "like":
            draw = _like(rest)
        case _:
            draw = VALUES[kind]
    types = {"number": "integer", "decimal": "number", "option": values}
    return Parameter(tuple(names), types.get(form, "string"), draw)


def _kind(lines: list[str], training_only: bool) -> ToolKind:
    """One block: `tools:`, `does:`, a line `slot (names): type` for each parameter, wishes after dashes, further ones
    for training alone after a plus, `result:` and `answer:`. Raises ValueError for a line that is none of these and for
    a wish whose slots are not the parameters."""
    said = {"answer": "Done.", "result": ToolKind.result}
    parameters: dict[str, Parameter] = {}
    wishes: dict[str, list[str]] = {"-": [], "+": []}
    for line in lines:
        key, _, rest = line.partition(": ")
        if key in ("tools", "does", "answer", "result"):
            said[key] = rest
        elif line[:2] in ("- ", "+ "):
            wishes[line[0]].append(line[2:].strip())
        elif match := re.fullmatch(r"(\w+) \(([\w ]+)\): (.+)", line):
            parameters[match[1]] = parameter(match[2].split(), match[3].strip())
        else:
            raise ValueError(f"not a line of a tool: {line}")
    asks, more = tuple(wishes["-"]), tuple(wishes["+"])
    for wish in asks + more:
        if set(re.findall(r"\{(\w*)\}", wish)) != set(parameters):
            raise ValueError(f"each slot must stand in the wish, and nothing else: {wish}")
    names, descriptions = tuple(said["tools"].split()), tuple(said["does"].split(" | "))
    return ToolKind(names, descriptions, parameters, asks, said["answer"], said["result"], more, training_only)


def read_kinds(path: Path | zipfile.Path, training_only: bool = True) -> list[ToolKind]:
    """The kinds of a file, in their order: neighbors share words, and are distinguished by careful reading."""
    return [_kind(lines, training_only) for lines in blocks(path)]


TOOLS = DATA / "tools"
ASKED_KINDS = read_kinds(TOOLS / "asked.txt", training_only=False)
"""Kinds whose last wording is held out: the evaluation asks for them in that wording."""
HELD_KINDS = read_kinds(TOOLS / "held-out.txt", training_only=False)
"""Kinds that training never sees."""
TRAINING_DOMAINS = [read_kinds(path) for path in sorted((TOOLS / "training").iterdir(), key=str)]
