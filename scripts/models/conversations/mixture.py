"""The mixture that daybreak-mini learns from: every generator with its weight, system prompts and several turns."""

from collections.abc import Callable
from random import Random

from conversations import number_tasks, word_tasks
from conversations.facts import fact_question
from conversations.scenes import picture_in_words
from conversations.system_prompts import named_model, one_word, system_prompt
from conversations.talk import named_user, small_knowledge, small_talk, story, unknown
from conversations.template import Conversation
from conversations.tool_calls import follow_up, tool_call, two_calls, unused_tools
from conversations.tool_drills import binding_drill, choice_drill, many_calls, slots_drill

Generator = Callable[[Random, bool], Conversation]
THINKING_SHARE = 0.3
"""Conversations that are rendered with thinking on."""
LONG_SHARE = 0.18
"""Plain questions that are joined to a conversation of several turns."""
VERY_LONG_SHARE = 0.004
"""Those that go on for up to a thousand tokens, so that far positions are learnt too."""
SYSTEM_SHARE = 0.12
"""Conversations that get a system prompt which changes nothing."""
STAGES = {"easiest": 0.85, "drills": 0.8, "mixture": 0.0}
"""Stages of a training that begins from nothing, and the share of conversations that are drills in finding a tool by
its description. Beside everything else the model never learns that, so it comes first."""


def _group(generators: list[tuple[Generator, float]]) -> Generator:
    functions, weights = zip(*generators)
    return lambda rng, held: rng.choices(functions, weights)[0](rng, held)


def _drill(make: Callable[[Random], Conversation], instead: Generator = tool_call) -> Generator:
    """A drill, which has no place on the held-out side: another conversation stands there."""
    return lambda rng, held: instead(rng, held) if held else make(rng)


words_task, numbers_task = _group(word_tasks.GENERATORS), _group(number_tasks.GENERATORS)
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
beside_tools = _group([(fact_question, 10.0), (small_talk, 5.0), (words_task, 4.0), (word_tasks.as_json, 1.0)])
OTHER: list[tuple[Generator, float]] = [
    (named_user, 3.5),
    (tool_call, 62.0),
    (two_calls, 68.0),
    (follow_up, 4.0),
    (_drill(many_calls, two_calls), 15.0),
    (_drill(choice_drill), 24.0),
    (_drill(binding_drill), 18.0),
    (_drill(slots_drill), 34.0),
    (named_model, 1.5),
    (one_word, 8.0),
    (picture_in_words, 15.0),
    (lambda rng, held: unused_tools(rng, held, beside_tools(rng, held)), 2.0),
]
_any = _group(PLAIN + OTHER)


def sample(rng: Random, held: bool = False, copying: float = 0.02, stage: str = "mixture") -> Conversation:
    """One conversation of the mixture; `copying` is the share of long rows to repeat."""
    if STAGES[stage] and rng.random() < STAGES[stage]:
        return binding_drill(rng, easiest=stage == "easiest")
    if rng.random() < copying:
        conversation = rng.choice([word_tasks.copy_long, word_tasks.quote_long])(rng, held)
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
