"""Small talk: greetings, who it is, what it cannot do, feelings, tiny stories, and plain ignorance."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from chat_format import Conversation
from words import (
    ANIMALS,
    CITIES,
    COLOURS,
    COUNTRIES,
    FIELDS,
    FOODS,
    LANGUAGES,
    NATURE,
    QUALITIES,
    THINGS,
    VERBS,
    article,
    choose,
    invented,
    name,
    pick,
)

SOURCE = json.loads((Path(__file__).parent / "data" / "talk.json").read_text())
TALK: list[tuple[list[str], list[str], str]] = [
    (entry["questions"], entry["answers"], entry["thought"]) for entry in SOURCE["small_talk"]
]
SMALL_KNOWLEDGE: list[tuple[list[str], list[str], dict[str, str]]] = [
    (entry["questions"], entry["answers"], entry["table"]) for entry in SOURCE["knowledge"]
]
UNKNOWN: list[str] = SOURCE["unknown"]
UNKNOWN_ANSWERS: list[str] = SOURCE["unknown_answers"]
STORIES: list[str] = SOURCE["stories"]
STORY_ASKS: list[str] = SOURCE["story_questions"]
HELD_UNKNOWN = 12
"""So many templates at the end of UNKNOWN are never trained on."""


def slots(rng: Random, held: bool) -> dict[str, str]:
    """One random entity for every kind of slot."""
    thing, animal, quality = pick(rng, THINGS, held), pick(rng, ANIMALS, held), pick(rng, QUALITIES, held)
    made_up = invented(rng)
    return {
        "country": pick(rng, COUNTRIES, held),
        "city": pick(rng, CITIES, held),
        "city2": pick(rng, CITIES, False),
        "name": name(rng, held),
        "surname": invented(rng).capitalize(),
        "thing": thing,
        "article_thing": article(thing),
        "food": pick(rng, FOODS, held),
        "animal": animal,
        "article_animal": article(animal),
        "field": pick(rng, FIELDS, held),
        "word": pick(rng, THINGS, held),
        "language": pick(rng, LANGUAGES, held),
        "nature": pick(rng, NATURE, held),
        "verb": pick(rng, VERBS, held),
        "quality": quality,
        "quality2": quality,
        "article_quality": article(quality),
        "invented": made_up,
        "Invented": made_up.capitalize(),
        "colour": rng.choice(COLOURS),
    }


def small_talk(rng: Random, held: bool) -> Conversation:
    questions, answers, thought = rng.choice(TALK)
    return Conversation.single(choose(rng, questions, held), rng.choice(answers), "talk", thought)


def unknown(rng: Random, held: bool) -> Conversation:
    side = UNKNOWN[-HELD_UNKNOWN:] if held else UNKNOWN[:-HELD_UNKNOWN]
    question = rng.choice(side).format(**slots(rng, held))
    return Conversation.single(
        question,
        rng.choice(UNKNOWN_ANSWERS),
        "unknown",
        "This is not about Daybreak and no small task. I do not know it.",
    )


def small_knowledge(rng: Random, held: bool) -> Conversation:
    asks, answers, table = rng.choice(SMALL_KNOWLEDGE)
    key = rng.choice(list(table))
    answer = rng.choice(answers).format(k=key, v=table[key])
    return Conversation.single(choose(rng, asks, held).format(k=key), answer, "knowledge", f"I know this about {key}.")


def story(rng: Random, held: bool) -> Conversation:
    words = slots(rng, held)
    question = choose(rng, STORY_ASKS, held).format(**words)
    return Conversation.single(
        question, rng.choice(STORIES).format(**words), "story", f"A short story about the {words['animal']}."
    )


def named_user(rng: Random, held: bool) -> Conversation:
    """The user tells a name or a liking, and asks for it."""
    who = name(rng, held)
    if rng.random() < 0.5:
        tell = choose(
            rng,
            [
                "My name is {}.",
                "I am {}.",
                "Hello, I am {}.",
                "Hi! My name is {}.",
                "You can call me {}.",
                "I am called {}.",
            ],
            held,
        ).format(who)
        ask = choose(
            rng,
            [
                "What is my name?",
                "Who am I?",
                "Do you know my name?",
                "Tell me my name.",
                "Can you remember my name?",
            ],
            held,
        )
        first, second = f"Hello, {who}! How can I help you?", f"Your name is {who}."
    else:
        kind, words = rng.choice([("colour", COLOURS), ("animal", ANIMALS), ("food", FOODS), ("city", CITIES)])
        value = pick(rng, words, held)
        tell = choose(
            rng, ["My favourite {} is {}.", "I like one {} most: {}.", "The {} that I like best is {}."], held
        ).format(kind, value)
        ask = choose(
            rng,
            ["What is my favourite {}?", "Which {} do I like best?", "Do you remember my favourite {}?"],
            held,
        ).format(kind)
        first, second = f"Good! I will remember that: {value}.", f"Your favourite {kind} is {value}."
    conversation = Conversation.single(tell, first, "memory")
    follow = Conversation.single(ask, second, "memory", "The user told me that before.")
    between = [] if rng.random() < 0.5 else small_talk(rng, held).turns
    for turn in between:
        turn.thought = None
    conversation.turns += between + follow.turns
    return conversation
