"""Kinds of tools with their names and types drawn, as they are put on offer."""

from __future__ import annotations

import json
from random import Random

from chat_format import Call, Tool
from made_up_shapes import made_up_shape
from plain_words import plain_words
from tool_kind import ToolKind, Value
from tool_wordings import more_wordings
from tools_daily import DAILY_DOMAINS
from tools_held_out import HELD_KINDS
from tools_look_up import LOOK_UP_KINDS
from tools_made_up import made_up, made_up_alike
from tools_messages import MESSAGE_KINDS
from tools_money_home import MONEY_HOME_KINDS
from tools_places import PLACE_KINDS
from tools_training import EVERYDAY_KINDS
from tools_training_health import HEALTH_KINDS
from tools_training_home import HOME_KINDS
from tools_training_office import OFFICE_KINDS
from tools_training_shop import SHOP_KINDS
from tools_training_tech import TECH_KINDS
from tools_training_trips import TRIP_KINDS
from tools_training_work import WORK_KINDS
from words import choose, invented, templates

KINDS = LOOK_UP_KINDS + MESSAGE_KINDS + MONEY_HOME_KINDS + PLACE_KINDS
MORE_WORDINGS = more_wordings(KINDS)
TRAINING_DOMAINS = [
    EVERYDAY_KINDS,
    WORK_KINDS,
    TRIP_KINDS,
    HOME_KINDS,
    SHOP_KINDS,
    OFFICE_KINDS,
    TECH_KINDS,
    HEALTH_KINDS,
    *DAILY_DOMAINS,
]
NEAR = 4
"""So many kinds before and behind one, in its domain, may be put on offer beside it as its neighbours."""
NEIGHBOURHOODS = [
    kinds[max(0, index - NEAR) : index + NEAR + 1] for kinds in TRAINING_DOMAINS for index in range(len(kinds))
]
TRAINING_KINDS = [kind for kinds in TRAINING_DOMAINS for kind in kinds]
NEIGHBOURS_SHARE = 0.12
"""Share of offers, in training, of neighbours alone."""
ALIKE_SHARE = 0.08
"""Share of offers, in training, of made-up tools that differ in a word."""
MADE_UP_SHARE, SHAPE_SHARE, OWN_SHARE = 0.1, 0.14, 0.42
"""Shares of kinds in training: made up on the spot, likewise with shapes of their own, and those whose held-out
wordings are asked in the evaluation."""
ENDINGS = " now| please|, please| today| for me| right now|, thanks| at once| if you can| again".split("|")
"""What may stand behind a wish that ends in a value of one word, in training: it is no part of the value."""
ONE_WORD_SLOTS = ("city}", "country}", "day}", "time}", "language}", "n}", "days}", "minutes}", "count}", "max}")
TELLING_NOTHING_SHARE = 0.35
"""Share of tools, in training, whose name is made up in part or whole, so that the description must be read."""
OPENING_SHARE, ENDING_SHARE = 0.08, 0.2
OPENINGS = (
    "Hi. | Hello! | Hey, | Please help me. | One more thing: | OK, now: | I have a wish. | Good day! | Next: | Hm. | "
    "Something else: | Quickly: | Good morning. | A small task: "
).split("| ")
"""What may stand before a wish, in training."""
RESULT_ANSWER_PLAIN = 0.25
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
        parameters = {
            self.names[slot]: list(kind.parameters[slot].kind)
            if isinstance(kind.parameters[slot].kind, tuple)
            else str(kind.parameters[slot].kind)
            for slot in slots
        }
        optional: tuple[str, ...] = ()
        if rng.random() < 0.15:
            # A further argument that nobody asks for: it must be left out.
            extra, values = rng.choice(
                [
                    ("unit", ["c", "f"]),
                    ("limit", "integer"),
                    ("lang", "string"),
                    ("verbose", "boolean"),
                    ("format", ["text", "json"]),
                ]
            )
            if extra not in parameters:
                parameters[extra] = values
                optional = (extra,)
        self.tool = Tool(tool_name, rng.choice(kind.descriptions), parameters, optional)

    def wording(self, rng: Random, held: bool) -> str:
        """A way to ask for it, with its slots."""
        if held:
            return choose(rng, self.kind.asks, True)
        asks = self.kind.asks
        if not self.kind.training_only:
            asks = (*templates(asks, False), *MORE_WORDINGS.get(self.kind.names[0], ()))
        ask = rng.choice(asks)
        bare = ask.rstrip(".?!")
        if bare.endswith(ONE_WORD_SLOTS) and rng.random() < ENDING_SHARE:
            longer = bare + rng.choice(ENDINGS) + ask[len(bare) :]
            # An ending must not make the held-out wording of a trained one.
            if self.kind.training_only or plain_words(longer) != plain_words(choose(rng, self.kind.asks, True)):
                ask = longer
        return f"{rng.choice(OPENINGS).strip()} {ask}" if rng.random() < OPENING_SHARE else ask

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
        result = self.kind.result(rng)
        if rng.random() < RESULT_ANSWER_PLAIN:
            text = ", ".join(f"{key}: {value}" for key, value in result.items())
        else:
            text = json.dumps(result)
        return text, self.kind.answer.format(**values, **result)


def _training_kind(rng: Random, own: ToolKind, other: ToolKind) -> ToolKind:
    makers = [made_up, made_up_shape, lambda _: own, lambda _: other]
    shares = [MADE_UP_SHARE, SHAPE_SHARE, OWN_SHARE, 1 - MADE_UP_SHARE - SHAPE_SHARE - OWN_SHARE]
    return rng.choices(makers, shares)[0](rng)


def draw_instances(rng: Random, held: bool, wanted: int) -> list[Instance]:
    """Tools of different kinds and names; the first one is meant to be used."""
    kinds, roll = rng.sample(KINDS, wanted), 1.0 if held else rng.random()
    if wanted > 1 and roll < ALIKE_SHARE:
        kinds = made_up_alike(rng, wanted)
    elif wanted > 1 and roll < ALIKE_SHARE + NEIGHBOURS_SHARE:
        kinds = rng.sample(rng.choice(NEIGHBOURHOODS), min(wanted, NEAR + 1))
    elif not held:
        other = iter(rng.sample(TRAINING_KINDS, wanted))
        kinds = [_training_kind(rng, own, next(other)) for own in kinds]
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
