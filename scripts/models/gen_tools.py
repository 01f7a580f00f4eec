"""Conversations with tools: one call, two calls at once, using the results, and leaving tools alone."""

from __future__ import annotations

import json
from random import Random

from chat_format import Call, Conversation, Tool, Turn
from made_up_shapes import made_up_shape
from plain_words import plain_words
from tool_kind import ToolKind, Value
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
from words import choose, invented

KINDS = LOOK_UP_KINDS + MESSAGE_KINDS + MONEY_HOME_KINDS + PLACE_KINDS
TRAINING_KINDS = EVERYDAY_KINDS + WORK_KINDS + TRIP_KINDS + HOME_KINDS + SHOP_KINDS + OFFICE_KINDS
TRAINING_KINDS += TECH_KINDS + HEALTH_KINDS
ALIKE_SHARE = 0.08
"""Share of offers, in training, of made-up tools that differ in a word."""
MADE_UP_SHARE, SHAPE_SHARE, OWN_SHARE = 0.1, 0.12, 0.36
"""Shares of kinds in training: made up on the spot, likewise with shapes of their own, and those whose held-out
wordings are asked in the evaluation."""
ENDINGS = " now| please|, please| today| for me| right now|, thanks| at once| if you can| again".split("|")
"""What may stand behind a wish that ends in a value of one word, in training: it is no part of the value."""
ONE_WORD_SLOTS = ("city}", "country}", "day}", "time}", "language}", "n}", "days}", "minutes}", "count}", "max}")
OPENING_SHARE, ENDING_SHARE = 0.08, 0.2
OPENINGS = (
    "Hi. | Hello! | Hey, | Please help me. | One more thing: | OK, now: | I have a wish. | Good day! | Next: | Hm. | "
    "Something else: | Quickly: | Good morning. | A small task: "
).split("| ")
"""What may stand before a wish, in training."""
HELD_JOINTS = (" And: ", " Also: ", " ", " Then: ")
JOINTS = HELD_JOINTS + tuple(
    " | And | Then | After that: | Also, | And then: | Besides: | Next: | Secondly: | Plus: | And also: | "
    "Another thing: | And one more: | And please: | Moreover: ".split("|")
)
"""What stands between two wishes."""
FRAMES = (
    "{} and {}. | {}, and {}. | {} and also {}. | {}, then {}. | First {}, then {}. | First {} and then {}. | "
    "Two things: {}, and {}. | 1. {} 2. {} | {}; {} | {} as well as {}. | Both: {} and {}. | {}, {} | "
    "Do two things: {}. {}. | {} before you do this: {}. | {}\n{} | - {}\n- {} | {} & {} | {}, but also {}."
).split(" | ")
"""Two wishes in one sentence or list, in training."""
LINKS = (" and ", " and ", " and ", ", and ", " and also ", " & ", " and then ", " as well as ")
"""What stands between two values of one argument."""
FRAMED_SHARE, BOTH_SHARE = 0.4, 0.35
"""Shares, in training, of two wishes put into a frame, and of wishes for two calls in a row of wishes."""
RESULT_ANSWER_PLAIN = 0.25
"""Share of results that come as bare text instead of JSON."""
TOLD_SHARE = 0.25
"""Share of calls, in training, whose results are told; the others are drills."""


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
        if not held and rng.random() < 0.2:
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
        ask = rng.choice(asks) if self.kind.training_only else choose(rng, asks, False)
        bare = ask.rstrip(".?!")
        if bare.endswith(ONE_WORD_SLOTS) and rng.random() < ENDING_SHARE:
            longer = bare + rng.choice(ENDINGS) + ask[len(bare) :]
            # An ending must not make the held-out wording of a trained one.
            if self.kind.training_only or plain_words(longer) != plain_words(choose(rng, asks, True)):
                ask = longer
        return f"{rng.choice(OPENINGS).strip()} {ask}" if rng.random() < OPENING_SHARE else ask

    def request(self, rng: Random, held: bool) -> tuple[str, dict[str, Value], Call]:
        """A wish of the user, its values by slot, and the call that fulfils it (in the signature's order)."""
        values = {slot: parameter.value(rng, held) for slot, parameter in self.kind.parameters.items()}
        ask = self.wording(rng, held).format(**values)
        by_name = {self.names[slot]: value for slot, value in values.items()}
        arguments = {parameter: by_name[parameter] for parameter in self.tool.parameters if parameter in by_name}
        return ask, values, Call(self.tool.name, arguments)

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
    kinds = rng.sample(KINDS, wanted)
    if not held and wanted > 1 and rng.random() < ALIKE_SHARE:
        kinds = made_up_alike(rng, wanted)
    elif not held:
        other = iter(rng.sample(TRAINING_KINDS, wanted))
        kinds = [_training_kind(rng, own, next(other)) for own in kinds]
    else:
        kinds[0] = rng.choice(HELD_KINDS) if rng.random() < 0.5 else kinds[0]
    result: list[Instance] = []
    for kind in kinds:
        instance = Instance(rng, kind, held)
        if all(instance.tool.name != other.tool.name for other in result):
            result.append(instance)
    return result


def offer(rng: Random, instances: list[Instance]) -> list[Tool]:
    tools = [instance.tool for instance in instances]
    rng.shuffle(tools)
    return tools


def _finish(rng: Random, turns: list[Turn], used: list[tuple[Instance, dict[str, Value]]]) -> None:
    results, answers = zip(*(instance.respond(rng, values) for instance, values in used))
    turns += [Turn("tool", results=list(results)), Turn("assistant", " ".join(answers))]


def tool_call(rng: Random, held: bool) -> Conversation:
    """One call, in most cases with its result and the answer."""
    instances = draw_instances(rng, held, rng.choice([1, 1, 2, 2, 3] if held else [1, 2, 2, 3, 3, 4]))
    ask, values, call = instances[0].request(rng, held)
    thought = f"I need {call.name}." if rng.random() < 0.5 else f"The tool {call.name} fits."
    turns = [Turn("user", ask), Turn("assistant", calls=[call], thought=thought)]
    if rng.random() < (0.5 if held else TOLD_SHARE):
        _finish(rng, turns, [(instances[0], values)])
        # With results the thought before the call is over; template and history keep it only when asked to think.
        if rng.random() < 0.7:
            turns[1].thought = None
        else:
            turns[-1].thought = "I have the result."
    return Conversation(turns, tools=offer(rng, instances), task="tools")


Wish = tuple[str, list[tuple[Instance, dict[str, Value]]], list[Call]]
"""What a user says, what of the tools it uses with which values, and the calls."""


def _both(rng: Random, held: bool, first: Instance, second: Instance) -> Wish:
    """A wish for two calls, or for one where the two would be the same."""
    ask, values, call = first.request(rng, held)
    ask2, values2, call2 = second.request(rng, held)
    used, calls = [(first, values), (second, values2)], [call, call2]
    slot = next(iter(first.kind.parameters), "")
    if first is second and len(first.kind.parameters) == 1 and values[slot] != values2[slot]:
        link = " and " if held else rng.choice(LINKS)
        joint_ask = first.wording(rng, held).format(**{slot: f"{values[slot]}{link}{values2[slot]}"})
        return (ask, used[:1], calls[:1]) if isinstance(values[slot], int) else (joint_ask, used, calls)
    if call == call2:
        return ask, used[:1], calls[:1]
    if not held and rng.random() < FRAMED_SHARE:
        frame = rng.choice(FRAMES)
        return frame.format(_inner(rng, ask), _inner(rng, ask2)), used, calls
    joints = HELD_JOINTS if held else JOINTS
    joint = rng.choice(joints) if ask[-1] in ".?!" else ". "
    return f"{ask}{joint}{ask2}", used, calls


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
    if rng.random() < (0.5 if held else TOLD_SHARE):
        _finish(rng, turns, used)
        turns[1].thought = None
    return Conversation(turns, tools=offer(rng, instances), task="tools_two")


def unused_tools(rng: Random, held: bool, other: Conversation) -> Conversation:
    """A plain question while tools are on offer that do not help."""
    instances = draw_instances(rng, held, rng.randint(1, 2))
    other.tools = offer(rng, instances)
    other.task += "_with_tools"
    return other


def follow_up(rng: Random, held: bool) -> Conversation:
    """Wishes one after the other, each for any of the tools: the signatures are read once, and teach several calls."""
    instances = draw_instances(rng, held, rng.choice([1, 2, 2, 3] if held else [2, 3, 3, 4, 4]))
    turns: list[Turn] = []
    for _ in range(rng.choice([2, 2, 3] if held else [3, 4, 4, 5, 6])):
        instance = rng.choice(instances)
        if held or rng.random() >= BOTH_SHARE:
            ask, values, call = instance.request(rng, held)
            used, calls = [(instance, values)], [call]
        else:
            ask, used, calls = _both(rng, held, instance, rng.choice(instances))
        turns += [Turn("user", ask), Turn("assistant", calls=calls)]
        if held or rng.random() < TOLD_SHARE:
            _finish(rng, turns, used)
    return Conversation(turns, tools=offer(rng, instances), task="tools")
