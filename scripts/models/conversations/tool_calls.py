"""Conversations with tools: kinds as they are put on offer, with names and types drawn; one call, two at once, many,
using the results."""

import json
from random import Random

from conversations.made_up_tools import made_up, made_up_alike, made_up_shape
from conversations.template import Call, Conversation, Tool, Turn
from conversations.tool_kinds import ASKED_KINDS, HELD_KINDS, TRAINING_DOMAINS, ToolKind, Value, drawn
from conversations.words import NUMBER_WORDS, choose, invented, plain_words, templates, wordings

SAID = wordings("calls")
NEAR = 4
"""So many kinds before and behind one, in its domain, may be put on offer beside it as its neighbors."""
NEIGHBORHOODS = [
    kinds[max(0, index - NEAR) : index + NEAR + 1] for kinds in TRAINING_DOMAINS for index in range(len(kinds))
]
TRAINING_KINDS = [kind for kinds in TRAINING_DOMAINS for kind in kinds]
NEIGHBORS_SHARE, ALIKE_SHARE = 0.12, 0.08
"""Shares of offers, in training, of neighbors alone, and of made-up tools that differ in a word."""
KIND_SHARES = (0.1, 0.14, 0.42, 0.34)
"""Shares of kinds in training: made up on the spot, likewise with shapes of their own, of ASKED_KINDS, and others."""
ONE_WORD_SLOTS = ("city}", "country}", "day}", "time}", "language}", "n}", "days}", "minutes}", "count}", "max}")
OPENING_SHARE, ENDING_SHARE = 0.08, 0.2
"""Shares, in training, of words before a wish, and of words behind one that ends in a value of one word."""
TELLING_NOTHING_SHARE = 0.35
"""Share of tools, in training, whose name is made up in part or whole, so that the description must be read."""
OPTIONAL_SHARE = 0.15
OPTIONAL: list[tuple[str, str | list[str]]] = list(wordings("optional").items())
"""Further arguments that nobody asks for: they must be left out."""
PLAIN_RESULT_SHARE = 0.25
"""Share of results that come as bare text instead of JSON."""
NO_JOINT_SHARE = 0.3
"""Share of wishes, in training, that follow the one before as the next sentence, with no word between them."""
FRAMED_SHARE, BOTH_SHARE = 0.4, 0.35
"""Shares, in training, of two wishes put into a frame, and of wishes for two calls in a row of wishes."""
SAME_FORM_SHARE = 0.5
"""Share, in training, of two wishes for one tool that differ in nothing but their values."""
TOLD_SHARE, HELD_TOLD_SHARE = 0.25, 0.5
"""Share of calls whose results are told; the others are drills."""
LIST_SHARE = 0.4
Used = list[tuple["Instance", dict[str, Value]]]
"""Tools and the values that they are called with."""


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
        parameters = {self.names[slot]: kind.parameters[slot].kind for slot in slots}
        extra = [rng.choice(OPTIONAL)] if rng.random() < OPTIONAL_SHARE else []
        optional = {name: values for name, values in extra if name not in parameters}
        self.tool = Tool(tool_name, rng.choice(kind.descriptions), parameters | optional, tuple(optional))

    def wording(self, rng: Random, held: bool) -> str:
        """A way to ask for it, with its slots."""
        kind = self.kind
        if held:
            return choose(rng, kind.asks, True)
        ask = rng.choice(kind.asks if kind.training_only else (*templates(kind.asks, False), *kind.more))
        bare = ask.rstrip(".?!")
        if bare.endswith(ONE_WORD_SLOTS) and rng.random() < ENDING_SHARE:
            longer = bare + rng.choice(SAID["endings"]) + ask[len(bare) :]
            # An ending must not make the held-out wording of a trained one.
            if kind.training_only or plain_words(longer) != plain_words(choose(rng, kind.asks, True)):
                ask = longer
        return f"{rng.choice(SAID['openings'])} {ask}" if rng.random() < OPENING_SHARE else ask

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
        fields = [field.split(" ", 1) for field in self.kind.result.split(" | ")]
        result = {key: drawn(rng, pattern) for key, pattern in fields}
        plain = rng.random() < PLAIN_RESULT_SHARE
        text = ", ".join(f"{key}: {value}" for key, value in result.items()) if plain else json.dumps(result)
        return text, self.kind.answer.format(**values, **result)


def draw_instances(rng: Random, held: bool, wanted: int) -> list[Instance]:
    """Tools of different kinds and names; the first one is meant to be used."""
    kinds, roll = rng.sample(ASKED_KINDS, wanted), 1.0 if held else rng.random()
    if wanted > 1 and roll < ALIKE_SHARE:
        kinds = made_up_alike(rng, wanted)
    elif wanted > 1 and roll < ALIKE_SHARE + NEIGHBORS_SHARE:
        kinds = rng.sample(rng.choice(NEIGHBORHOODS), min(wanted, NEAR + 1))
    elif not held:
        for at, other in enumerate(rng.sample(TRAINING_KINDS, wanted)):
            kind = rng.choices([made_up, made_up_shape, kinds[at], other], KIND_SHARES)[0]
            kinds[at] = kind if isinstance(kind, ToolKind) else kind(rng)
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


def _finish(rng: Random, turns: list[Turn], used: Used) -> None:
    results, answers = zip(*(instance.respond(rng, values) for instance, values in used))
    turns += [Turn("tool", results=list(results)), Turn("assistant", " ".join(answers))]


def tool_call(rng: Random, held: bool) -> Conversation:
    """One call, in some cases with its result and the answer."""
    instances = draw_instances(rng, held, rng.choice([1, 1, 2, 2, 3] if held else [1, 2, 3, 3, 4, 5]))
    ask, values, call = instances[0].request(rng, held)
    thought = f"I need {call.name}." if rng.random() < 0.5 else f"The tool {call.name} fits."
    turns = [Turn("user", ask), Turn("assistant", calls=[call], thought=thought)]
    if rng.random() < (HELD_TOLD_SHARE if held else TOLD_SHARE):
        _finish(rng, turns, [(instances[0], values)])
        # With results the thought before the call is over; template and history keep it only when asked to think.
        if rng.random() < 0.7:
            turns[1].thought = None
        else:
            turns[-1].thought = "I have the result."
    return Conversation(turns, tools=offer(rng, instances))


def _both(rng: Random, held: bool, first: Instance, second: Instance) -> tuple[str, Used, list[Call]]:
    """A wish for two calls, or for one where the two would be the same."""
    values, call = first.call(rng, held)
    form = first.wording(rng, held)
    values2, call2 = second.call(rng, held)
    same_form = first is second and not held and rng.random() < SAME_FORM_SHARE
    form2 = form if same_form else second.wording(rng, held)
    ask, ask2 = form.format(**values), form2.format(**values2)
    used, calls = [(first, values), (second, values2)], [call, call2]
    slot = next(iter(first.kind.parameters), "")
    if first is second and len(first.kind.parameters) == 1 and values[slot] != values2[slot]:
        link = " and " if held else rng.choice(SAID["links"])
        joint_ask = first.wording(rng, held).format(**{slot: f"{values[slot]}{link}{values2[slot]}"})
        return (ask, used[:1], calls[:1]) if isinstance(values[slot], int) else (joint_ask, used, calls)
    if call == call2:
        return ask, used[:1], calls[:1]
    if not held and rng.random() < FRAMED_SHARE:
        frame = rng.choice(SAID["frames"])
        return frame.format(_inner(rng, ask), _inner(rng, ask2)), used, calls
    return joined(rng, held, ask, ask2), used, calls


def joined(rng: Random, held: bool, ask: str, ask2: str) -> str:
    """Two wishes, one after the other."""
    if ask[-1] not in ".?!":
        return f"{ask}. {ask2}"
    if not held and rng.random() < NO_JOINT_SHARE:
        return f"{ask} {ask2}"
    return f"{ask}{rng.choice(SAID['held_joints' if held else 'joints'])}{ask2}"


def _inner(rng: Random, ask: str) -> str:
    """A wish as a part of a longer sentence."""
    bare = ask.rstrip(".?!")
    return bare[0].lower() + bare[1:] if rng.random() < 0.6 and not bare.startswith("I ") else bare


def two_calls(rng: Random, held: bool) -> Conversation:
    """Two calls at once: the same tool twice, or two tools."""
    instances = draw_instances(rng, held, rng.choice([1, 2, 2, 3]))
    first = instances[0]
    second = instances[1] if len(instances) > 1 and rng.random() < (0.6 if held else 0.7) else first
    ask, used, calls = _both(rng, held, first, second)
    if len(calls) == 1:
        return tool_call(rng, held)
    turns = [Turn("user", ask), Turn("assistant", calls=calls, thought="I need two calls.")]
    if rng.random() < (HELD_TOLD_SHARE if held else TOLD_SHARE):
        _finish(rng, turns, used)
        turns[1].thought = None
    return Conversation(turns, tools=offer(rng, instances))


def follow_up(rng: Random, held: bool) -> Conversation:
    """Wishes one after the other, each for any of the tools; only the last teaches, so training has one or two."""
    instances = draw_instances(rng, held, rng.choice([1, 2, 2, 3] if held else [2, 3, 3, 4, 4]))
    turns: list[Turn] = []
    for _ in range(rng.choice([2, 2, 3] if held else [1, 2])):
        instance = rng.choice(instances)
        if held or rng.random() >= BOTH_SHARE:
            ask, values, call = instance.request(rng, held)
            used, calls = [(instance, values)], [call]
        else:
            ask, used, calls = _both(rng, held, instance, rng.choice(instances))
        turns += [Turn("user", ask), Turn("assistant", calls=calls)]
        if held or rng.random() < TOLD_SHARE:
            _finish(rng, turns, used)
    return Conversation(turns, tools=offer(rng, instances))


def in_one_message(rng: Random, asks: list[str]) -> str:
    """Wishes as a list or one after the other."""
    if rng.random() < LIST_SHARE:
        form = rng.choice(SAID["lists"])
        return "".join(form.format(number=at + 1, ask=ask) for at, ask in enumerate(asks)).strip()
    text = asks[0]
    for ask in asks[1:]:
        text = joined(rng, False, text, ask)
    return text


def wishes(rng: Random, instances: list[Instance], count: int) -> Conversation:
    """So many wishes in one message, each for any of the tools, and their calls: choosing a tool is learned from few
    tokens."""
    requests = [rng.choice(instances).request(rng, False) for _ in range(count)]
    calls = [call for _, _, call in requests]
    thought = f"I need {NUMBER_WORDS[count]} calls." if count > 1 else f"I need {calls[0].name}."
    asked = in_one_message(rng, [ask for ask, _, _ in requests])
    turns = [Turn("user", asked), Turn("assistant", calls=calls, thought=thought)]
    return Conversation(turns, tools=offer(rng, instances))
