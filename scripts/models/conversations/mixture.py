"""The mixture that daybreak-mini learns from, as data/mixture.txt weighs it: with system prompts and several turns."""

from collections.abc import Callable
from importlib import import_module
from random import Random

from conversations.small_tasks import copy_long, quote_long
from conversations.template import Conversation
from conversations.tool_calls import draw_instances, offer
from conversations.tool_drills import binding_drill
from conversations.words import DATA, blocks, choose, wordings

Generator = Callable[[Random, bool], Conversation]
THINKING_SHARE = 0.3
"""Conversations that are rendered with thinking on."""
LONG_SHARE = 0.18
"""Plain questions that are joined to a conversation of several turns."""
VERY_LONG_SHARE = 0.004
"""Those that go on for up to a thousand tokens, so that far positions are learned too."""
SYSTEM_SHARE = 0.12
"""Conversations that get a system prompt which changes nothing."""
STAGES = {"easiest": 0.85, "drills": 0.8, "mixture": 0.0}
"""Stages of a training that begins from nothing, and the share of conversations that are drills in finding a tool by
its description. Beside everything else the model never learns that, so it comes first."""
GROUPS: dict[str, list[tuple[Generator, float]]] = {}
"""The generators of each group with their weights."""


def draw(rng: Random, held: bool, *groups: str) -> Conversation:
    """A conversation of one of the generators of these groups."""
    functions, weights = zip(*(entry for group in groups for entry in GROUPS[group]))
    return rng.choices(functions, weights)[0](rng, held)


def plain_question(rng: Random, held: bool) -> Conversation:
    return draw(rng, held, "plain")


def unused_tools(rng: Random, held: bool) -> Conversation:
    """A plain question while tools are on offer that do not help."""
    conversation = draw(rng, held, "beside tools")
    conversation.tools = offer(rng, draw_instances(rng, held, rng.randint(1, 2)))
    return conversation


def generator(name: str, instead: str = "") -> Generator:
    """What a line of the mixture names; of a drill, what takes its place on the held-out side."""
    if name in GROUPS:
        return lambda rng, held: draw(rng, held, name)
    module, _, function = name.partition(".")
    make = getattr(import_module(f"conversations.{module}"), function)
    return (lambda rng, held: generator(instead)(rng, held) if held else make(rng)) if instead else make


for _head, *_lines in blocks(DATA / "mixture.txt"):
    _told = [line.split() for line in _lines]
    GROUPS[_head.rstrip(":")] = [(generator(name, *instead), float(weight)) for name, weight, *instead in _told]


def sample(rng: Random, held: bool = False, copying: float = 0.02, stage: str = "mixture") -> Conversation:
    """One conversation of the mixture; `copying` is the share of long rows to repeat."""
    if STAGES[stage] and rng.random() < STAGES[stage]:
        return binding_drill(rng, easiest=stage == "easiest")
    if rng.random() < copying:
        conversation = rng.choice([copy_long, quote_long])(rng, held)
    else:
        conversation = draw(rng, held, "plain", "other")
    if not conversation.tools and len(conversation.turns) == 2 and rng.random() < LONG_SHARE:
        extra = rng.randint(8, 25) if rng.random() < VERY_LONG_SHARE / LONG_SHARE else rng.choice([1, 1, 2, 3])
        for _ in range(extra):
            conversation.turns += plain_question(rng, held).turns
    if conversation.system is None and rng.random() < SYSTEM_SHARE:
        conversation.system = choose(rng, wordings("system")["harmless"], held)
    if rng.random() >= THINKING_SHARE:
        for turn in conversation.turns:
            turn.thought = None
    return conversation
