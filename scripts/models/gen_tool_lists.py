"""Several wishes in one message, each for any of the tools on offer: choosing one is then learnt from few tokens."""

from __future__ import annotations

from random import Random

from chat_format import Conversation, Turn
from gen_tools import joined, two_calls
from tool_instances import Instance, draw_instances, offer
from words import NUMBER_WORDS

LISTS = ("{number}. {ask}\n", "- {ask}\n", "{ask}\n", "* {ask}\n", "{number}) {ask} ")
"""How one wish of a list is written."""
LIST_SHARE = 0.4


def in_one_message(rng: Random, asks: list[str]) -> str:
    """Wishes as a list or one after the other."""
    if rng.random() < LIST_SHARE:
        form = rng.choice(LISTS)
        return "".join(form.format(number=at + 1, ask=ask) for at, ask in enumerate(asks)).strip()
    text = asks[0]
    for ask in asks[1:]:
        text = joined(rng, False, text, ask)
    return text


def many_calls(rng: Random, held: bool) -> Conversation:
    """Three to six wishes and their calls; on the held-out side, which asks for two at most, two."""
    if held:
        return two_calls(rng, held)
    instances = draw_instances(rng, held, rng.choice([2, 3, 3, 4, 4, 5]))
    return wishes(rng, instances, rng.choice([3, 3, 4, 4, 5, 6]), "tools_many")


def wishes(rng: Random, instances: list[Instance], count: int, task: str) -> Conversation:
    """So many wishes in one message, each for any of the tools, and their calls."""
    requests = [rng.choice(instances).request(rng, False) for _ in range(count)]
    calls = [call for _, _, call in requests]
    thought = f"I need {NUMBER_WORDS[count]} calls." if count > 1 else f"I need {calls[0].name}."
    turns = [
        Turn("user", in_one_message(rng, [ask for ask, _, _ in requests])),
        Turn("assistant", calls=calls, thought=thought),
    ]
    return Conversation(turns, tools=offer(rng, instances), task=task)
