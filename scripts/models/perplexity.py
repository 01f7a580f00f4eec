"""How sure the model is of held-out answers, through the daemon: each token is scored with the right ones before it."""

from __future__ import annotations

import math
from random import Random

from chat_format import encode
from daemon_client import Daemon
from gen_facts import fact_question
from gen_numbers import addition, comparison, conversion, sort_numbers, subtraction
from gen_system import named_model
from gen_talk import named_user, small_talk, unknown
from gen_tools import tool_call, two_calls
from gen_words import as_json, echo, letters, spell, upper
from spm_tokenizer import IM_END, Tokenizer

KINDS = (
    *(fact_question, unknown, tool_call, fact_question, two_calls, small_talk, spell, addition, fact_question, tool_call),
    *(as_json, sort_numbers, unknown, upper, two_calls, named_user, letters, subtraction, fact_question, echo),
    *(comparison, conversion, named_model),
)
"""What is asked, in turn: not drawn as training draws, so that the figure can be compared when its weights change."""

MOST_ALTERNATIVES = 20
"""The daemon tells the probabilities of so many tokens."""
AT_ONCE = 32
"""Prompts in one request."""


def perplexity(daemon: Daemon, tokenizer: Tokenizer, count: int) -> tuple[float, int]:
    """Perplexity a token over the answers of so many held-out conversations, and the number of tokens.

    Ends of answers are left out, for the daemon does not report them. A token that is not among those reported counts
    as if it were as probable as the last of them, and one in whose place the answer would end as one in 20,000.
    """
    rng = Random("evaluate perplexity")
    loss, tokens = 0.0, 0
    for index in range(count):
        conversation = KINDS[index % len(KINDS)](rng, True)
        for turn in conversation.turns:
            turn.thought = None
        ids, learn = encode(conversation, tokenizer)
        places = [at for at, own in enumerate(learn) if own and ids[at] != IM_END]
        for start in range(0, len(places), AT_ONCE):
            part = places[start : start + AT_ONCE]
            for at, alternatives in zip(part, _following(daemon, [ids[:at] for at in part])):
                least = min(alternatives.values(), default=-math.log(20_000))
                loss -= alternatives.get(tokenizer.decode([ids[at]]), least)
                tokens += 1
    return math.exp(loss / tokens), tokens


def _following(daemon: Daemon, prompts: list[list[int]]) -> list[dict[str, float]]:
    """What may follow each prompt: texts of tokens and the logarithms of their probabilities."""
    body = {"model": daemon.model, "prompt": prompts, "max_tokens": 1, "temperature": 0, "logprobs": MOST_ALTERNATIVES}
    choices = daemon.post("/v1/completions", body)["choices"]
    return [choice["logprobs"]["top_logprobs"][0] if choice["logprobs"] else {} for choice in choices]
