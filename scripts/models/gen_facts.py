"""Questions about Daybreak, from data/daybreak.txt: every phrase in every fitting wrapper."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random

from chat_format import Conversation
from plain_words import plain_words
from wording_noise import noise
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
    "I need to {}.",
    "I am trying to {}.",
    "Is there a way to {}?",
    "Help me {}.",
    "what do I have to do to {}",
    "What is needed to {}?",
    "Could you show me how to {}?",
    "Do you know how to {}?",
    "Which steps does it take to {}?",
    "I do not know how to {}.",
    "Explain to me how to {}.",
    "I have to {}. What now?",
    "Where do I begin if I want to {}?",
    "Is it possible to {}?",
    "Can I {}?",
    "how can one {}",
    "Let me know how to {}.",
    "What is the way to {}?",
    "What should I do if I want to {}?",
    "steps to {}",
    "Any idea how to {}?",
    "{}",
    "how to {} with daybreak",
    "Can you help me to {}?",
    "My plan is to {}. How does that work?",
    "In order to {}, what must I do?",
    "What can I do to {}?",
    "Say how to {}.",
    "I wish to {}.",
    "Someone asked me to {}. How is that done?",
    "What do I type to {}?",
    "Would you explain how to {}?",
    "I want you to tell me how to {}.",
    "Which request is there to {}?",
    "Which call lets me {}?",
    "Is there a request to {}?",
    "Is there a command to {}?",
    "Which command lets me {}?",
    "I would love to {}.",
    "I'd like to {}, please.",
    "How might I {}?",
    "How do people {}?",
    "How do we {} here?",
    "I must {}. How does it go?",
    "Where can I {}?",
    "How is it possible to {}?",
    "Suppose that I want to {}. What then?",
    "The next thing is to {}. How?",
    "It is time to {}. What do I do?",
    "I wanted to {}. What is to do?",
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
    "{}",
    "{}?",
    "Define {}.",
    "What is meant by {}?",
    "I do not understand {}.",
    "Help me understand {}.",
    "Give me information about {}.",
    "I want to know more about {}.",
    "Say something about {}.",
    "What can you say about {}?",
    "info on {}",
    "Teach me about {}.",
    "I read about {}. What is it?",
    "What should I know about {}?",
    "Would you explain {} to me?",
    "Please tell me what {} is.",
    "Do you know what {} is?",
    "I would like an explanation of {}.",
    "Give me a short explanation of {}.",
    "How do you explain {}?",
    "What does one need to know about {}?",
    "I heard of {}. Tell me more.",
    "I am interested in {}.",
    "Can you describe {}?",
    "Explain to me what {} is.",
    "And {}?",
    "What exactly is {}?",
    "Inform me about {}.",
    "Can you say something about {}?",
    "Would you tell me about {}?",
    "Could you explain {}?",
    "Please tell me about {}.",
    "Can you tell me about {}?",
    "A word about {}, please.",
    "What is the point of {}?",
    "What is behind {}?",
    "What does {} mean?",
    "I have heard about {}.",
    "I wonder what {} is.",
    "May I ask about {}?",
    "Can you tell me what {} is?",
    "my question is about {}",
    "Could you tell me about {}?",
]
THOUGHTS = ["This is about {}. I know it.", "The user asks about {}. I can answer that."]


@dataclass
class Fact:
    """One piece of knowledge: the ways to ask for it, more of them for training alone, and its right answers."""

    how: list[str] = field(default_factory=list)
    what: list[str] = field(default_factory=list)
    ask: list[str] = field(default_factory=list)
    more: dict[str, list[str]] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)

    @property
    def topic(self) -> str:
        return (self.what or self.how or ["Daybreak"])[0]

    def phrases(self, kind: str, held: bool) -> list[str]:
        """Verb phrases (how), noun phrases (what) or whole questions (ask) of one side."""
        side = list(templates(getattr(self, kind), held))
        return side if held else side + self.more.get(kind, [])


WRAPPERS = {"how": HOW, "what": WHAT, "ask": ["{}"]}


def _held_phrases(fact: Fact) -> list[str]:
    return [plain_words(line[-1]) for line in (fact.how, fact.what, fact.ask) if len(line) >= 3]


@lru_cache(maxsize=1)
def held_out() -> frozenset[str]:
    """What no question in training may hold: every held-out question, and their phrases of two words or more."""
    whole = {plain_words(question) for fact in facts() for question in held_questions(fact)}
    return frozenset(whole | {phrase for fact in facts() for phrase in _held_phrases(fact) if phrase.count(" ") > 2})


def repeats_held_out(text: str) -> bool:
    """Whether a text says something held out, in the same words."""
    plain = plain_words(text)
    return any(phrase in plain for phrase in held_out())


@lru_cache(maxsize=1)
def facts() -> list[Fact]:
    result: list[Fact] = []
    for block in SOURCE.read_text().split("\n\n"):
        fact = Fact()
        for line in block.splitlines():
            key, _, value = line.partition(": ")
            parts = [part.strip() for part in value.split(" | ")]
            if key in ("how", "what", "ask"):
                getattr(fact, key).extend(parts)
            elif key in ("how+", "what+", "ask+"):
                fact.more.setdefault(key[:-1], []).extend(parts)
            elif key == "a":
                fact.answers.append(value)
        if fact.answers:
            result.append(fact)
    held = {phrase for fact in result for phrase in _held_phrases(fact)}
    for fact in result:
        fact.more = {
            kind: [
                phrase
                for phrase in phrases
                if (plain := plain_words(phrase)) not in held
                and not any(other in plain for other in held if other.count(" ") > 2)
            ]
            for kind, phrases in fact.more.items()
        }
    return result


def questions(fact: Fact, held: bool) -> list[str]:
    """Every question of one side: held-out ones use held-out phrases only."""
    return [
        wrapper.format(phrase)
        for kind, wrappers in WRAPPERS.items()
        for phrase in fact.phrases(kind, held)
        for wrapper in templates(wrappers, held)
    ]


def held_questions(fact: Fact) -> list[str]:
    """Held-out questions, without those that training has seen because their list is too short to part."""
    seen = {plain_words(question) for question in questions(fact, held=False)}
    return [question for question in questions(fact, held=True) if plain_words(question) not in seen]


@lru_cache(maxsize=1)
def all_held_questions() -> list[tuple[str, Fact]]:
    return [(question, fact) for fact in facts() for question in held_questions(fact)]


def _training_question(rng: Random, fact: Fact) -> str:
    while True:
        kind = rng.choice([kind for kind in WRAPPERS if fact.phrases(kind, False)])
        phrase = rng.choice(fact.phrases(kind, False))
        question = noise(rng, choose(rng, WRAPPERS[kind], False).format(phrase))
        if not repeats_held_out(question):
            return question


def fact_question(rng: Random, held: bool) -> Conversation:
    if held:
        question, fact = rng.choice(all_held_questions())
    else:
        fact = rng.choice(facts())
        question = _training_question(rng, fact)
    thought = rng.choice(THOUGHTS).format(fact.topic)
    return Conversation.single(question, rng.choice(fact.answers), "facts", thought)
