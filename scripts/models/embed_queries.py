"""Turns questions and passages into the many forms in which people search: shorter, other words, a part of the text."""

from __future__ import annotations

import re
from random import Random

from embed_data import SYNONYMS
from embed_pages import Passage, passages

OTHER_WORDS: dict[str, list[str]] = {}
for _group in SYNONYMS:
    for _word in _group.split():
        OTHER_WORDS.setdefault(_word, []).extend(other for other in _group.split() if other != _word)
FRAMES = [
    "What is {}?",
    "What does {} mean?",
    "Tell me about {}.",
    "How does it work: {}?",
    "Which {}?",
    "What happens with {}?",
    "How do I {}?",
    "Is there {}?",
    "Can it {}?",
    "Where is {}?",
    "Why {}?",
    "What about {}?",
]
"""What people put around the words they look for."""


def reworded(rng: Random, text: str, drop: float = 0.08, swap: float = 0.1) -> str:
    """The text with some words left out and some in place of others of their meaning."""
    result = []
    for word in text.split():
        bare = re.sub(r"\W", "", word).lower()
        if rng.random() < drop:
            continue
        result.append(rng.choice(OTHER_WORDS[bare]) if bare in OTHER_WORDS and rng.random() < swap else word)
    return " ".join(result) or text


def thinned(rng: Random, passage: Passage) -> str:
    """A passage as training shows it: mostly whole, sometimes without some words, its heading, or its punctuation."""
    section, body = passage.section, passage.body
    chance = rng.random()
    if chance < 0.3:
        body = " ".join(word for word in body.split() if rng.random() > 0.15) or body
    elif chance < 0.4:
        body = re.sub(r"[^\w\s]", " ", body)
    if rng.random() < 0.1:
        return body
    return f"{section}. {body}"


def cropped(rng: Random, index: int) -> tuple[str, tuple[int, ...]]:
    """A few words of a passage as a query, and all passages that hold them."""
    passage = passages()[index]
    body = passage.body.split()
    start = rng.randrange(max(1, len(body) - 4))
    taken = body[start : start + rng.randint(3, 9)]
    phrase = " ".join(taken)
    holding = tuple(i for i, other in enumerate(passages()) if phrase in other.body)
    query = reworded(rng, phrase, 0.25, 0.15)
    if rng.random() < 0.3:
        # The part of the heading that is not the page's title.
        query = f"{passage.section.split(': ')[-1]} {query}"
    if rng.random() < 0.5:
        query = rng.choice(FRAMES).format(query.rstrip(".,;:"))
    return query, holding or (index,)
