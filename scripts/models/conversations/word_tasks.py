"""Small tasks on words and sentences: spelling, counting, sorting, cases, echoes, calendars, JSON."""

import json
from collections.abc import Callable
from random import Random

from conversations.template import Conversation
from conversations.words import (
    ANIMALS, COLOURS, DAYS, FOODS, MONTHS, QUALITIES, THINGS, VERBS, WORDS, choose, city, invented, listed, name,
    pick, pieces, wordings,
)

SAID = wordings("words")


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


def _asked(
    rng: Random, held: bool, wording: str, slots: tuple[str, ...], answer: str, task: str, thought: str, kind: str = ""
) -> Conversation:
    return Conversation.single(choose(rng, SAID[wording], held).format(*slots, kind=kind), answer, task, thought)


def spell(rng: Random, held: bool) -> Conversation:
    word = _word(rng, held)
    return _asked(rng, held, "spell", (word,), "-".join(word), "spelling", f"The letters of {word}.")


def spell_list(rng: Random, held: bool) -> Conversation:
    """Several words to spell: for training, more letters for one question."""
    words = [_word(rng, held) for _ in range(rng.randint(2, 6))]
    answer = ", ".join("-".join(word) for word in words)
    return _asked(rng, held, "spell_list", (", ".join(words),), answer, "spelling", "One by one.")


def _known_word(rng: Random, held: bool) -> str:
    return pieces(rng, 2).lower() if not held and rng.random() < 0.4 else pick(rng, WORDS, held)


def letters(rng: Random, held: bool) -> Conversation:
    word = _known_word(rng, held)
    answer = f"{'-'.join(word)}: {len(word)} letters."
    return _asked(rng, held, "letters", (word,), answer, "spelling", f"I spell {word} and count.")


def end_letter(rng: Random, held: bool) -> Conversation:
    word = _known_word(rng, held)
    wording, letter = ("first", word[0]) if rng.random() < 0.5 else ("last", word[-1])
    answer = f"The {wording} letter of {word} is {letter}."
    return _asked(rng, held, wording, (word,), answer, "spelling", f"{'-'.join(word)}.")


def upper(rng: Random, held: bool) -> Conversation:
    text = _word(rng, held) if rng.random() < 0.4 else sentence(rng, held)
    if not held and rng.random() < 0.35:
        # Many tokens at once, each of which shows its letters.
        text = " ".join(_word(rng, held) for _ in range(rng.randint(3, 8)))
    return _asked(rng, held, "upper", (text,), text.upper(), "cases", "Every letter becomes a capital.")


def lower(rng: Random, held: bool) -> Conversation:
    text = (_word(rng, held) if rng.random() < 0.6 else sentence(rng, held)).upper()
    return _asked(rng, held, "lower", (text,), text.lower(), "cases", "Every letter becomes small.")


def echo(rng: Random, held: bool) -> Conversation:
    options = [_word(rng, held), sentence(rng, held), " ".join(_words(rng, held))]
    text = rng.choice([*options, f"{invented(rng)} {rng.randint(0, 999)} {invented(rng)}"])
    if rng.random() < 0.3:
        text = text[0].upper() + text[1:] + rng.choice([".", "!", ""])
    return _asked(rng, held, "echo", (text,), text, "echo", "I repeat it.")


def sort_words(rng: Random, held: bool) -> Conversation:
    words = _words(rng, held, 3, 4)
    answer = ", ".join(sorted(words))
    return _asked(rng, held, "sort", (", ".join(words),), answer, "lists", f"First comes {min(words)}.")


def count(rng: Random, held: bool) -> Conversation:
    words = _words(rng, held, 2, 7 if held else 9)
    numbered = ", ".join(f"{index} {word}" for index, word in enumerate(words, 1))
    return _asked(rng, held, "count", (", ".join(words),), f"There are {len(words)}.", "lists", f"{numbered}.")


def position(rng: Random, held: bool) -> Conversation:
    words = _words(rng, held, 3, 6)
    which = rng.choice(["first", "second", "third", "last"])
    answer = f"The {which} is {words[{'first': 0, 'second': 1, 'third': 2, 'last': -1}[which]]}."
    return _asked(rng, held, "position", (which, ", ".join(words)), answer, "lists", f"I look for the {which}.")


def reverse(rng: Random, held: bool) -> Conversation:
    words = _words(rng, held, 3, 5)
    answer = ", ".join(reversed(words))
    return _asked(rng, held, "reverse", (", ".join(words),), answer, "lists", f"I begin with {words[-1]}.")


def contains(rng: Random, held: bool) -> Conversation:
    words = _words(rng, held, 3, 6)
    inside = rng.random() < 0.5
    word = rng.choice(words) if inside else rng.choice([other for other in WORDS if other not in words])
    answer = f"Yes, {word} is in the list." if inside else f"No, {word} is not in the list."
    return _asked(rng, held, "contains", (word, ", ".join(words)), answer, "lists", f"I look for {word}.")


def calendar(rng: Random, held: bool) -> Conversation:
    if rng.random() < 0.25:
        wording, values = ("list_days", DAYS) if rng.random() < 0.5 else ("list_months", MONTHS)
        return _asked(rng, held, wording, (), listed(values) + ".", "calendar", "I know this list.")
    kind, values = rng.choice([("day", DAYS), ("month", MONTHS)])
    index = rng.randrange(len(values))
    one = values[index]
    wording, step = ("after", 1) if rng.random() < 0.5 else ("before", -1)
    other = values[(index + step) % len(values)]
    thought = f"{one}, then {other}." if step > 0 else f"{other}, then {one}."
    return _asked(rng, held, wording, (one,), f"{other} comes {wording} {one}.", "calendar", thought, kind)


def as_json(rng: Random, held: bool) -> Conversation:
    roll = rng.random()
    if roll < 0.4:
        wording, person, age = "people_json", name(rng, held), rng.randint(2, 99)
        forms = ["{0} is {1} years old.", "{0} is {1}.", "My friend {0} is {1} years old.", "I am {0} and I am {1}."]
        text, value = rng.choice(forms).format(person, age), {"name": person, "age": age}
    elif roll < 0.7:
        wording, thing, colour = "thing_json", pick(rng, THINGS, held), rng.choice(COLOURS)
        forms = ["The {0} is {1}.", "I have a {1} {0}.", "My {0} is {1}."]
        text, value = rng.choice(forms).format(thing, colour), {"item": thing, "colour": colour}
    else:
        wording, words = "list_json", _words(rng, held, 2, 4)
        text, value = ", ".join(words), words
    return _asked(rng, held, wording, (text,), json.dumps(value), "json", "I write it as JSON.")


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
