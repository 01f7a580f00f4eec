"""The mixture that daybreak-mini learns from: every generator with its weight, system prompts and several turns."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from random import Random

import gen_numbers
import gen_words
from chat_format import Conversation, segments
from gen_copies import copy_long, quote_long
from gen_facts import fact_question
from gen_picture import picture_in_words
from gen_system import named_model, one_word, system_prompt
from gen_talk import named_user, small_knowledge, small_talk, story, unknown
from gen_tool_binding import binding_drill
from gen_tool_choice import choice_drill
from gen_tool_lists import many_calls
from gen_tool_slots import slots_drill
from gen_tools import follow_up, tool_call, two_calls, unused_tools

Generator = Callable[[Random, bool], Conversation]
THINKING_SHARE = 0.3
"""Conversations that are rendered with thinking on."""
LONG_SHARE = 0.18
"""Plain questions that are joined to a conversation of several turns."""
VERY_LONG_SHARE = 0.004
"""Those that go on for up to a thousand tokens, so that far positions are learnt too."""
SYSTEM_SHARE = 0.12
"""Conversations that get a system prompt which changes nothing."""


def _group(generators: list[tuple[Generator, float]]) -> Generator:
    functions, weights = zip(*generators)
    return lambda rng, held: rng.choices(functions, weights)[0](rng, held)


words_task, numbers_task = _group(gen_words.GENERATORS), _group(gen_numbers.GENERATORS)
PLAIN: list[tuple[Generator, float]] = [
    (fact_question, 165.0),
    (small_talk, 11.0),
    (unknown, 42.0),
    (small_knowledge, 3.0),
    (story, 0.5),
    (words_task, 70.0),
    (numbers_task, 53.0),
]
plain_question = _group(PLAIN)
# Nothing that a tool might do better.
beside_tools = _group([(fact_question, 10.0), (small_talk, 5.0), (words_task, 4.0), (gen_words.as_json, 1.0)])
OTHER: list[tuple[Generator, float]] = [
    (named_user, 3.5),
    (tool_call, 62.0),
    (two_calls, 68.0),
    (follow_up, 4.0),
    (many_calls, 15.0),
    (choice_drill, 24.0),
    (binding_drill, 18.0),
    (slots_drill, 34.0),
    (named_model, 1.5),
    (one_word, 8.0),
    (picture_in_words, 15.0),
    (lambda rng, held: unused_tools(rng, held, beside_tools(rng, held)), 2.0),
]
_any = _group(PLAIN + OTHER)


def sample(rng: Random, held: bool = False, copying: float = 0.02) -> Conversation:
    """One conversation of the mixture; `copying` is the share of long rows to repeat."""
    if rng.random() < copying:
        conversation = rng.choice([copy_long, quote_long])(rng, held)
    else:
        conversation = _any(rng, held)
    if not conversation.tools and len(conversation.turns) == 2 and rng.random() < LONG_SHARE:
        extra = rng.randint(8, 25) if rng.random() < VERY_LONG_SHARE / LONG_SHARE else rng.choice([1, 1, 2, 3])
        for _ in range(extra):
            conversation.turns += plain_question(rng, held).turns
    if conversation.system is None and rng.random() < SYSTEM_SHARE:
        conversation.system = system_prompt(rng, held)
    if rng.random() >= THINKING_SHARE:
        for turn in conversation.turns:
            turn.thought = None
    return conversation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="conversations to print")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--held", action="store_true", help="draw from the held-out side")
    options = parser.parse_args()
    rng = Random(options.seed)
    for _ in range(options.count):
        print("".join(text for text, _ in segments(sample(rng, options.held))))


if __name__ == "__main__":
    main()
