"""Small tasks on numbers, words and lists, with the working as the thought: sums, spelling, sorting, echoes, JSON."""

import json
from collections.abc import Iterable
from random import Random

from conversations.template import Conversation
from conversations.words import (
    ANIMALS, COLOURS, DAYS, FOODS, MONTHS, NUMBER_WORDS, THINGS, WORDS, choose, city, invented, is_held, listed, name,
    pick, pieces, random_words, wordings,
)

NUMBERS, SAID = wordings("numbers"), wordings("words")
SHORT_SHARE = 0.4
"""Share of numbers to compare or sort, in training, of which some have one digit and the others mostly two."""


def _asked(
    rng: Random, held: bool, asks: list[str], answer: str, thought: str | None, *slots: str, **named: object
) -> Conversation:
    return Conversation.single(choose(rng, asks, held).format(*slots, **named), answer, thought)


def add(a: int, b: int) -> str:
    """A sum with its working: tens and ones apart, so that every step is a sum of two digits."""
    tens = (a // 10 + b // 10) * 10
    if tens == 0 or a % 10 + b % 10 in (0, a, b):
        return f"{a} + {b} = {a + b}"
    return f"{a} + {b} = {tens} + {a % 10 + b % 10} = {a + b}"


def subtract(a: int, b: int) -> str:
    """A difference with its working: first the tens go, then the ones."""
    if b < 10 or b % 10 == 0:
        return f"{a} - {b} = {a - b}"
    return f"{a} - {b} = {a - b // 10 * 10} - {b % 10} = {a - b}"


def _pair(rng: Random, held: bool, sign: str, limit: int) -> tuple[int, int]:
    """A pair of numbers of the wanted side; small ones are often drawn, and never held out."""
    top = limit if held or rng.random() < 0.7 else 12
    while True:
        a, b = rng.randint(0, top), rng.randint(0, top)
        if a + b <= 10:
            if not held:
                return a, b
        elif is_held(f"{a}{sign}{b}") == held:
            return a, b


def addition(rng: Random, held: bool) -> Conversation:
    a, b = _pair(rng, held, "+", 99)
    return _asked(rng, held, NUMBERS["add"], add(a, b), f"I add {a} and {b}.", a=a, b=b)


def subtraction(rng: Random, held: bool) -> Conversation:
    b, a = sorted(_pair(rng, held, "-", 99))
    return _asked(rng, held, NUMBERS["subtract"], subtract(a, b), f"I take {b} from {a}.", a=a, b=b)


def multiplication(rng: Random, held: bool) -> Conversation:
    # A table to learn by heart: no pair can be held out, only the wording.
    a, b = rng.randint(0, 10), rng.randint(0, 10)
    return _asked(rng, held, NUMBERS["times"], f"{a} * {b} = {a * b}", f"{a} times {b} is {a * b}.", a=a, b=b)


def comparison(rng: Random, held: bool) -> Conversation:
    a, b = rng.sample(range(100), 2)
    if not held and rng.random() < SHORT_SHARE:
        a, b = rng.sample([rng.randrange(10), rng.randint(10, 99)], 2)
    asks, word, best = ("compare", "larger", max) if rng.random() < 0.6 else ("compare_small", "smaller", min)
    return _asked(rng, held, NUMBERS[asks], f"{best(a, b)} is {word}.", f"{max(a, b)} > {min(a, b)}.", a=a, b=b)


def conversion(rng: Random, held: bool) -> Conversation:
    source, target, *numbers = rng.choice(NUMBERS["units"]).split()
    factor, limit = map(int, numbers)
    n = rng.randint(1, limit)
    answer = f"{n} {source} = {n * factor} {target}"
    thought = f"1 {source} = {factor} {target}. {n} * {factor} = {n * factor}."
    return _asked(rng, held, NUMBERS["convert"], answer, thought, source=source, target=target, n=n)


def _numbers(rng: Random, held: bool, limit: int = 100) -> list[int]:
    numbers = rng.sample(range(limit), rng.randint(3, 5))
    if not held and limit > 10 and rng.random() < SHORT_SHARE:
        short = rng.sample(range(10), rng.choice([1, 1, 2]))
        numbers = short + rng.sample(range(10, limit), rng.randint(2, 3))
        rng.shuffle(numbers)
    return numbers


def _row(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def sort_numbers(rng: Random, held: bool) -> Conversation:
    numbers = _numbers(rng, held, rng.choice([10, 30, 100]))
    thought = f"The smallest is {min(numbers)}."
    return _asked(rng, held, NUMBERS["sort"], _row(sorted(numbers)), thought, list=_row(numbers))


def extreme(rng: Random, held: bool) -> Conversation:
    numbers = _numbers(rng, held)
    wording, best = ("largest", max) if rng.random() < 0.5 else ("smallest", min)
    text = _row(numbers) if rng.random() < 0.5 else listed([str(number) for number in numbers])
    answer, thought = f"The {wording} is {best(numbers)}.", f"Sorted: {_row(sorted(numbers))}."
    return _asked(rng, held, NUMBERS[wording], answer, thought, list=text)


def neighbor(rng: Random, held: bool) -> Conversation:
    n = rng.randint(1, 99)
    wording, sign, step = ("after", "+", 1) if rng.random() < 0.5 else ("before", "-", -1)
    return _asked(rng, held, NUMBERS[wording], f"{n + step} comes {wording} {n}.", f"{n} {sign} 1 = {n + step}.", n=n)


def in_words(rng: Random, held: bool) -> Conversation:
    n = rng.randrange(len(NUMBER_WORDS))
    return _asked(rng, held, NUMBERS["in_words"], f"{n} is {NUMBER_WORDS[n]}.", f"{n} as a word.", n=n)


def even(rng: Random, held: bool) -> Conversation:
    n = rng.randrange(100)
    kind = "odd" if n % 2 else "even"
    return _asked(rng, held, NUMBERS["even"], f"{n} is {kind}.", f"The last digit is {n % 10}, so it is {kind}.", n=n)


def count_to(rng: Random, held: bool) -> Conversation:
    first = rng.randint(0, 30)
    last = first + rng.randint(3, 10)
    answer, thought = _row(range(first, last + 1)), f"I begin at {first} and end at {last}."
    return _asked(rng, held, NUMBERS["count_to"], answer, thought, a=first, b=last)


def running_total(rng: Random, held: bool) -> Conversation:
    """A sum that goes on over several turns."""
    total, step = _pair(rng, held, "+", 40)
    conversation = _asked(rng, held, NUMBERS["add"], add(total, step), None, a=total, b=step)
    for _ in range(rng.randint(1, 2)):
        total += step
        step = rng.randint(1, 19)
        conversation.turns += _asked(rng, held, NUMBERS["running_total"], add(total, step), None, str(step)).turns
    return conversation


def _word(rng: Random, held: bool) -> str:
    if not held and rng.random() < 0.45:
        return pieces(rng, 2).lower()
    return invented(rng) if rng.random() < 0.5 else pick(rng, WORDS, held)


def _known_word(rng: Random, held: bool) -> str:
    return pieces(rng, 2).lower() if not held and rng.random() < 0.4 else pick(rng, WORDS, held)


def _words(rng: Random, low: int, high: int) -> list[str]:
    pool = rng.choice([ANIMALS, FOODS, THINGS, COLOURS, WORDS])
    return rng.sample(pool, rng.randint(low, high))


def _sentence(rng: Random, held: bool) -> str:
    """A short plain sentence."""
    words = random_words(rng, held, "animal thing quality verb")
    names = {"owner": name(rng, held), "city": city(rng, held), "name": name(rng, held), "name2": name(rng, held)}
    return rng.choice(SAID["sentences"]).format(**words, **names)


def spell(rng: Random, held: bool) -> Conversation:
    word = _word(rng, held)
    return _asked(rng, held, SAID["spell"], "-".join(word), f"The letters of {word}.", word)


def spell_list(rng: Random, held: bool) -> Conversation:
    """Several words to spell: for training, more letters for one question."""
    words = [_word(rng, held) for _ in range(rng.randint(2, 6))]
    answer = ", ".join("-".join(word) for word in words)
    return _asked(rng, held, SAID["spell_list"], answer, "One by one.", ", ".join(words))


def letters(rng: Random, held: bool) -> Conversation:
    word = _known_word(rng, held)
    answer = f"{'-'.join(word)}: {len(word)} letters."
    return _asked(rng, held, SAID["letters"], answer, f"I spell {word} and count.", word)


def end_letter(rng: Random, held: bool) -> Conversation:
    word = _known_word(rng, held)
    which, letter = ("first", word[0]) if rng.random() < 0.5 else ("last", word[-1])
    return _asked(rng, held, SAID[which], f"The {which} letter of {word} is {letter}.", f"{'-'.join(word)}.", word)


def upper(rng: Random, held: bool) -> Conversation:
    text = _word(rng, held) if rng.random() < 0.4 else _sentence(rng, held)
    if not held and rng.random() < 0.35:
        # Many tokens at once, each of which shows its letters.
        text = " ".join(_word(rng, held) for _ in range(rng.randint(3, 8)))
    return _asked(rng, held, SAID["upper"], text.upper(), "Every letter becomes a capital.", text)


def lower(rng: Random, held: bool) -> Conversation:
    text = (_word(rng, held) if rng.random() < 0.6 else _sentence(rng, held)).upper()
    return _asked(rng, held, SAID["lower"], text.lower(), "Every letter becomes small.", text)


def echo(rng: Random, held: bool) -> Conversation:
    options = [_word(rng, held), _sentence(rng, held), " ".join(_words(rng, 3, 6))]
    text = rng.choice([*options, f"{invented(rng)} {rng.randint(0, 999)} {invented(rng)}"])
    if rng.random() < 0.3:
        text = text[0].upper() + text[1:] + rng.choice([".", "!", ""])
    return _asked(rng, held, SAID["echo"], text, "I repeat it.", text)


def sort_words(rng: Random, held: bool) -> Conversation:
    words = _words(rng, 3, 4)
    return _asked(rng, held, SAID["sort"], ", ".join(sorted(words)), f"First comes {min(words)}.", ", ".join(words))


def count(rng: Random, held: bool) -> Conversation:
    words = _words(rng, 2, 7 if held else 9)
    numbered = ", ".join(f"{index} {word}" for index, word in enumerate(words, 1))
    return _asked(rng, held, SAID["count"], f"There are {len(words)}.", f"{numbered}.", ", ".join(words))


def position(rng: Random, held: bool) -> Conversation:
    words = _words(rng, 3, 6)
    which = rng.choice(["first", "second", "third", "last"])
    answer = f"The {which} is {words[{'first': 0, 'second': 1, 'third': 2, 'last': -1}[which]]}."
    return _asked(rng, held, SAID["position"], answer, f"I look for the {which}.", which, ", ".join(words))


def reverse(rng: Random, held: bool) -> Conversation:
    words = _words(rng, 3, 5)
    return _asked(rng, held, SAID["reverse"], ", ".join(words[::-1]), f"I begin with {words[-1]}.", ", ".join(words))


def contains(rng: Random, held: bool) -> Conversation:
    words = _words(rng, 3, 6)
    inside = rng.random() < 0.5
    word = rng.choice(words) if inside else rng.choice([other for other in WORDS if other not in words])
    answer = f"Yes, {word} is in the list." if inside else f"No, {word} is not in the list."
    return _asked(rng, held, SAID["contains"], answer, f"I look for {word}.", word, ", ".join(words))


def calendar(rng: Random, held: bool) -> Conversation:
    if rng.random() < 0.25:
        wording, values = ("list_days", DAYS) if rng.random() < 0.5 else ("list_months", MONTHS)
        return _asked(rng, held, SAID[wording], listed(values) + ".", "I know this list.")
    kind, values = rng.choice([("day", DAYS), ("month", MONTHS)])
    index = rng.randrange(len(values))
    one = values[index]
    wording, step = ("after", 1) if rng.random() < 0.5 else ("before", -1)
    other = values[(index + step) % len(values)]
    thought = f"{one}, then {other}." if step > 0 else f"{other}, then {one}."
    return _asked(rng, held, SAID[wording], f"{other} comes {wording} {one}.", thought, one, kind=kind)


def as_json(rng: Random, held: bool) -> Conversation:
    roll = rng.random()
    if roll < 0.4:
        wording, value = "people", {"name": name(rng, held), "age": rng.randint(2, 99)}
        text = rng.choice(SAID["people"]).format(**value)
    elif roll < 0.7:
        wording, value = "thing", {"item": pick(rng, THINGS, held), "colour": rng.choice(COLOURS)}
        text = rng.choice(SAID["thing"]).format(**value)
    else:
        wording, value = "list", _words(rng, 2, 4)
        text = ", ".join(value)
    return _asked(rng, held, SAID[f"{wording}_json"], json.dumps(value), "I write it as JSON.", text)


def _part(rng: Random, held: bool) -> str:
    """Something to copy."""
    known = [invented(rng), pick(rng, WORDS, held), name(rng, held), city(rng, held), str(rng.randint(0, 999))]
    return rng.choice([*known, invented(rng).upper(), pieces(rng), pieces(rng), pieces(rng, 1)])


def copy_long(rng: Random, held: bool) -> Conversation:
    """A long row of words, numbers and names to repeat: what teaches a young model to copy at all."""
    text = rng.choice([" ", " ", ", ", "-"]).join(_part(rng, held) for _ in range(rng.randint(2, 14)))
    return _asked(rng, held, SAID["echo"], text, "I repeat it.", text)


def quote_long(rng: Random, held: bool) -> Conversation:
    """A row to write as JSON. In quotes a word has no space before it and so has other tokens: tools depend on it."""
    parts = [" ".join(_part(rng, held) for _ in range(rng.choice([1, 1, 2, 3]))) for _ in range(rng.randint(1, 8))]
    if rng.random() < 0.5:
        return _asked(rng, held, SAID["list_json"], json.dumps(parts), "I write it as JSON.", ", ".join(parts))
    table = {_part(rng, held): int(part) if part.isdigit() else part for part in parts[:4]}
    told = ", ".join(f"{key}{rng.choice([' is ', ': ', ' = '])}{value}" for key, value in table.items())
    return Conversation.single(f"{rng.choice(SAID['table_json'])} {told}", json.dumps(table), "I write it as JSON.")
