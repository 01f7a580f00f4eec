"""Questions about Daybreak, from data/daybreak.txt: every phrase in every fitting wrapper, with small changes that keep
its meaning (greetings, case, articles, synonyms, typing errors)."""

import re
from collections import defaultdict
from functools import cache
from random import Random

from conversations.template import Conversation
from conversations.words import DATA, blocks, choose, plain_words, templates, wordings

WRAPPERS, NOISE = wordings("facts"), wordings("noise")
SYNONYMS = [pair.split(" > ") for pair in NOISE["synonyms"]]
THOUGHTS = ["This is about {}. I know it.", "The user asks about {}. I can answer that."]
MOST_TELLING = 5
"""Shorter questions may hang on each of their words."""


class Fact:
    """One piece of knowledge: the ways to ask for it, by the keys of data/daybreak.txt, and its right answers."""

    def __init__(self, lines: list[str]) -> None:
        self.said: dict[str, list[str]] = defaultdict(list)
        for key, _, value in (line.partition(": ") for line in lines):
            self.said[key] += [value] if key == "a" else value.split(" | ")
        self.answers = self.said["a"]
        self.topic = [*self.said["what"], *self.said["how"], "Daybreak"][0]

    def phrases(self, kind: str, held: bool) -> list[str]:
        """Verb phrases (how), noun phrases (what) or whole questions (ask) of one side."""
        side = list(templates(self.said[kind], held))
        return side if held else side + self.said[f"{kind}+"]


@cache
def facts() -> list[Fact]:
    return [Fact(lines) for lines in blocks(DATA / "daybreak.txt")]


@cache
def held_out() -> frozenset[str]:
    """What no question in training may hold: every held-out question, and their phrases of two words or more."""
    whole = {plain_words(question) for question, _ in all_held_questions()}
    lists = [fact.said[kind] for fact in facts() for kind in WRAPPERS]
    phrases = {plain_words(phrases[-1]) for phrases in lists if len(phrases) >= 3}
    return frozenset(whole | {phrase for phrase in phrases if phrase.count(" ") > 2})


def repeats_held_out(text: str) -> bool:
    """Whether a text says something held out, in the same words."""
    plain = plain_words(text)
    return any(phrase in plain for phrase in held_out())


def questions(fact: Fact, held: bool) -> list[str]:
    """Every question of one side: held-out ones use held-out phrases only."""
    return [
        wrapper.format(phrase)
        for kind, wrappers in WRAPPERS.items()
        for phrase in fact.phrases(kind, held)
        for wrapper in templates(wrappers, held)
    ]


@cache
def all_held_questions() -> list[tuple[str, Fact]]:
    """Held-out questions, without those that training has seen because their list is too short to part."""
    result: list[tuple[str, Fact]] = []
    for fact in facts():
        seen = {plain_words(question) for question in questions(fact, held=False)}
        result += [(asked, fact) for asked in questions(fact, held=True) if plain_words(asked) not in seen]
    return result


def typing_error(rng: Random, text: str) -> str:
    """One letter too many, too few, or two in the wrong order, within a plain word."""
    places = list(re.finditer(r"\b[a-z]{5,}\b", text))
    if not places:
        return text
    place = rng.choice(places)
    at = rng.randrange(place.start() + 1, place.end() - 1)
    before, letter, after = text[:at], text[at], text[at + 1 :]
    return rng.choice([before + after, before + 2 * letter + after, before + after[0] + letter + after[1:]])


def synonym(rng: Random, text: str) -> str:
    """One word in another word, where one fits."""
    fitting = [(old, new) for old, new in SYNONYMS if re.search(rf"\b{old}\b", text, re.I)]
    if not fitting:
        return text
    old, new = rng.choice(fitting)
    changed = re.sub(rf"\b{old}\b", new, text, count=1, flags=re.I)
    return changed[0].upper() + changed[1:] if text[0].isupper() else changed


def word_lost(rng: Random, text: str) -> str:
    """The question without one of its words: it is then to be understood by the others."""
    words = text.split()
    if len(words) < MOST_TELLING or "`" in text:
        return text
    del words[rng.randrange(len(words))]
    return " ".join(words)


def noise(rng: Random, text: str) -> str:
    """The question with some small changes, or as it was."""
    if rng.random() < 0.2:
        text = synonym(rng, text)
    if rng.random() < 0.12:
        text = word_lost(rng, text)
    if rng.random() < 0.06:
        text = re.sub(r"\b(?:the|an|a) ", "", text)
    if rng.random() < 0.06:
        text = typing_error(rng, text)
    if rng.random() < 0.06:
        text = text.rstrip(".?!") + rng.choice(["?", ".", "", "!", "??", " ?"])
    if rng.random() < 0.08:
        before = rng.choice(NOISE["before"])
        text = before + " " + (text[0].lower() + text[1:] if text[:2] not in ("I ", "I'") else text)
    if rng.random() < 0.05:
        text = text + rng.choice(NOISE["after"])
    if rng.random() < 0.15:
        text = text.lower() if "`" not in text else text
    return text.strip()


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
