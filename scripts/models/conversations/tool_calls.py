"""Conversations with tools: one call, two calls at once, many, using the results, and leaving tools alone."""

from random import Random

from conversations.template import Call, Conversation, Turn
from conversations.tool_kinds import Value
from conversations.tool_offers import Instance, draw_instances, offer
from conversations.words import NUMBER_WORDS, wordings

SAID = wordings("calls")
NO_JOINT_SHARE = 0.3
"""Share of wishes, in training, that follow the one before as the next sentence, with no word between them."""
FRAMED_SHARE, BOTH_SHARE = 0.4, 0.35
"""Shares, in training, of two wishes put into a frame, and of wishes for two calls in a row of wishes."""
SAME_FORM_SHARE = 0.5
"""Share, in training, of two wishes for one tool that differ in nothing but their values."""
TOLD_SHARE, HELD_TOLD_SHARE = 0.25, 0.5
"""Share of calls whose results are told; the others are drills."""
LIST_SHARE = 0.4
Used = list[tuple[Instance, dict[str, Value]]]
"""Tools and the values that they are called with."""


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
    """So many wishes in one message, each for any of the tools, and their calls: choosing a tool is learnt from few
    tokens."""
    requests = [rng.choice(instances).request(rng, False) for _ in range(count)]
    calls = [call for _, _, call in requests]
    thought = f"I need {NUMBER_WORDS[count]} calls." if count > 1 else f"I need {calls[0].name}."
    asked = in_one_message(rng, [ask for ask, _, _ in requests])
    turns = [Turn("user", asked), Turn("assistant", calls=calls, thought=thought)]
    return Conversation(turns, tools=offer(rng, instances))
