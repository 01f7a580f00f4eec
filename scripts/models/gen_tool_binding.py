"""Drills in finding a tool by its description: the names tell nothing, so what a call needs is to compare the wish with
every description first. From wishes alone whose names share words with them, this is never learnt."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from chat_format import Call, Conversation, Tool, Turn
from gen_tool_lists import in_one_message
from gen_tools import tool_call
from tools_made_up import OBJECTS, VERBS
from word_pieces import pieces
from words import QUALITIES, THINGS, article, invented

EASY_SHARE = 0.35
"""Share of lists whose descriptions are one word each, which the wish repeats: what the others are built upon."""
EASY_DESCRIPTIONS = "The {v} | For {v} | To {v} | A {v} | Use {v} | {v} | {V}".split(" | ")
EASY_WISHES = (
    "I need {v} | It is {v} | Do {v} | Please {v} now. | We {v} it. | {V} | {v} | {V}, please. | It is about {v}. | "
    "Something with {v}. | What about {v}? | Think of the {v}. | Now {v}. | Is there {v}? | My {v} | The {v}, now."
).split(" | ")
DESCRIPTIONS = (
    "{V} {o} | {V} the {o} | {V} {a} | Used to {v} the {o} | {O}: {v} | To {v} {a} | Can {v} {a} | {V} some {o} | "
    "Here you {v} the {o} | {O}, to {v} it | Lets you {v} your {o} | Will {v} one {o} | The {o} gets: {v}"
).split(" | ")
WISHES = (
    "{V} {o} | {V} the {o}. | Please {v} my {o}. | I want to {v} {a}. | The {o}: {v} it. | {V} {a}, please. | "
    "Can you {v} the {o}? | We {v} the {o} today. | {v} {a} | Let us {v} the {o}. | It is time to {v} the {o}. | "
    "There is {a}. {V} it. | You {v} some {o} now. | My {o} is here, {v} it."
).split(" | ")
COMMON = sorted({*VERBS, *OBJECTS, *THINGS, *QUALITIES})
OWN_DESCRIPTION_SHARE = 0.4
"""Share of tools that are described in another way than the one before them."""


def _word(rng: Random) -> str:
    roll = rng.random()
    return invented(rng) if roll < 0.15 else pieces(rng, 2).lower() if roll < 0.25 else rng.choice(COMMON)


def _name(rng: Random) -> str:
    """A name that tells nothing."""
    roll = rng.random()
    if roll < 0.7:
        return invented(rng)
    if roll < 0.8:
        return f"{rng.choice(COMMON)}_{invented(rng)}"
    return pieces(rng, 2) if roll < 0.9 else f"tool_{rng.randint(1, 99)}"


def _different(rng: Random, count: int, make: Callable[[Random], str]) -> list[str]:
    result: dict[str, None] = {}
    while len(result) < count:
        result[make(rng)] = None
    return list(result)


def _slots(verb: str, thing: str) -> dict[str, str]:
    return {
        "v": verb,
        "V": verb.capitalize(),
        "o": thing,
        "O": thing.capitalize(),
        "a": article(thing),
    }


def binding_drill(rng: Random, held: bool) -> Conversation:
    """One to four wishes and their calls; on the held-out side, where drills have no place, one wish."""
    if held:
        return tool_call(rng, held)
    count, easy, roll = rng.choice([2, 2, 3, 3, 4, 5]), rng.random() < EASY_SHARE, rng.random()
    words, names = _different(rng, 2 * count, _word), _different(rng, count, _name)
    verbs, things = words[:count], words[count:]
    if roll < 0.2 and not easy:
        verbs = verbs[:1] * count
    elif roll < 0.4 and not easy:
        things = things[:1] * count
    slots = [_slots(verb, thing) for verb, thing in zip(verbs, things)]
    descriptions, wishes = (EASY_DESCRIPTIONS, EASY_WISHES) if easy else (DESCRIPTIONS, WISHES)
    form = rng.choice(descriptions)
    tools: list[Tool] = []
    for name, each in zip(names, slots):
        form = rng.choice(descriptions) if rng.random() < OWN_DESCRIPTION_SHARE else form
        tools.append(Tool(name, form.format(**each), {}))
    meant = [rng.randrange(count) for _ in range(rng.choice([1, 1, 1, 1, 1, 2, 2, 3, 4]))]
    text = in_one_message(rng, [rng.choice(wishes).format(**slots[at]) for at in meant])
    turns = [Turn("user", text), Turn("assistant", calls=[Call(names[at], {}) for at in meant])]
    rng.shuffle(tools)
    return Conversation(turns, tools=tools, task="tools_binding")
