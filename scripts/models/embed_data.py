"""Pairs of texts of one meaning for daybreak-mini-embed: questions, sentences in other words, our own pages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import gen_numbers
import gen_words
from gen_facts import facts, questions
from gen_talk import TALK
from wordpiece import words
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
    choose,
    invented,
    pick,
    templates,
)

ROOT = Path(__file__).parent.parent.parent
Pair = tuple[str, str]
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


def sentence_pair(rng: Random, held: bool) -> Pair:
    frame, slots = rng.choice(FRAMES), _slots(rng, held)
    first = rng.choice(templates(frame, False))
    second = choose(rng, [form for form in frame if form != first], held)
    return first.format(**slots), second.format(**slots)


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


def fact_pairs(rng: Random, count: int) -> list[Pair]:
    """Questions of different facts, each with another question for the same or with the answer."""
    result = []
    for fact in rng.sample(facts(), count):
        first, *others = (
            rng.sample(questions(fact, False), 2) if len(questions(fact, False)) > 1 else questions(fact, False)
        )
        second = rng.choice(others + fact.answers)
        result.append((first, second))
    return result


def talk_pairs(rng: Random, count: int) -> list[Pair]:
    return [tuple(rng.sample(list(templates(asks, False)), 2)) for asks, _, _ in rng.sample(TALK, count)]  # type: ignore[misc]


def task_pair(rng: Random) -> Pair:
    """Two wordings of the same small task."""
    kinds = [gen_numbers.WORDINGS["add"], gen_numbers.WORDINGS["subtract"], gen_numbers.WORDINGS["compare"]]
    if rng.random() < 0.5:
        asks, slots = rng.choice(kinds), {"a": rng.randint(0, 99), "b": rng.randint(0, 99)}
        first, second = rng.sample(list(templates(asks, False)), 2)
        return first.format(**slots), second.format(**slots)
    asks, word = (
        rng.choice(
            [
                gen_words.WORDINGS["spell"],
                gen_words.WORDINGS["letters"],
                gen_words.WORDINGS["upper"],
                gen_words.WORDINGS["echo"],
                gen_words.WORDINGS["first"],
            ]
        ),
        rng.choice(WORDS),
    )
    first, second = rng.sample(list(templates(asks, False)), 2)
    return first.format(word), second.format(word)


def synonym_pair(rng: Random) -> Pair:
    first, second = rng.sample(rng.choice(SYNONYMS).split(), 2)
    frame = rng.choice(["{}", "the {}", "a {} thing", "how to {}", "{} it", "{}", "this is {}"])
    other = rng.choice(["{}", "the {}", "a {} thing", "how to {}", "{} it", "{}", "this is {}"])
    return frame.format(first), other.format(second)


def plain(markdown: str) -> str:
    """Markdown as running text."""
    return re.sub(r"\s+", " ", re.sub(r"[`*_|#>]|\[|\]\([^)]*\)|-{3,}", " ", markdown)).strip()


def _runs(body: list[str], most_parts: int) -> list[str]:
    """The words in runs of at most so many words and punctuation marks, so that each fits the model's context."""
    result: list[str] = []
    run: list[str] = []
    size = 0
    for word in body:
        parts = len(words(word))
        if run and size + parts > most_parts:
            result.append(" ".join(run))
            run, size = [], 0
        run.append(word)
        size += parts
    return result + ([" ".join(run)] if run else [])


def sections(page: str, most_parts: int = 110) -> list[tuple[str, str]]:
    """Heading and text of a page's sections, long ones parted: the units that a search indexes."""
    result: list[tuple[str, str]] = []
    title = (re.search(r"^# (.+)$", page, re.M) or re.match(r"(.*)", page)).group(1)  # type: ignore[union-attr]
    for part in re.split(r"^(?=#{1,4} )", page, flags=re.M):
        heading = (re.match(r"#{1,4} (.+)", part) or [None, title])[1]
        body = plain(re.sub(r"^#{1,4} .+$", "", part, count=1, flags=re.M)).split()
        for text in _runs(body, most_parts):
            result.append((f"{plain(title)}: {plain(str(heading))}", text))
    return result


def pages() -> dict[str, str]:
    """The project's own documentation."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    return {str(path.relative_to(ROOT)): path.read_text() for path in files if path.exists()}


def page_pairs(rng: Random, count: int) -> list[Pair]:
    """A few words of a section, and the section without most of them."""
    units = [unit for page in pages().values() for unit in sections(page) if len(unit[1].split()) > 12]
    result = []
    for heading, text in rng.sample(units, min(count, len(units))):
        body = text.split()
        start = rng.randrange(max(1, len(body) - 8))
        taken = body[start : start + rng.randint(5, 14)]
        rest = body[:start] + body[start + len(taken) :] if rng.random() < 0.6 else body
        query = [word for word in taken if rng.random() < 0.75] or taken
        if rng.random() < 0.3:
            query = heading.replace(":", " ").split()
        result.append((" ".join(query), f"{heading}. {' '.join(rest)}"))
    return result
