"""Small sums, comparisons, number lists and unit conversions, with the working as the thought."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from chat_format import Conversation
from words import NUMBER_WORDS, choose, is_held, listed, templates

ADD = ["What is {a} + {b}?", "{a} + {b}", "{a}+{b}", "{a} + {b} = ?", "{a}+{b}=", "Add {a} and {b}.", "What is {a} plus {b}?", "How much is {a} plus {b}?", "how much is {a} + {b}", "Please add {a} and {b}.", "Calculate {a} + {b}.", "What is the sum of {a} and {b}?", "Compute {a} plus {b}.", "Can you add {a} and {b}?", "What do {a} and {b} make?"]
SUBTRACT = ["What is {a} - {b}?", "{a} - {b}", "{a}-{b}", "{a} - {b} = ?", "Subtract {b} from {a}.", "What is {a} minus {b}?", "How much is {a} minus {b}?", "Calculate {a} - {b}.", "Take {b} from {a}.", "What is the difference of {a} and {b}?"]
TIMES = ["What is {a} * {b}?", "{a} * {b}", "{a} x {b}", "{a} × {b} = ?", "What is {a} times {b}?", "How much is {a} times {b}?", "Multiply {a} by {b}.", "Calculate {a} * {b}.", "Compute {a} times {b}."]
COMPARE = ["Which is larger, {a} or {b}?", "Which number is larger: {a} or {b}?", "Is {a} or {b} larger?", "Which is greater, {a} or {b}?", "Which of {a} and {b} is bigger?", "What is more, {a} or {b}?"]
COMPARE_SMALL = ["Which is smaller, {a} or {b}?", "Which number is smaller: {a} or {b}?", "Is {a} or {b} smaller?", "Which of {a} and {b} is smaller?", "What is less, {a} or {b}?"]
UNITS: list[tuple[str, str, int, int]] = [
    ("km", "m", 1000, 20), ("m", "cm", 100, 30), ("cm", "mm", 10, 50), ("kg", "g", 1000, 20), ("hours", "minutes", 60, 12),
    ("minutes", "seconds", 60, 12), ("days", "hours", 24, 7), ("weeks", "days", 7, 12), ("years", "months", 12, 10), ("litres", "ml", 1000, 20),
    ("KB", "bytes", 1000, 20), ("MB", "KB", 1000, 20), ("GB", "MB", 1000, 20), ("dozen", "pieces", 12, 10),
]
CONVERT = ["How many {to} are {n} {from}?", "How many {to} are in {n} {from}?", "Convert {n} {from} to {to}.", "What is {n} {from} in {to}?", "{n} {from} in {to}", "Give me {n} {from} in {to}.", "Please convert {n} {from} into {to}."]
SORT = ["Sort these numbers: {list}", "Sort {list}", "Put these numbers in order: {list}", "Sort the numbers {list} from small to large.", "Please sort {list}.", "Order these numbers: {list}"]
LARGEST = ["What is the largest of {list}?", "Which number is the largest: {list}?", "Find the largest number: {list}", "What is the maximum of {list}?", "Give me the biggest of {list}."]
SMALLEST = ["What is the smallest of {list}?", "Which number is the smallest: {list}?", "Find the smallest number: {list}", "What is the minimum of {list}?", "Give me the least of {list}."]
AFTER = ["What comes after {n}?", "Which number comes after {n}?", "What is the number after {n}?", "What follows {n}?"]
BEFORE = ["What comes before {n}?", "Which number comes before {n}?", "What is the number before {n}?", "What precedes {n}?"]
IN_WORDS = ["Write {n} in words.", "How do you write {n} in words?", "Spell the number {n}.", "What is {n} in words?", "Give me {n} as a word."]
EVEN = ["Is {n} even or odd?", "Is {n} odd or even?", "Tell me whether {n} is even or odd.", "Even or odd: {n}"]
COUNT_TO = ["Count from {a} to {b}.", "Count up from {a} to {b}.", "Give me the numbers from {a} to {b}.", "List the numbers from {a} to {b}."]


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
    return Conversation.single(choose(rng, ADD, held).format(a=a, b=b), add(a, b), "arithmetic", f"I add {a} and {b}.")


def subtraction(rng: Random, held: bool) -> Conversation:
    a, b = _pair(rng, held, "-", 99)
    a, b = max(a, b), min(a, b)
    return Conversation.single(choose(rng, SUBTRACT, held).format(a=a, b=b), subtract(a, b), "arithmetic", f"I take {b} from {a}.")


def multiplication(rng: Random, held: bool) -> Conversation:
    # A table to learn by heart: no pair can be held out, only the wording.
    a, b = rng.randint(0, 10), rng.randint(0, 10)
    return Conversation.single(choose(rng, TIMES, held).format(a=a, b=b), f"{a} * {b} = {a * b}", "arithmetic", f"{a} times {b} is {a * b}.")


def comparison(rng: Random, held: bool) -> Conversation:
    a, b = rng.sample(range(100), 2)
    larger = rng.random() < 0.6
    question = choose(rng, COMPARE if larger else COMPARE_SMALL, held).format(a=a, b=b)
    best = max(a, b) if larger else min(a, b)
    return Conversation.single(question, f"{best} is {'larger' if larger else 'smaller'}.", "numbers", f"{max(a, b)} > {min(a, b)}.")


def conversion(rng: Random, held: bool) -> Conversation:
    source, target, factor, limit = rng.choice(UNITS)
    count = rng.randint(1, limit)
    question = choose(rng, CONVERT, held).format(**{"from": source, "to": target, "n": count})
    return Conversation.single(question, f"{count} {source} = {count * factor} {target}", "units", f"1 {source} = {factor} {target}. {count} * {factor} = {count * factor}.")


def _numbers(rng: Random, limit: int = 100) -> list[int]:
    return rng.sample(range(limit), rng.randint(3, 5))


def sort_numbers(rng: Random, held: bool) -> Conversation:
    numbers = _numbers(rng, rng.choice([10, 30, 100]))
    text = ", ".join(map(str, numbers))
    return Conversation.single(choose(rng, SORT, held).format(list=text), ", ".join(map(str, sorted(numbers))), "lists", f"The smallest is {min(numbers)}.")


def extreme(rng: Random, held: bool) -> Conversation:
    numbers = _numbers(rng)
    largest = rng.random() < 0.5
    text = ", ".join(map(str, numbers)) if rng.random() < 0.5 else listed([str(number) for number in numbers])
    best = max(numbers) if largest else min(numbers)
    question = choose(rng, LARGEST if largest else SMALLEST, held).format(list=text)
    return Conversation.single(question, f"The {'largest' if largest else 'smallest'} is {best}.", "lists", f"Sorted: {', '.join(map(str, sorted(numbers)))}.")


def neighbour(rng: Random, held: bool) -> Conversation:
    number = rng.randint(1, 99)
    after = rng.random() < 0.5
    result = number + 1 if after else number - 1
    return Conversation.single(choose(rng, AFTER if after else BEFORE, held).format(n=number), f"{result} comes {'after' if after else 'before'} {number}.", "numbers", f"{number} {'+' if after else '-'} 1 = {result}.")


def in_words(rng: Random, held: bool) -> Conversation:
    number = rng.randrange(len(NUMBER_WORDS))
    return Conversation.single(choose(rng, IN_WORDS, held).format(n=number), f"{number} is {NUMBER_WORDS[number]}.", "numbers", f"{number} as a word.")


def even(rng: Random, held: bool) -> Conversation:
    number = rng.randrange(100)
    kind = "odd" if number % 2 else "even"
    return Conversation.single(choose(rng, EVEN, held).format(n=number), f"{number} is {kind}.", "numbers", f"The last digit is {number % 10}, so it is {kind}.")


def count_to(rng: Random, held: bool) -> Conversation:
    first = rng.randint(0, 30)
    last = first + rng.randint(3, 10)
    return Conversation.single(choose(rng, COUNT_TO, held).format(a=first, b=last), ", ".join(map(str, range(first, last + 1))), "lists", f"I begin at {first} and end at {last}.")


def running_total(rng: Random, held: bool) -> Conversation:
    """A sum that goes on over several turns."""
    total, step = _pair(rng, held, "+", 40)
    conversation = Conversation.single(choose(rng, ADD, held).format(a=total, b=step), add(total, step), "turns")
    total += step
    for _ in range(rng.randint(1, 2)):
        step = rng.randint(1, 19)
        question = rng.choice(templates(["And plus {}?", "Plus {}?", "Add {} to that.", "Now add {}.", "And {} more?"], held)).format(step)
        conversation.turns += Conversation.single(question, add(total, step), "turns").turns
        total += step
    return conversation


GENERATORS: list[tuple[Callable[[Random, bool], Conversation], float]] = [
    (addition, 5.0), (subtraction, 3.0), (multiplication, 1.5), (comparison, 1.0), (conversion, 1.5), (sort_numbers, 1.2),
    (extreme, 1.0), (neighbour, 0.4), (in_words, 0.3), (even, 0.4), (count_to, 0.5), (running_total, 1.2),
]
