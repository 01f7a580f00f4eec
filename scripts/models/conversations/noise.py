"""Small changes to a question that keep its meaning: greetings, case, articles, synonyms, typing errors."""

import re
from random import Random

from conversations.words import wordings

SAID = wordings("noise")
SYNONYMS = [pair.split(" > ") for pair in SAID["synonyms"]]


MOST_TELLING = 5
"""Shorter questions may hang on each of their words."""


def typing_error(rng: Random, text: str) -> str:
    """One letter too many, too few, or two in the wrong order, within a plain word."""
    places = list(re.finditer(r"\b[a-z]{5,}\b", text))
    if not places:
        return text
    place = rng.choice(places)
    at = rng.randrange(place.start() + 1, place.end() - 1)
    return rng.choice(
        [
            text[:at] + text[at + 1 :],
            text[:at] + text[at] + text[at:],
            text[:at] + text[at + 1] + text[at] + text[at + 2 :],
        ]
    )


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
        before = rng.choice(SAID["before"])
        text = before + " " + (text[0].lower() + text[1:] if text[:2] not in ("I ", "I'") else text)
    if rng.random() < 0.05:
        text = text + rng.choice(SAID["after"])
    if rng.random() < 0.15:
        text = text.lower() if "`" not in text else text
    return text.strip()
