"""Drills in where a value begins and ends: wishes whose own words tell nothing about the tool, so that only what stands
between them can be meant for the arguments."""

from __future__ import annotations

from random import Random

from chat_format import Conversation, Turn
from gen_tool_lists import in_one_message
from gen_tools import LINKS, tool_call
from tool_instances import KINDS, instances_of, offer
from tool_kind import Parameter, ToolKind, plain_ok
from tools_made_up import OTHER_VERBS, ROLES, VERBS, tool_name

OPENERS = (
    "Let me have | I need | I want | Make | Show me | Hand me | Take | What about | Now | Please do | Can I have | "
    "Here is | Put | Get | Bring | Say | There is | My wish: | Could you do | Set | Try | Use | Start | I think of | "
    "We want | How about | Once more | Then | Next: | Quickly, | Have | Prepare | Would you have | It shall be | Enter | "
    "I said | Add | Write | Read | Look: | Is there | Think of | Move | Turn | Just | Also | Send | Keep | Open | Find"
).split(" | ")
PREPOSITIONS = "in for on to at with by into as of near from about under over through until after before".split()
CLOSINGS = (".", ".", ".", "!", "?", "", "", ", please.", " please", " now.", ", thanks.")
TEXT, OTHERS = ROLES[10], [*ROLES[:5], *ROLES[7:10], ROLES[11]]
"""What may be of several words, and what stands behind it."""
TWO_VALUES_SHARE, ROW_SHARE = 0.65, 0.6
"""Shares of tools with a second argument, and of the others' several wishes that are said as one, with a row of values."""
BESIDE = [kind for kind in KINDS if all(parameter.kind == "integer" for parameter in kind.parameters.values())]
"""Tools that take no text, and so cannot be meant."""


def _kind(rng: Random) -> ToolKind:
    one = rng.choice(TEXT.names.split())
    parameters = {one: Parameter((one,), TEXT.kind, TEXT.value)}
    asks = [f"{rng.choice(OPENERS)} {{{one}}}" for _ in range(4)]
    if rng.random() < TWO_VALUES_SHARE:
        role, preposition = rng.choice(OTHERS), rng.choice(PREPOSITIONS)
        other = rng.choice([word for word in role.names.split() if word != one])
        parameters[other] = Parameter((other,), role.kind, role.value)
        asks = [f"{ask} {preposition} {{{other}}}" for ask in asks]
    verb = rng.choice([*VERBS, *OTHER_VERBS])
    descriptions = tuple(f"{verb.capitalize()} {start} {name}" for start in ("a", "the", "some") for name in parameters)
    told = tuple(ask + rng.choice(CLOSINGS) for ask in asks)
    return ToolKind((tool_name(rng, verb, one),), descriptions, parameters, told, plain_ok, "It is done.", True)


def slots_drill(rng: Random, held: bool) -> Conversation:
    """One to three wishes for one tool; on the held-out side, where drills have no place, one wish."""
    if held:
        return tool_call(rng, held)
    beside = rng.sample(BESIDE, rng.choice([0, 0, 1, 1, 2]))
    instances = instances_of(rng, [_kind(rng), *beside], held)
    tool = instances[0]
    requests = [tool.request(rng, held) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
    asked = in_one_message(rng, [ask for ask, _, _ in requests])
    if len(tool.kind.parameters) == 1 and rng.random() < ROW_SHARE:
        slot = next(iter(tool.kind.parameters))
        row = rng.choice(LINKS).join(str(values[slot]) for _, values, _ in requests)
        asked = tool.wording(rng, held).format(**{slot: row})
    turns = [Turn("user", asked), Turn("assistant", calls=[call for _, _, call in requests])]
    return Conversation(turns, tools=offer(rng, instances), task="tools_slots")
