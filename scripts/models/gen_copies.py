"""Drills in copying, for training alone: whatever repeats the user's words depends on them."""

from __future__ import annotations

import json
from random import Random

from chat_format import Conversation
from gen_words import WORDINGS
from word_pieces import pieces
from words import WORDS, choose, city, invented, name, pick

TABLE_WORDINGS = ["Write as a JSON object:", "Make a JSON object:", "JSON object:", "As JSON:", "Turn into a JSON object:"]
"""For drills in training alone."""


def _part(rng: Random, held: bool) -> str:
    """Something to copy."""
    return rng.choice(
        [
            invented(rng),
            pick(rng, WORDS, held),
            name(rng, held),
            city(rng, held),
            str(rng.randint(0, 999)),
            invented(rng).upper(),
            pieces(rng),
            pieces(rng),
            pieces(rng, 1),
        ]
    )


def copy_long(rng: Random, held: bool) -> Conversation:
    """A long row of words, numbers and names to repeat: what teaches a young model to copy at all."""
    text = rng.choice([" ", " ", ", ", "-"]).join(_part(rng, held) for _ in range(rng.randint(2, 14)))
    return Conversation.single(choose(rng, WORDINGS["echo"], held).format(text), text, "echo", "I repeat it.")


def quote_long(rng: Random, held: bool) -> Conversation:
    """A row to write as JSON. In quotes a word has no space before it and so has other tokens: tools depend on it."""
    parts = [" ".join(_part(rng, held) for _ in range(rng.choice([1, 1, 2, 3]))) for _ in range(rng.randint(1, 8))]
    if rng.random() < 0.5:
        question, value = choose(rng, WORDINGS["list_json"], held).format(", ".join(parts)), json.dumps(parts)
    else:
        table = {_part(rng, held): int(part) if part.isdigit() else part for part in parts[:4]}
        told = ", ".join(f"{key}{rng.choice([' is ', ': ', ' = '])}{value}" for key, value in table.items())
        question, value = f"{rng.choice(TABLE_WORDINGS)} {told}", json.dumps(table)
    return Conversation.single(question, value, "json", "I write it as JSON.")
