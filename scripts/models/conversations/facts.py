"""Questions about Daybreak, from data/daybreak.txt: every phrase in every fitting wrapper."""

from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from conversations.noise import noise
from conversations.template import Conversation
from conversations.words import DATA, blocks, choose, plain_words, templates, wordings

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


WRAPPERS = wordings("facts")


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
    for lines in blocks(DATA / "daybreak.txt"):
        fact = Fact()
        for line in lines:
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
    return Conversation.single(question, rng.choice(fact.answers), thought)
