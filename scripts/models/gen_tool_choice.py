"""Drills in the two things that go wrong most in calls: which of several tools that share words is meant, and which of
two values belongs to which argument. Many short wishes share one list of tools, so a decision costs few tokens."""

from __future__ import annotations

from random import Random

from chat_format import Conversation
from gen_tool_lists import wishes
from gen_tools import tool_call
from made_up_shapes import giving
from made_up_wordings import BEGINNINGS
from tool_instances import instances_of
from tool_kind import Parameter, ToolKind, plain_ok
from tools_made_up import ROLES, VERBS, deed_descriptions, look_up, made_up_thing, tool_name

GIVING_SHARE, LOOK_UP_SHARE, BARE_SHARE = 0.45, 0.2, 0.45
"""Shares of lists of tools that give something to somebody, of those that look something up, and of deeds without an
argument."""
Deed = tuple[str, str]
"""A verb and its object."""


def _deeds(rng: Random, count: int) -> tuple[list[Deed], bool]:
    """Deeds that differ in the verb, in the object, or in one of both; and whether the object alone tells which."""
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
        role = rng.choice(ROLES)
        parameter = rng.choice(role.names.split())
        parameters[parameter] = Parameter((parameter,), role.kind, role.value)
        said = rng.choice(role.says.split(" | ")).replace("{}", f"{{{parameter}}}")
    slots = {"V": verb.capitalize(), "v": verb, "O": thing.capitalize(), "o": thing, "s": said, "S": said}
    begins = [begin for begin in BEGINNINGS if object_tells or "{v}" in begin or "{V}" in begin]
    if not said:
        begins = [begin for begin in begins if not begin.startswith(("{s}", "{S}", "Do it"))]
    asks = tuple(_tidy(begin.format(**slots)) for begin in rng.sample(begins, 6))
    names, descriptions = (tool_name(rng, verb, thing),), deed_descriptions(verb, thing)
    return ToolKind(names, descriptions, parameters, asks, plain_ok, "It is done.", True)


def _tidy(ask: str) -> str:
    """A wish without the gaps that a missing value leaves."""
    return " ".join(ask.split()).replace(" .", ".").replace(" ?", "?").replace(" ,", ",").replace(" :", ":")


def _kinds(rng: Random) -> list[ToolKind]:
    roll, count = rng.random(), rng.choice([3, 3, 4, 4, 5])
    if GIVING_SHARE < roll < GIVING_SHARE + LOOK_UP_SHARE:
        return [look_up(rng, made_up_thing(rng)) for _ in range(count)]
    deeds, object_tells = _deeds(rng, count)
    kinds = [_short_deed(rng, verb, thing, object_tells) for verb, thing in deeds]
    # Two tools that give something could not be told apart.
    return [giving(rng), *kinds[: rng.randint(0, 2)]] if roll < GIVING_SHARE else kinds


def choice_drill(rng: Random, held: bool) -> Conversation:
    """One to eight wishes and their calls; on the held-out side, where drills have no place, one wish."""
    if held:
        return tool_call(rng, held)
    instances = instances_of(rng, _kinds(rng), held)
    return wishes(rng, instances, rng.choice([1, 3, 4, 5, 6, 7, 8]), "tools_choice")
