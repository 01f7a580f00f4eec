"""Tools as they are put on offer: kinds with their names and types drawn."""

import json
from random import Random

from conversations.made_up_tools import made_up, made_up_alike, made_up_shape
from conversations.template import Call, Tool
from conversations.tool_kinds import ASKED_KINDS, HELD_KINDS, TRAINING_DOMAINS, ToolKind, Value
from conversations.words import choose, invented, plain_words, templates, wordings

NEAR = 4
"""So many kinds before and behind one, in its domain, may be put on offer beside it as its neighbours."""
NEIGHBOURHOODS = [
    kinds[max(0, index - NEAR) : index + NEAR + 1] for kinds in TRAINING_DOMAINS for index in range(len(kinds))
]
TRAINING_KINDS = [kind for kinds in TRAINING_DOMAINS for kind in kinds]
NEIGHBOURS_SHARE, ALIKE_SHARE = 0.12, 0.08
"""Shares of offers, in training, of neighbours alone, and of made-up tools that differ in a word."""
MADE_UP_SHARE, SHAPE_SHARE, ASKED_SHARE = 0.1, 0.14, 0.42
"""Shares of kinds in training: made up on the spot, likewise with shapes of their own, and those of ASKED_KINDS."""
ONE_WORD_SLOTS = ("city}", "country}", "day}", "time}", "language}", "n}", "days}", "minutes}", "count}", "max}")
OPENING_SHARE, ENDING_SHARE = 0.08, 0.2
"""Shares, in training, of words before a wish, and of words behind one that ends in a value of one word."""
TELLING_NOTHING_SHARE = 0.35
"""Share of tools, in training, whose name is made up in part or whole, so that the description must be read."""
OPTIONAL_SHARE = 0.15
OPTIONAL: list[tuple[str, str | list[str]]] = [
    ("unit", ["c", "f"]),
    ("limit", "integer"),
    ("lang", "string"),
    ("verbose", "boolean"),
    ("format", ["text", "json"]),
]
"""Further arguments that nobody asks for: they must be left out."""
PLAIN_RESULT_SHARE = 0.25
"""Share of results that come as bare text instead of JSON."""


class Instance:
    """A kind of tool with its names and types drawn."""

    def __init__(self, rng: Random, kind: ToolKind, held: bool) -> None:
        self.kind = kind
        self.names: dict[str, str] = {}
        for slot, parameter in kind.parameters.items():
            candidate = rng.choice(parameter.names)
            while candidate in self.names.values():
                candidate = rng.choice(parameter.names + (slot,))
            self.names[slot] = candidate
        tool_name = rng.choice(kind.names)
        if not held and rng.random() < TELLING_NOTHING_SHARE:
            tool_name = f"{tool_name}_{invented(rng)}" if rng.random() < 0.5 else invented(rng)
        slots = list(kind.parameters)
        rng.shuffle(slots)
        types = {self.names[slot]: kind.parameters[slot].kind for slot in slots}
        parameters = {name: list(kind) if isinstance(kind, tuple) else kind for name, kind in types.items()}
        optional: tuple[str, ...] = ()
        if rng.random() < OPTIONAL_SHARE:
            extra, values = rng.choice(OPTIONAL)
            if extra not in parameters:
                parameters[extra] = values
                optional = (extra,)
        self.tool = Tool(tool_name, rng.choice(kind.descriptions), parameters, optional)

    def wording(self, rng: Random, held: bool) -> str:
        """A way to ask for it, with its slots."""
        kind, calls = self.kind, wordings("calls")
        if held:
            return choose(rng, kind.asks, True)
        ask = rng.choice(kind.asks if kind.training_only else (*templates(kind.asks, False), *kind.more))
        bare = ask.rstrip(".?!")
        if bare.endswith(ONE_WORD_SLOTS) and rng.random() < ENDING_SHARE:
            longer = bare + rng.choice(calls["endings"]) + ask[len(bare) :]
            # An ending must not make the held-out wording of a trained one.
            if kind.training_only or plain_words(longer) != plain_words(choose(rng, kind.asks, True)):
                ask = longer
        return f"{rng.choice(calls['openings'])} {ask}" if rng.random() < OPENING_SHARE else ask

    def call(self, rng: Random, held: bool) -> tuple[dict[str, Value], Call]:
        """Values by slot, and the call that carries them (in the signature's order)."""
        values = {slot: parameter.value(rng, held) for slot, parameter in self.kind.parameters.items()}
        by_name = {self.names[slot]: value for slot, value in values.items()}
        arguments = {parameter: by_name[parameter] for parameter in self.tool.parameters if parameter in by_name}
        return values, Call(self.tool.name, arguments)

    def request(self, rng: Random, held: bool) -> tuple[str, dict[str, Value], Call]:
        """A wish of the user, its values by slot, and the call that fulfils it."""
        values, call = self.call(rng, held)
        return self.wording(rng, held).format(**values), values, call

    def respond(self, rng: Random, values: dict[str, Value]) -> tuple[str, str]:
        """A result and the answer made of it."""
        result = self.kind.draw_result(rng)
        plain = rng.random() < PLAIN_RESULT_SHARE
        text = ", ".join(f"{key}: {value}" for key, value in result.items()) if plain else json.dumps(result)
        return text, self.kind.answer.format(**values, **result)


def _training_kind(rng: Random, asked: ToolKind, other: ToolKind) -> ToolKind:
    makers = [made_up, made_up_shape, lambda _: asked, lambda _: other]
    shares = [MADE_UP_SHARE, SHAPE_SHARE, ASKED_SHARE, 1 - MADE_UP_SHARE - SHAPE_SHARE - ASKED_SHARE]
    return rng.choices(makers, shares)[0](rng)


def draw_instances(rng: Random, held: bool, wanted: int) -> list[Instance]:
    """Tools of different kinds and names; the first one is meant to be used."""
    kinds, roll = rng.sample(ASKED_KINDS, wanted), 1.0 if held else rng.random()
    if wanted > 1 and roll < ALIKE_SHARE:
        kinds = made_up_alike(rng, wanted)
    elif wanted > 1 and roll < ALIKE_SHARE + NEIGHBOURS_SHARE:
        kinds = rng.sample(rng.choice(NEIGHBOURHOODS), min(wanted, NEAR + 1))
    elif not held:
        other = iter(rng.sample(TRAINING_KINDS, wanted))
        kinds = [_training_kind(rng, asked, next(other)) for asked in kinds]
    else:
        kinds[0] = rng.choice(HELD_KINDS) if rng.random() < 0.5 else kinds[0]
    return instances_of(rng, kinds, held)


def instances_of(rng: Random, kinds: list[ToolKind], held: bool) -> list[Instance]:
    """The kinds as tools of different names: of two that draw the same name, the first."""
    result: dict[str, Instance] = {}
    for kind in kinds:
        instance = Instance(rng, kind, held)
        result.setdefault(instance.tool.name, instance)
    return list(result.values())


def offer(rng: Random, instances: list[Instance]) -> list[Tool]:
    tools = [instance.tool for instance in instances]
    rng.shuffle(tools)
    return tools
