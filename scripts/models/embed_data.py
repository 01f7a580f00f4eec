"""Pairs of texts of one meaning for daybreak-mini-embed: questions, and sentences in other words."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from random import Random

import gen_numbers
import gen_words
from embed_pages import is_kept_out
from gen_facts import facts, questions
from gen_talk import TALK
from words import (
    ANIMALS,
    CITIES,
    COLOURS,
    COUNTRIES,
    DAYS,
    FIELDS,
    FOODS,
    LANGUAGES,
    MONTHS,
    NAMES,
    NATURE,
    QUALITIES,
    THINGS,
    VERBS,
    WORDS,
    invented,
    pick,
    templates,
)

Pair = tuple[str, str, str]
"""Two texts, and what both mean: pairs of one meaning are not held against each other."""
SOURCE = json.loads((Path(__file__).parent / "data" / "sentence-frames.json").read_text())
FRAMES: list[list[str]] = SOURCE["frames"]
"""One sentence in several wordings, the last of them held out."""
SYNONYMS: list[str] = SOURCE["synonyms"]


def _slots(rng: Random, held: bool) -> dict[str, str]:
    def some(entities: list[str]) -> str:
        return pick(rng, entities, held)

    def person() -> str:
        return invented(rng).capitalize() if rng.random() < 0.15 else some(NAMES)

    thing, animal, colour = some(THINGS), some(ANIMALS), some(COLOURS)
    an = lambda word: f"{'an' if word[0] in 'aeiou' else 'a'} {word}"  # noqa: E731
    return {
        "name": person(),
        "name2": person(),
        "thing": thing,
        "a_thing": an(thing),
        "city": some(CITIES),
        "colour": colour,
        "a_colour": an(colour),
        "food": some(FOODS),
        "animal": animal,
        "an_animal": an(animal),
        "verb": some(VERBS),
        "field": some(FIELDS),
        "language": some(LANGUAGES),
        "day": rng.choice(DAYS),
        "month": rng.choice(MONTHS),
        "country": some(COUNTRIES),
        "nature": some(NATURE),
        "quality": some(QUALITIES),
    }


def _said(rng: Random, frame: list[str], slots: dict[str, str]) -> Pair:
    first, second = rng.sample(list(templates(frame, False)), 2)
    pair = first.format(**slots), second.format(**slots)
    return *pair, frame[0].format(**slots)


def sentence_pairs(rng: Random, count: int) -> list[Pair]:
    """Sentences in two wordings, in threes that are easily taken for each other: one frame of other things, and another
    frame of the same things."""
    result: list[Pair] = []
    while len(result) < count:
        (frame, other), slots = rng.sample(FRAMES, 2), _slots(rng, False)
        result += [
            _said(rng, frame, slots),
            _said(rng, frame, _slots(rng, False)),
            _said(rng, other, slots),
        ]
    return result[:count]


def triple(rng: Random) -> tuple[str, str, str]:
    """A held-out sentence, its paraphrase, and another: the same frame of other things, or another frame of the same."""
    frame, slots = rng.choice(FRAMES), _slots(rng, True)
    anchor, right = rng.choice(frame[:-1]).format(**slots), frame[-1].format(**slots)
    while True:
        if rng.random() < 0.5:
            wrong = rng.choice(frame).format(**_slots(rng, True))
        else:
            wrong = rng.choice(rng.choice(FRAMES)).format(**slots)
        if all(wrong != form.format(**slots) for form in frame):
            return anchor, right, wrong


@lru_cache(maxsize=1)
def _fact_questions() -> list[list[str]]:
    """The questions of every fact, without those that the search is evaluated with."""
    return [[text for text in questions(fact, False) if not is_kept_out(text)] for fact in facts()]


def fact_pairs(rng: Random, count: int) -> list[Pair]:
    """Questions of different facts, each with another question for the same or with the answer."""
    result = []
    for index in rng.sample(range(len(facts())), count):
        asked = _fact_questions()[index]
        texts = rng.sample(asked, min(2, len(asked)))
        texts.append(rng.choice(facts()[index].answers))
        if len(texts) > 1:
            result.append((texts[0], rng.choice(texts[1:]), f"fact {index}"))
    return result


def talk_pairs(rng: Random, count: int) -> list[Pair]:
    chosen = rng.sample(range(len(TALK)), count)
    return [(*rng.sample(list(templates(TALK[index][0], False)), 2), f"talk {index}") for index in chosen]


def _task_of_numbers(rng: Random) -> Pair:
    kind = rng.choice(["add", "subtract", "compare"])
    slots = {"a": rng.randint(0, 99), "b": rng.randint(0, 99)}
    first, second = rng.sample(list(templates(gen_numbers.WORDINGS[kind], False)), 2)
    return first.format(**slots), second.format(**slots), f"{kind} {slots}"


def _task_of_words(rng: Random) -> Pair:
    kind, word = rng.choice(["spell", "letters", "upper", "echo", "first"]), rng.choice(WORDS)
    first, second = rng.sample(list(templates(gen_words.WORDINGS[kind], False)), 2)
    return first.format(word), second.format(word), f"{kind} {word}"


def task_pair(rng: Random) -> Pair:
    """Two wordings of the same small task."""
    return _task_of_numbers(rng) if rng.random() < 0.4 else _task_of_words(rng)


def synonym_pair(rng: Random) -> Pair:
    group = rng.choice(SYNONYMS)
    first, second = rng.sample(group.split(), 2)
    frame, other = (rng.choice(["{}", "the {}", "a {} thing", "how to {}", "{} it", "this is {}"]) for _ in range(2))
    return frame.format(first), other.format(second), group
