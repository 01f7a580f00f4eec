"""Drills in finding a tool by its description: the names tell nothing, so what a call needs is to compare the wish with
every description first. From wishes alone whose names share words with them, this is never learnt."""

from __future__ import annotations

from random import Random

from chat_format import Call, Conversation, Tool, Turn
from gen_tool_lists import in_one_message
from gen_tools import tool_call
from tools_made_up import OBJECTS, VERBS
from word_pieces import pieces
from words import QUALITIES, THINGS, article, invented

EASY_SHARE = 0.35
"""Share of lists whose descriptions are one word each, which the wish repeats: what the others are built upon."""
EASY_DESCRIPTIONS = "The {w} | For {w} | To {w} | A {w} | Use {w} | {w} | {W}".split(" | ")
EASY_WISHES = (
    "I need {w} | It is {w} | Do {w} | Please {w} now. | We {w} it. | {W} | {w} | {W}, please. | It is about {w}. | "
    "Something with {w}. | What about {w}? | Think of the {w}. | Now {w}. | Is there {w}? | My {w} | The {w}, now."
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


def _different(rng: Random, count: int) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < count:
        words[_word(rng)] = None
    return list(words)


def _slots(verb: str, thing: str) -> dict[str, str]:
    return {
        "w": verb,
        "W": verb.capitalize(),
        "v": verb,
        "V": verb.capitalize(),
        "o": thing,
        "O": thing.capitalize(),
        "a": article(thing),
    }


def binding_drill(rng: Random, held: bool) -> Conversation:
    """One to six wishes and their calls; on the held-out side, where drills have no place, one wish."""
    if held:
        return tool_call(rng, held)
    count, easy, roll = rng.choice([2, 2, 3, 3, 4, 5]), rng.random() < EASY_SHARE, rng.random()
    words = _different(rng, 2 * count)
    verbs, things = words[:count], words[count:]
    if roll < 0.2 and not easy:
        verbs = verbs[:1] * count
    elif roll < 0.4 and not easy:
        things = things[:1] * count
    forms = EASY_DESCRIPTIONS if easy else DESCRIPTIONS
    tools: list[Tool] = []
    form = rng.choice(forms)
    slots = [_slots(verb, thing) for verb, thing in zip(verbs, things)]
    for each in slots:
        form = rng.choice(forms) if rng.random() < OWN_DESCRIPTION_SHARE else form
        name = _name(rng)
        while any(name == tool.name for tool in tools):
            name = _name(rng)
        tools.append(Tool(name, form.format(**each), {}))
    names = [tool.name for tool in tools]
    meant = [rng.randrange(count) for _ in range(rng.choice([1, 1, 1, 1, 1, 2, 2, 3, 4]))]
    text = in_one_message(rng, [rng.choice(EASY_WISHES if easy else WISHES).format(**slots[at]) for at in meant])
    turns = [Turn("user", text), Turn("assistant", calls=[Call(names[at], {}) for at in meant])]
    rng.shuffle(tools)
    return Conversation(turns, tools=tools, task="tools_binding")
