"""More tools that are made up as training goes, whose wishes have shapes of their own: a need and what follows from it
("The lamp is old. Bring it a button."), and a number before its unit ("a 12 page letter for Emma")."""

from __future__ import annotations

from random import Random

from tool_kind import Parameter, ToolKind, plain_ok, whole_number
from tools_made_up import OBJECTS, ROLES, tool_name
from words import QUALITIES, article, invented

GIVING = "give bring show hand offer serve lend pass get buy cook send throw fetch grant deliver".split()
STATES = (
    "tired lonely bored ill thirsty late lost broken angry nervous ready alone noisy frozen quiet busy afraid rusty"
).split() + QUALITIES
NEEDS = (
    "The {x} is {a}. {V} it {y}. | The {x} is {a}. {V} it some {y}. | My {x} is {a}. Please {v} it {y}. | "
    "{x} is {a}, so {v} {y} to it. | The {x} looks {a}. {V} it the {y}. | There is a {a} {x}. {V} it {y}. | "
    "The {a} {x} wants {y}. {V} it. | {y} is what the {a} {x} needs. | Because the {x} is {a}, {v} it {y}. | "
    "The {x} was {a} all day. {V} the {x} {y}. | Is the {x} {a}? Then {v} it {y}. | If the {x} is {a}, {v} it {y}. | "
    "{V} the {a} {x} some {y}. | The {x} seems {a} to me, it should have {y}. | We have a {a} {x} here. {V} it {y}. | "
    "How {a} the {x} is! {V} it {y}. | {V} {y} to the {x}, it is {a}. | That {x} is too {a}. I would {v} it {y}."
).split(" | ")
UNITS = "day night week month hour minute page mile person room piece metre seat year step part".split()
MEASURED = (
    "I need a {n} {u} {o} {s}. | {V} a {n} {u} {o} {s}. | A {n} {u} {o} {s}, please. | {S}, {v} a {n} {u} {o}. | "
    "I want a {n} {u} {o} {s}. | Can you {v} a {n} {u} {o} {s}? | {n} {u} {o} {s} | A {o} of {n} {u}s {s} | "
    "Get me the {n} {u} {o} {s}. | My {o} {s} should have {n} {u}s. | We are looking for a {n} {u} {o} {s}. | "
    "Make it a {n} {u} {o} {s}. | There is a {o} {s}. {V} {n} {u}s of it. | How about a {n} {u} {o} {s}?"
).split(" | ")
PERSON, ANIMAL, FOOD, THING = ROLES[2], *ROLES[7:10]
NATURAL, ODD = [(PERSON, FOOD), (PERSON, THING), (ANIMAL, THING)], [(FOOD, PERSON), (THING, PERSON), (THING, ANIMAL)]
"""Who gets what. Food for animals is left out: a held-out tool is about it."""
NATURAL_SHARE = 0.95
"""The odd gifts can be told apart by the description alone."""
GETTING = "book reserve plan find make arrange order get prepare show rent write".split()


def made_up_shape(rng: Random) -> ToolKind:
    """A new kind of tool with two parameters."""
    return giving(rng) if rng.random() < 0.55 else _measured(rng)


def giving(rng: Random) -> ToolKind:
    """Something given to somebody or something, of whom the user also says how they are: that is no argument."""
    natural = rng.random() < NATURAL_SHARE
    receiver, gift = rng.choice(NATURAL if natural else ODD)
    one = rng.choice(receiver.names.split())
    other = rng.choice([word for word in gift.names.split() if word != one])
    verb, state = rng.choice(GIVING), invented(rng) if rng.random() < 0.15 else rng.choice(STATES)
    said = verb if rng.random() < 0.4 else rng.choice(GIVING)
    slots = {"V": said.capitalize(), "v": said, "x": f"{{{one}}}", "y": f"{{{other}}}", "a": state}
    return ToolKind(
        (rng.choice([f"{verb}_{other}", f"{verb}_{one}", verb, tool_name(rng, verb, other)]),),
        (
            f"{verb.capitalize()} some {other} to a {one}",
            f"{verb.capitalize()} a {one} some {other}",
            f"What {other} {article(one)} gets",
            f"Supplies {article(one)} with {article(other)}",
            f"Lets {article(one)} have some {other}",
        ),
        {one: Parameter((one,), receiver.kind, receiver.value), other: Parameter((other,), gift.kind, gift.value)},
        tuple(ask.format(**slots) for ask in rng.sample(NEEDS, 6)),
        plain_ok,
        f"The {{{one}}} has {{{other}}} now.",
        True,
    )


def _measured(rng: Random) -> ToolKind:
    """Something of so many units, for somebody, somewhere or some time."""
    role, unit = rng.choice(ROLES[:5] + ROLES[8:12]), rng.choice(UNITS)
    thing = invented(rng) if rng.random() < 0.2 else rng.choice(OBJECTS)
    count = rng.choice([f"{unit}s", f"{unit}s", "count", "n", "number", "length", "amount"])
    other = rng.choice([word for word in role.names.split() if word not in (count, thing)])
    verb = rng.choice(GETTING)
    said = verb if rng.random() < 0.5 else rng.choice(GETTING)
    order = rng.choice(role.says.split(" | ")).replace("{}", f"{{{other}}}")
    slots = {"V": said.capitalize(), "v": said, "n": f"{{{count}}}", "u": unit, "o": thing, "s": order, "S": order}
    return ToolKind(
        (rng.choice([thing, f"{thing}_{unit}s", tool_name(rng, verb, thing)]),),
        (f"{verb.capitalize()} a {thing} of some {unit}s", f"A {thing} and its number of {unit}s"),
        {count: Parameter((count,), "integer", whole_number(2, 60)), other: Parameter((other,), role.kind, role.value)},
        tuple(ask.format(**slots) for ask in rng.sample(MEASURED, 3)),
        plain_ok,
        f"The {thing} is ready.",
        True,
    )
