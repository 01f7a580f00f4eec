"""Small tasks on words and sentences: spelling, counting, sorting, cases, echoes, calendars, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

from conversations.template import Conversation
from conversations.words import (
    ANIMALS,
    COLOURS,
    DAYS,
    FOODS,
    MONTHS,
    QUALITIES,
    THINGS,
    VERBS,
    WORDS,
    choose,
    city,
    invented,
    listed,
    name,
    pick,
    pieces,
    wordings,
)

SAID = wordings("words")

ORDINALS = ["first", "second", "third", "last"]


def _word(rng: Random, held: bool) -> str:
    if not held and rng.random() < 0.45:
        return pieces(rng, 2).lower()
    return invented(rng) if rng.random() < 0.5 else pick(rng, WORDS, held)


def _words(rng: Random, held: bool, low: int = 3, high: int = 6) -> list[str]:
    pool = rng.choice([ANIMALS, FOODS, THINGS, COLOURS, WORDS])
    return rng.sample(pool, rng.randint(low, high))


def sentence(rng: Random, held: bool) -> str:
    """A short plain sentence."""
    animal, thing, quality, verb = (
        pick(rng, ANIMALS, held),
        pick(rng, THINGS, held),
        pick(rng, QUALITIES, held),
        pick(rng, VERBS, held),
    )
    forms = [
        f"the {quality} {animal} can {verb}",
        f"I see a {quality} {thing}",
        f"{name(rng, held)} has a {thing}",
        f"my {thing} is {quality}",
        f"we {verb} in {city(rng, held)}",
        f"{name(rng, held)} and {name(rng, held)} {verb} every day",
        f"the {animal} and the {thing} are {quality}",
        f"this is a {quality} {thing}",
        f"please {verb} with the {animal}",
    ]
    return rng.choice(forms)


def spell(rng: Random, held: bool) -> Conversation:
    word = _word(rng, held)
    return Conversation.single(
        choose(rng, SAID["spell"], held).format(word), "-".join(word), "spelling", f"The letters of {word}."
    )


def spell_list(rng: Random, held: bool) -> Conversation:
    """Several words to spell: for training, more letters for one question."""
    words = [_word(rng, held) for _ in range(rng.randint(2, 6))]
    question = choose(rng, SAID["spell_list"], held).format(", ".join(words))
    return Conversation.single(question, ", ".join("-".join(word) for word in words), "spelling", "One by one.")


def letters(rng: Random, held: bool) -> Conversation:
    word = pieces(rng, 2).lower() if not held and rng.random() < 0.4 else pick(rng, WORDS, held)
    return Conversation.single(
        choose(rng, SAID["letters"], held).format(word),
        f"{'-'.join(word)}: {len(word)} letters.",
        "spelling",
        f"I spell {word} and count.",
    )


def end_letter(rng: Random, held: bool) -> Conversation:
    word = pieces(rng, 2).lower() if not held and rng.random() < 0.4 else pick(rng, WORDS, held)
    first = rng.random() < 0.5
    letter = word[0] if first else word[-1]
    question = choose(rng, SAID["first"] if first else SAID["last"], held).format(word)
    return Conversation.single(
        question,
        f"The {'first' if first else 'last'} letter of {word} is {letter}.",
        "spelling",
        f"{'-'.join(word)}.",
    )


def upper(rng: Random, held: bool) -> Conversation:
    text = _word(rng, held) if rng.random() < 0.4 else sentence(rng, held)
    if not held and rng.random() < 0.35:
        # Many tokens at once, each of which shows its letters.
        text = " ".join(_word(rng, held) for _ in range(rng.randint(3, 8)))
    return Conversation.single(
        choose(rng, SAID["upper"], held).format(text), text.upper(), "cases", "Every letter becomes a capital."
    )


def lower(rng: Random, held: bool) -> Conversation:
    text = (_word(rng, held) if rng.random() < 0.6 else sentence(rng, held)).upper()
    return Conversation.single(
        choose(rng, SAID["lower"], held).format(text), text.lower(), "cases", "Every letter becomes small."
    )


def echo(rng: Random, held: bool) -> Conversation:
    text = rng.choice(
        [
            _word(rng, held),
            sentence(rng, held),
            " ".join(_words(rng, held)),
            f"{invented(rng)} {rng.randint(0, 999)} {invented(rng)}",
        ]
    )
    if rng.random() < 0.3:
        text = text[0].upper() + text[1:] + rng.choice([".", "!", ""])
    return Conversation.single(choose(rng, SAID["echo"], held).format(text), text, "echo", "I repeat it.")


def sort_words(rng: Random, held: bool) -> Conversation:
    words = _words(rng, held, 3, 4)
    return Conversation.single(
        choose(rng, SAID["sort"], held).format(", ".join(words)),
        ", ".join(sorted(words)),
        "lists",
        f"First comes {min(words)}.",
    )


def count(rng: Random, held: bool) -> Conversation:
    words = _words(rng, held, 2, 7 if held else 9)
    numbered = ", ".join(f"{index} {word}" for index, word in enumerate(words, 1))
    return Conversation.single(
        choose(rng, SAID["count"], held).format(", ".join(words)),
        f"There are {len(words)}.",
        "lists",
        f"{numbered}.",
    )


def position(rng: Random, held: bool) -> Conversation:
    words = _words(rng, held, 3, 6)
    which = rng.choice(ORDINALS)
    word = words[-1] if which == "last" else words[ORDINALS.index(which)]
    return Conversation.single(
        choose(rng, SAID["position"], held).format(which, ", ".join(words)),
        f"The {which} is {word}.",
        "lists",
        f"I look for the {which}.",
    )


def reverse(rng: Random, held: bool) -> Conversation:
    words = _words(rng, held, 3, 5)
    return Conversation.single(
        choose(rng, SAID["reverse"], held).format(", ".join(words)),
        ", ".join(reversed(words)),
        "lists",
        f"I begin with {words[-1]}.",
    )


def contains(rng: Random, held: bool) -> Conversation:
    words = _words(rng, held, 3, 6)
    inside = rng.random() < 0.5
    word = rng.choice(words) if inside else rng.choice([other for other in WORDS if other not in words])
    answer = f"Yes, {word} is in the list." if inside else f"No, {word} is not in the list."
    return Conversation.single(
        choose(rng, SAID["contains"], held).format(word, ", ".join(words)), answer, "lists", f"I look for {word}."
    )


def calendar(rng: Random, held: bool) -> Conversation:
    roll = rng.random()
    if roll < 0.25:
        days = rng.random() < 0.5
        return Conversation.single(
            choose(rng, SAID["list_days"] if days else SAID["list_months"], held),
            listed(DAYS if days else MONTHS) + ".",
            "calendar",
            "I know this list.",
        )
    kind, values = rng.choice([("day", DAYS), ("month", MONTHS)])
    index = rng.randrange(len(values))
    after = rng.random() < 0.5
    other = values[(index + (1 if after else -1)) % len(values)]
    question = choose(rng, SAID["after"] if after else SAID["before"], held).format(values[index], kind=kind)
    return Conversation.single(
        question,
        f"{other} comes {'after' if after else 'before'} {values[index]}.",
        "calendar",
        f"{values[index]}, then {other}." if after else f"{other}, then {values[index]}.",
    )


def as_json(rng: Random, held: bool) -> Conversation:
    roll = rng.random()
    if roll < 0.4:
        person, age = name(rng, held), rng.randint(2, 99)
        text = rng.choice(
            [
                f"{person} is {age} years old.",
                f"{person} is {age}.",
                f"My friend {person} is {age} years old.",
                f"I am {person} and I am {age}.",
            ]
        )
        question, value = choose(rng, SAID["people_json"], held).format(text), {"name": person, "age": age}
    elif roll < 0.7:
        thing, colour = pick(rng, THINGS, held), rng.choice(COLOURS)
        text = rng.choice([f"The {thing} is {colour}.", f"I have a {colour} {thing}.", f"My {thing} is {colour}."])
        question, value = choose(rng, SAID["thing_json"], held).format(text), {"item": thing, "colour": colour}
    else:
        words = _words(rng, held, 2, 4)
        question, value = choose(rng, SAID["list_json"], held).format(", ".join(words)), words
    return Conversation.single(question, json.dumps(value), "json", "I write it as JSON.")


GENERATORS: list[tuple[Callable[[Random, bool], Conversation], float]] = [
    (spell, 13.0),
    (spell_list, 5.0),
    (letters, 20.0),
    (end_letter, 0.8),
    (upper, 18.0),
    (lower, 1.5),
    (echo, 4.0),
    (sort_words, 0.8),
    (count, 8.0),
    (position, 0.6),
    (reverse, 0.5),
    (contains, 0.5),
    (calendar, 3.5),
    (as_json, 1.5),
]


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
    return Conversation.single(choose(rng, SAID["echo"], held).format(text), text, "echo", "I repeat it.")


def quote_long(rng: Random, held: bool) -> Conversation:
    """A row to write as JSON. In quotes a word has no space before it and so has other tokens: tools depend on it."""
    parts = [" ".join(_part(rng, held) for _ in range(rng.choice([1, 1, 2, 3]))) for _ in range(rng.randint(1, 8))]
    if rng.random() < 0.5:
        question, value = choose(rng, SAID["list_json"], held).format(", ".join(parts)), json.dumps(parts)
    else:
        table = {_part(rng, held): int(part) if part.isdigit() else part for part in parts[:4]}
        told = ", ".join(f"{key}{rng.choice([' is ', ': ', ' = '])}{value}" for key, value in table.items())
        question, value = f"{rng.choice(SAID['table_json'])} {told}", json.dumps(table)
    return Conversation.single(question, value, "json", "I write it as JSON.")
