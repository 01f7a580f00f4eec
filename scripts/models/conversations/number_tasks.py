"""Small sums, comparisons, number lists and unit conversions, with the working as the thought."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from conversations.template import Conversation
from conversations.words import NUMBER_WORDS, choose, is_held, listed, wordings

SAID = wordings("numbers")

SHORT_SHARE = 0.4
"""Share of numbers to compare or sort, in training, of which some have one digit and the others mostly two."""
UNITS: list[tuple[str, str, int, int]] = [
    ("km", "m", 1000, 20),
    ("m", "cm", 100, 30),
    ("cm", "mm", 10, 50),
    ("kg", "g", 1000, 20),
    ("hours", "minutes", 60, 12),
    ("minutes", "seconds", 60, 12),
    ("days", "hours", 24, 7),
    ("weeks", "days", 7, 12),
    ("years", "months", 12, 10),
    ("litres", "ml", 1000, 20),
    ("KB", "bytes", 1000, 20),
    ("MB", "KB", 1000, 20),
    ("GB", "MB", 1000, 20),
    ("dozen", "pieces", 12, 10),
]


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
    return Conversation.single(
        choose(rng, SAID["add"], held).format(a=a, b=b), add(a, b), "arithmetic", f"I add {a} and {b}."
    )


def subtraction(rng: Random, held: bool) -> Conversation:
    a, b = _pair(rng, held, "-", 99)
    a, b = max(a, b), min(a, b)
    return Conversation.single(
        choose(rng, SAID["subtract"], held).format(a=a, b=b), subtract(a, b), "arithmetic", f"I take {b} from {a}."
    )


def multiplication(rng: Random, held: bool) -> Conversation:
    # A table to learn by heart: no pair can be held out, only the wording.
    a, b = rng.randint(0, 10), rng.randint(0, 10)
    return Conversation.single(
        choose(rng, SAID["times"], held).format(a=a, b=b),
        f"{a} * {b} = {a * b}",
        "arithmetic",
        f"{a} times {b} is {a * b}.",
    )


def comparison(rng: Random, held: bool) -> Conversation:
    a, b = rng.sample(range(100), 2)
    if not held and rng.random() < SHORT_SHARE:
        a, b = rng.sample([rng.randrange(10), rng.randint(10, 99)], 2)
    larger = rng.random() < 0.6
    question = choose(rng, SAID["compare"] if larger else SAID["compare_small"], held).format(a=a, b=b)
    best = max(a, b) if larger else min(a, b)
    return Conversation.single(
        question, f"{best} is {'larger' if larger else 'smaller'}.", "numbers", f"{max(a, b)} > {min(a, b)}."
    )


def conversion(rng: Random, held: bool) -> Conversation:
    source, target, factor, limit = rng.choice(UNITS)
    count = rng.randint(1, limit)
    question = choose(rng, SAID["convert"], held).format(**{"from": source, "to": target, "n": count})
    return Conversation.single(
        question,
        f"{count} {source} = {count * factor} {target}",
        "units",
        f"1 {source} = {factor} {target}. {count} * {factor} = {count * factor}.",
    )


def _numbers(rng: Random, held: bool, limit: int = 100) -> list[int]:
    numbers = rng.sample(range(limit), rng.randint(3, 5))
    if not held and limit > 10 and rng.random() < SHORT_SHARE:
        short = rng.sample(range(10), rng.choice([1, 1, 2]))
        numbers = short + rng.sample(range(10, limit), rng.randint(2, 3))
        rng.shuffle(numbers)
    return numbers


def sort_numbers(rng: Random, held: bool) -> Conversation:
    numbers = _numbers(rng, held, rng.choice([10, 30, 100]))
    text = ", ".join(map(str, numbers))
    return Conversation.single(
        choose(rng, SAID["sort"], held).format(list=text),
        ", ".join(map(str, sorted(numbers))),
        "lists",
        f"The smallest is {min(numbers)}.",
    )


def extreme(rng: Random, held: bool) -> Conversation:
    numbers = _numbers(rng, held)
    largest = rng.random() < 0.5
    text = ", ".join(map(str, numbers)) if rng.random() < 0.5 else listed([str(number) for number in numbers])
    best = max(numbers) if largest else min(numbers)
    question = choose(rng, SAID["largest"] if largest else SAID["smallest"], held).format(list=text)
    return Conversation.single(
        question,
        f"The {'largest' if largest else 'smallest'} is {best}.",
        "lists",
        f"Sorted: {', '.join(map(str, sorted(numbers)))}.",
    )


def neighbour(rng: Random, held: bool) -> Conversation:
    number = rng.randint(1, 99)
    after = rng.random() < 0.5
    result = number + 1 if after else number - 1
    return Conversation.single(
        choose(rng, SAID["after"] if after else SAID["before"], held).format(n=number),
        f"{result} comes {'after' if after else 'before'} {number}.",
        "numbers",
        f"{number} {'+' if after else '-'} 1 = {result}.",
    )


def in_words(rng: Random, held: bool) -> Conversation:
    number = rng.randrange(len(NUMBER_WORDS))
    return Conversation.single(
        choose(rng, SAID["in_words"], held).format(n=number),
        f"{number} is {NUMBER_WORDS[number]}.",
        "numbers",
        f"{number} as a word.",
    )


def even(rng: Random, held: bool) -> Conversation:
    number = rng.randrange(100)
    kind = "odd" if number % 2 else "even"
    return Conversation.single(
        choose(rng, SAID["even"], held).format(n=number),
        f"{number} is {kind}.",
        "numbers",
        f"The last digit is {number % 10}, so it is {kind}.",
    )


def count_to(rng: Random, held: bool) -> Conversation:
    first = rng.randint(0, 30)
    last = first + rng.randint(3, 10)
    return Conversation.single(
        choose(rng, SAID["count_to"], held).format(a=first, b=last),
        ", ".join(map(str, range(first, last + 1))),
        "lists",
        f"I begin at {first} and end at {last}.",
    )


def running_total(rng: Random, held: bool) -> Conversation:
    """A sum that goes on over several turns."""
    total, step = _pair(rng, held, "+", 40)
    conversation = Conversation.single(
        choose(rng, SAID["add"], held).format(a=total, b=step), add(total, step), "turns"
    )
    total += step
    for _ in range(rng.randint(1, 2)):
        step = rng.randint(1, 19)
        question = choose(rng, SAID["running_total"], held).format(step)
        conversation.turns += Conversation.single(question, add(total, step), "turns").turns
        total += step
    return conversation


GENERATORS: list[tuple[Callable[[Random, bool], Conversation], float]] = [
    (addition, 7.0),
    (subtraction, 6.5),
    (multiplication, 5.5),
    (comparison, 3.0),
    (conversion, 4.0),
    (sort_numbers, 6.5),
    (extreme, 3.0),
    (neighbour, 0.6),
    (in_words, 0.6),
    (even, 0.4),
    (count_to, 0.5),
    (running_total, 1.2),
]
