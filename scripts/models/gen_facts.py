"""Questions about Daybreak, from data/daybreak.txt: every phrase in every fitting wrapper."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random

from chat_format import Conversation
from words import choose, templates

SOURCE = Path(__file__).parent / "data" / "daybreak.txt"
HOW = [
    "How do I {}?",
    "How can I {}?",
    "How to {}?",
    "how do i {}",
    "I want to {}.",
    "I want to {}. How?",
    "Tell me how to {}.",
    "Show me how to {}.",
    "What must I do to {}?",
    "How does one {}?",
    "Please explain how to {}.",
    "Can you tell me how to {}?",
    "What is the best way to {}?",
    "How would I {}?",
    "I would like to {}. What do I do?",
]
WHAT = [
    "What is {}?",
    "What is {} exactly?",
    "what is {}",
    "Explain {}.",
    "Please explain {}.",
    "Tell me about {}.",
    "Tell me something about {}.",
    "What do you know about {}?",
    "Describe {}.",
    "What about {}?",
    "Can you explain {}?",
    "I have a question about {}.",
    "Could you tell me about {}?",
]
THOUGHTS = ["This is about {}. I know it.", "The user asks about {}. I can answer that."]


@dataclass
class Fact:
    """One piece of knowledge: the ways to ask for it and its right answers."""

    how: list[str] = field(default_factory=list)
    what: list[str] = field(default_factory=list)
    ask: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    @property
    def topic(self) -> str:
        return (self.what or self.how or ["Daybreak"])[0]


@lru_cache(maxsize=1)
def facts() -> list[Fact]:
    result: list[Fact] = []
    for block in SOURCE.read_text().split("\n\n"):
        fact = Fact()
        for line in block.splitlines():
            key, _, value = line.partition(": ")
            if key in ("how", "what", "ask"):
                getattr(fact, key).extend(part.strip() for part in value.split(" | "))
            elif key == "a":
                fact.answers.append(value)
        if fact.answers:
            result.append(fact)
    return result


def questions(fact: Fact, held: bool) -> list[str]:
    """Every question of one side: held-out ones use held-out phrases only."""
    result = [wrapper.format(phrase) for phrase in templates(fact.how, held) for wrapper in templates(HOW, held)]
    result += [wrapper.format(phrase) for phrase in templates(fact.what, held) for wrapper in templates(WHAT, held)]
    return result + list(templates(fact.ask, held))


def held_questions(fact: Fact) -> list[str]:
    """Held-out questions, without those that training has seen because their list is too short to part."""
    seen = set(questions(fact, held=False))
    return [question for question in questions(fact, held=True) if question not in seen]


def _question(rng: Random, fact: Fact, held: bool) -> str:
    kinds = [kind for kind in (fact.how, fact.what, fact.ask) if kind]
    kind = rng.choice(kinds)
    phrase = choose(rng, kind, held)
    if kind is fact.ask:
        return phrase
    return choose(rng, HOW if kind is fact.how else WHAT, held).format(phrase)


def fact_question(rng: Random, held: bool) -> Conversation:
    fact = rng.choice(facts())
    thought = rng.choice(THOUGHTS).format(fact.topic)
    return Conversation.single(_question(rng, fact, held), rng.choice(fact.answers), "facts", thought)
