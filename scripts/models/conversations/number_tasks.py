"""Small sums, comparisons, number lists and unit conversions, with the working as the thought."""

from collections.abc import Callable, Iterable
from random import Random

from conversations.template import Conversation
from conversations.words import NUMBER_WORDS, choose, is_held, listed, wordings

SAID = wordings("numbers")

SHORT_SHARE = 0.4
"""Share of numbers to compare or sort, in training, of which some have one digit and the others mostly two."""


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


def _asked(
    rng: Random, held: bool, wording: str, slots: dict[str, object], answer: str, task: str, thought: str | None = None
) -> Conversation:
    return Conversation.single(choose(rng, SAID[wording], held).format(**slots), answer, task, thought)


def addition(rng: Random, held: bool) -> Conversation:
    a, b = _pair(rng, held, "+", 99)
    return _asked(rng, held, "add", {"a": a, "b": b}, add(a, b), "arithmetic", f"I add {a} and {b}.")


def subtraction(rng: Random, held: bool) -> Conversation:
    b, a = sorted(_pair(rng, held, "-", 99))
    return _asked(rng, held, "subtract", {"a": a, "b": b}, subtract(a, b), "arithmetic", f"I take {b} from {a}.")


def multiplication(rng: Random, held: bool) -> Conversation:
    # A table to learn by heart: no pair can be held out, only the wording.
    a, b = rng.randint(0, 10), rng.randint(0, 10)
    answer, thought = f"{a} * {b} = {a * b}", f"{a} times {b} is {a * b}."
    return _asked(rng, held, "times", {"a": a, "b": b}, answer, "arithmetic", thought)


def comparison(rng: Random, held: bool) -> Conversation:
    a, b = rng.sample(range(100), 2)
    if not held and rng.random() < SHORT_SHARE:
        a, b = rng.sample([rng.randrange(10), rng.randint(10, 99)], 2)
    larger = rng.random() < 0.6
    wording, answer = ("compare", "{} is larger.") if larger else ("compare_small", "{} is smaller.")
    best, thought = max(a, b) if larger else min(a, b), f"{max(a, b)} > {min(a, b)}."
    return _asked(rng, held, wording, {"a": a, "b": b}, answer.format(best), "numbers", thought)


def conversion(rng: Random, held: bool) -> Conversation:
    source, target, *numbers = rng.choice(SAID["units"]).split()
    factor, limit = map(int, numbers)
    n = rng.randint(1, limit)
    answer = f"{n} {source} = {n * factor} {target}"
    thought = f"1 {source} = {factor} {target}. {n} * {factor} = {n * factor}."
    return _asked(rng, held, "convert", {"from": source, "to": target, "n": n}, answer, "units", thought)


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
    return _asked(rng, held, "sort", {"list": _row(numbers)}, _row(sorted(numbers)), "lists", thought)


def extreme(rng: Random, held: bool) -> Conversation:
    numbers = _numbers(rng, held)
    wording, best = ("largest", max) if rng.random() < 0.5 else ("smallest", min)
    text = _row(numbers) if rng.random() < 0.5 else listed([str(number) for number in numbers])
    answer, thought = f"The {wording} is {best(numbers)}.", f"Sorted: {_row(sorted(numbers))}."
    return _asked(rng, held, wording, {"list": text}, answer, "lists", thought)


def neighbour(rng: Random, held: bool) -> Conversation:
    number = rng.randint(1, 99)
    wording, sign, step = ("after", "+", 1) if rng.random() < 0.5 else ("before", "-", -1)
    answer, thought = f"{number + step} comes {wording} {number}.", f"{number} {sign} 1 = {number + step}."
    return _asked(rng, held, wording, {"n": number}, answer, "numbers", thought)


def in_words(rng: Random, held: bool) -> Conversation:
    n = rng.randrange(len(NUMBER_WORDS))
    return _asked(rng, held, "in_words", {"n": n}, f"{n} is {NUMBER_WORDS[n]}.", "numbers", f"{n} as a word.")


def even(rng: Random, held: bool) -> Conversation:
    n = rng.randrange(100)
    kind = "odd" if n % 2 else "even"
    thought = f"The last digit is {n % 10}, so it is {kind}."
    return _asked(rng, held, "even", {"n": n}, f"{n} is {kind}.", "numbers", thought)


def count_to(rng: Random, held: bool) -> Conversation:
    first = rng.randint(0, 30)
    last = first + rng.randint(3, 10)
    answer, thought = _row(range(first, last + 1)), f"I begin at {first} and end at {last}."
    return _asked(rng, held, "count_to", {"a": first, "b": last}, answer, "lists", thought)


def running_total(rng: Random, held: bool) -> Conversation:
    """A sum that goes on over several turns."""
    total, step = _pair(rng, held, "+", 40)
    conversation = _asked(rng, held, "add", {"a": total, "b": step}, add(total, step), "turns")
    for _ in range(rng.randint(1, 2)):
        total += step
        step = rng.randint(1, 19)
        question = choose(rng, SAID["running_total"], held).format(step)
        conversation.turns += Conversation.single(question, add(total, step), "turns").turns
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
