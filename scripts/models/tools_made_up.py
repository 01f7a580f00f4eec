"""Tools that are made up as training goes: any verb, any object, any parameters. They teach to read a signature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tool_kind import Parameter, ToolKind, Value, email_address, plain_ok, some_text, whole_number
from words import ANIMALS, COLOURS, DAYS, FOODS, MONTHS, THINGS, WORDS, city, invented, name, pick

VERBS = (
    "create add update set send get find check start stop open close register assign publish submit export store "
    "list count move copy mark archive approve cancel enable disable print scan sync upload share build plan wash "
    "repair collect sort watch measure test review choose mix fill empty pack rent sell hide lock connect"
).split()
OBJECTS = (
    "task ticket report invoice record user team project page label item device camera sensor job backup group list "
    "bike house garden phone book box room lamp engine game song video table cake message plan store shop course"
).split()


@dataclass(frozen=True)
class Role:
    """What an argument may be: names for it, its type, its values, and how a user puts it into a sentence."""

    names: str
    kind: str
    value: Callable[[Random, bool], Value]
    says: str


def _either(words: list[str]) -> Callable[[Random, bool], Value]:
    return lambda rng, _: invented(rng) if rng.random() < 0.4 else pick(rng, words, False)


def _code(rng: Random, _: bool) -> str:
    return f"{invented(rng)[:3].upper()}{rng.randint(1, 999)}"


ROLES = [
    Role("city place location town area", "string", city, "in {} | near {} | for the city {}"),
    Role("person user owner name who contact", "string", name, "for {} | with {} | of {}"),
    Role("day date when", "string", _either(DAYS), "on {} | for {} | this {}"),
    Role("month period", "string", _either(MONTHS), "in {} | for {}"),
    Role("time at hour", "string", lambda rng, _: f"{rng.randint(0, 23)}:{rng.randint(10, 59)}", "at {} | by {}"),
    Role("colour color", "string", _either(COLOURS), "in {} | in the colour {} | painted {}"),
    Role("animal pet", "string", _either(ANIMALS), "for the {} | with a {} | like a {}"),
    Role("food product", "string", _either(FOODS), "with {} | made of {} | and some {}"),
    Role("item thing part", "string", _either(THINGS), "with the {} | for the {} | next to the {}"),
    Role("title text topic note label subject", "string", some_text, "called {} | about {} | with the title {}"),
    Role("word key tag", "string", _either(WORDS), "named {} | tagged {} | with the word {}"),
    Role("id code number ref", "string", _code, "{} | with the code {} | number {}"),
    Role("email address mail", "string", email_address, "to {} | for {} | at {}"),
    Role("count amount quantity n", "integer", whole_number(1, 999), "{} times | with {} pieces | of {} pieces"),
    Role("minutes duration", "integer", whole_number(1, 120), "for {} minutes | in {} minutes | within {} minutes"),
    Role("size width length", "integer", whole_number(1, 400), "of size {} | {} cm long | with size {}"),
    Role("price cost budget", "number", whole_number(1, 900), "for {} euros | at a price of {} | with a budget of {}"),
    Role("level priority", "integer", whole_number(1, 9), "at level {} | with level {}"),
]
CHOICES = [
    ("mode", "fast slow safe"),
    ("kind", "small large medium"),
    ("state", "on off"),
    ("format", "pdf text html"),
    ("unit", "km mile"),
    ("priority", "low high normal"),
    ("side", "left right"),
]
BEGINNINGS = (
    "{V} {o} {s}. | {V} the {o} {s}. | Please {v} a {o} {s}. | I want to {v} a {o} {s}. | Can you {v} the {o} {s}? | "
    "{V} {o} {s} | I need you to {v} the {o} {s}. | {v} a {o} {s} | Let us {v} a {o} {s}. | The {o} {s}: {v} it. | "
    "Could you {v} the {o} {s}? | My {o} {s}: please {v} it. | You should {v} a {o} {s}."
).split(" | ")


def _tool_name(rng: Random, verb: str, thing: str) -> str:
    return rng.choice(
        [
            f"{verb}_{thing}",
            f"{verb}_{thing}",
            f"{thing}_{verb}",
            f"{verb}{thing.capitalize()}",
            f"{verb}-{thing}",
            verb,
            f"{thing}.{verb}",
        ]
    )


def made_up(rng: Random) -> ToolKind:
    """A new kind of tool with one to four parameters."""
    verb = invented(rng) if rng.random() < 0.15 else rng.choice(VERBS)
    thing = invented(rng) if rng.random() < 0.3 else rng.choice(OBJECTS)
    parameters: dict[str, Parameter] = {}
    said: list[str] = []
    for role in rng.sample(ROLES, rng.choice([1, 1, 2, 2, 3, 4])):
        names = [word for word in role.names.split() if word not in parameters]
        parameter = invented(rng) if rng.random() < 0.15 else rng.choice(names or [invented(rng)])
        options = role.says.split(" | ")
        # Where the name alone tells which value is meant, the user says it.
        named = parameter not in role.names.split() or rng.random() < 0.3
        slot = f"{{{parameter}}}"
        forms = [f"with {parameter} {slot}", f"{parameter} {slot}", f"and {parameter} {slot}", f"({parameter}: {slot})"]
        said.append(rng.choice(forms) if named else rng.choice(options).replace("{}", slot))
        parameters[parameter] = Parameter((parameter,), role.kind, role.value)
    if rng.random() < 0.25:
        parameter, values = rng.choice(CHOICES)
        if parameter not in parameters:
            options = tuple(invented(rng) for _ in range(3)) if rng.random() < 0.4 else tuple(values.split())
            parameters[parameter] = Parameter((parameter,), options, lambda rng, _: rng.choice(options))
            said.append(rng.choice([f"with {parameter} {{{parameter}}}", f"{parameter} {{{parameter}}}"]))
    rng.shuffle(said)
    asks = tuple(
        begin.format(V=verb.capitalize(), v=verb, o=thing, s=rng.choice([" ", " ", ", "]).join(said))
        for begin in rng.sample(BEGINNINGS, 3)
    )
    descriptions = (f"{verb.capitalize()} a {thing}", f"Used to {verb} the {thing}", f"{thing.capitalize()}: {verb}")
    return ToolKind((_tool_name(rng, verb, thing),), descriptions, parameters, asks, plain_ok, f"The {thing} is done.", True)
