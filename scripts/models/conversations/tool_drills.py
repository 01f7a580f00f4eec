"""Drills in calling tools, for training alone: several wishes at once, which tool is meant, and where a value begins
and ends."""

from collections.abc import Callable
from random import Random

from conversations.made_up_tools import (
    OBJECTS, OTHER_VERBS, ROLES, SAID, VERBS, described, filled, giving, look_up, made_up_thing, roles, tool_name,
)
from conversations.template import Call, Conversation, Tool, Turn
from conversations.tool_calls import draw_instances, in_one_message, instances_of, offer, wishes
from conversations.tool_kinds import ASKED_KINDS, Parameter, ToolKind
from conversations.words import LISTS, QUALITIES, THINGS, article, invented, pieces, wordings

BINDING, SLOTS = wordings("binding"), wordings("slots")
COMMON = sorted({*VERBS, *OBJECTS, *THINGS, *QUALITIES})
EASY_SHARE = 0.35
"""Share of lists whose descriptions are one word each, which the wish repeats: what the others are built upon."""
OWN_DESCRIPTION_SHARE = 0.4
"""Share of tools that are described in another way than the one before them."""
GIVING_SHARE, LOOK_UP_SHARE, BARE_SHARE = 0.45, 0.2, 0.45
"""Shares of lists of tools that give something to somebody, of those that look something up, and of deeds without an
argument."""
OTHERS = roles("city country person day month animal food thing word")
"""What stands behind a text."""
TWO_VALUES_SHARE, ROW_SHARE = 0.65, 0.6
"""Shares of tools with a second argument, and of the others' several wishes said as one, with a row of values."""
BESIDE = [kind for kind in ASKED_KINDS if all(slot.kind == "integer" for slot in kind.parameters.values())]
"""Tools that take no text, and so cannot be meant."""


def many_calls(rng: Random) -> Conversation:
    """Three to six wishes in one message, each for any of the tools on offer."""
    instances = draw_instances(rng, False, rng.choice([2, 3, 3, 4, 4, 5]))
    return wishes(rng, instances, rng.choice([3, 3, 4, 4, 5, 6]))


def _telling_nothing(rng: Random) -> str:
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


def binding_drill(rng: Random, easiest: bool = False) -> Conversation:
    """One to four wishes for tools whose names tell nothing, so that the wish must be compared with every description.
    From wishes alone whose names share words with them, this is never learned. The easiest have two or three tools of
    one word each, and one wish."""
    count, easy, roll = rng.choice([2, 2, 3, 3, 4, 5]), rng.random() < EASY_SHARE, rng.random()
    if easiest:
        count, easy = min(count, 3), True
    words = _different(rng, 2 * count, lambda rng: made_up_thing(rng, COMMON, 0.15, 0.25))
    names = _different(rng, count, _telling_nothing)
    verbs, things = words[:count], words[count:]
    if roll < 0.2 and not easy:
        verbs = verbs[:1] * count
    elif roll < 0.4 and not easy:
        things = things[:1] * count
    slots = [
        {"v": verb, "V": verb.capitalize(), "o": thing, "O": thing.capitalize(), "a": article(thing)}
        for verb, thing in zip(verbs, things)
    ]
    descriptions, asks = (BINDING[f"easy_{key}" if easy else key] for key in ("descriptions", "wishes"))
    form = rng.choice(descriptions)
    tools: list[Tool] = []
    for name, each in zip(names, slots):
        form = rng.choice(descriptions) if rng.random() < OWN_DESCRIPTION_SHARE else form
        tools.append(Tool(name, form.format(**each), {}))
    meant = [rng.randrange(count) for _ in range(1 if easiest else rng.choice([1, 1, 1, 1, 1, 2, 2, 3, 4]))]
    text = in_one_message(rng, [rng.choice(asks).format(**slots[at]) for at in meant])
    turns = [Turn("user", text), Turn("assistant", calls=[Call(names[at], {}) for at in meant])]
    rng.shuffle(tools)
    return Conversation(turns, tools=tools)


def _deeds(rng: Random, count: int) -> tuple[list[tuple[str, str]], bool]:
    """Verbs and objects that differ in the verb, in the object, or in one of both; and whether the object alone tells
    which."""
    roll, verb = rng.random(), rng.choice(VERBS)
    things = [made_up_thing(rng) for _ in range(count)]
    if roll < 0.25:
        return [(other, things[0]) for other in rng.sample(VERBS, count)], False
    if roll < 0.6:
        return [(verb, thing) for thing in things], True
    if roll < 0.75:
        return [(other, thing) for other in (verb, rng.choice(VERBS)) for thing in things[:2]], False
    return list(zip(rng.sample(VERBS, count), things)), True


def _short_deed(rng: Random, verb: str, thing: str, object_tells: bool) -> ToolKind:
    """A tool with one argument at most."""
    parameters: dict[str, Parameter] = {}
    said = ""
    if rng.random() >= BARE_SHARE:
        role = rng.choice(list(ROLES.values()))
        name = role.name(rng)
        parameters, said = role.named(name), role.said(rng, name)
    begins = [begin for begin in SAID["deeds"] if object_tells or "{v}" in begin or "{V}" in begin]
    if not said:
        begins = [begin for begin in begins if not begin.startswith(("{s}", "Do it"))]
    asks = tuple(map(_tidy, filled(rng.sample(begins, 6), v=verb, o=thing, s=said)))
    names, descriptions = (tool_name(rng, verb, thing),), described("deed", v=verb, o=thing)
    return ToolKind(names, descriptions, parameters, asks, "It is done.")


def _tidy(ask: str) -> str:
    """A wish without the gaps that a missing value leaves."""
    return " ".join(ask.split()).replace(" .", ".").replace(" ?", "?").replace(" ,", ",").replace(" :", ":")


def choice_drill(rng: Random) -> Conversation:
    """One to eight short wishes for one list of tools that share words, or for one that gives something to somebody:
    which tool is meant, and which of two values belongs to which argument."""
    roll, count = rng.random(), rng.choice([3, 3, 4, 4, 5])
    if GIVING_SHARE < roll < GIVING_SHARE + LOOK_UP_SHARE:
        kinds = [look_up(rng, made_up_thing(rng)) for _ in range(count)]
    else:
        deeds, object_tells = _deeds(rng, count)
        kinds = [_short_deed(rng, verb, thing, object_tells) for verb, thing in deeds]
        if roll < GIVING_SHARE:
            # Two tools that give something could not be told apart.
            kinds = [giving(rng), *kinds[: rng.randint(0, 2)]]
    return wishes(rng, instances_of(rng, kinds, False), rng.choice([1, 3, 4, 5, 6, 7, 8]))


def _text_kind(rng: Random) -> ToolKind:
    """A tool with a text, and perhaps something behind it."""
    one = ROLES["text"].name(rng)
    parameters = ROLES["text"].named(one)
    asks = [f"{rng.choice(SLOTS['openers'])} {{{one}}}" for _ in range(4)]
    if rng.random() < TWO_VALUES_SHARE:
        role, preposition = rng.choice(OTHERS), rng.choice(LISTS["prepositions"])
        other = role.name(rng, one)
        parameters |= role.named(other)
        asks = [f"{ask} {preposition} {{{other}}}" for ask in asks]
    verb = rng.choice([*VERBS, *OTHER_VERBS])
    descriptions = tuple(f"{verb.capitalize()} {start} {name}" for start in ("a", "the", "some") for name in parameters)
    told = tuple(ask + rng.choice(SLOTS["closings"]) for ask in asks)
    return ToolKind((tool_name(rng, verb, one),), descriptions, parameters, told, "It is done.")


def slots_drill(rng: Random) -> Conversation:
    """One to three wishes for one tool whose own words tell nothing about it, so that only what stands between them can
    be a value."""
    beside = rng.sample(BESIDE, rng.choice([0, 0, 1, 1, 2]))
    instances = instances_of(rng, [_text_kind(rng), *beside], False)
    tool = instances[0]
    requests = [tool.request(rng, False) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
    asked = in_one_message(rng, [ask for ask, _, _ in requests])
    if len(tool.kind.parameters) == 1 and rng.random() < ROW_SHARE:
        slot = next(iter(tool.kind.parameters))
        row = rng.choice(wordings("calls")["links"]).join(str(values[slot]) for _, values, _ in requests)
        asked = tool.wording(rng, False).format(**{slot: row})
    turns = [Turn("user", asked), Turn("assistant", calls=[call for _, _, call in requests])]
    return Conversation(turns, tools=offer(rng, instances))
