"""Kinds of tools that training never sees."""

from __future__ import annotations

from tool_kind import DAY, Parameter, ToolKind, number_result, one_of, plain_ok, some_text, whole_number
from words import ANIMALS, COLOURS, COUNTRIES, FOODS, city

HELD_KINDS: list[ToolKind] = [
    ToolKind(
        ("book_flight", "flight", "reserve_flight"),
        ("Book a flight to a city on a day", "Reserve a flight"),
        {"city": Parameter(("destination", "to", "city"), "string", city), "day": DAY},
        (
            "Book a flight to {city} on {day}.",
            "I want to fly to {city} on {day}.",
            "Reserve a flight to {city} for {day}.",
        ),
        lambda rng: {"flight": rng.randint(100, 999)},
        "Your flight to {city} on {day} is booked.",
    ),
    ToolKind(
        ("create_note", "note", "save_note"),
        ("Write a note", "Saves a note with a text"),
        {"text": Parameter(("text", "note", "content"), "string", some_text)},
        ("Make a note: {text}", "Save the note {text}.", "Note this: {text}"),
        plain_ok,
        "I saved the note.",
    ),
    ToolKind(
        ("get_population", "population", "count_people"),
        ("Get the population of a country", "How many people live in a country"),
        {"country": Parameter(("country", "nation", "land"), "string", one_of(COUNTRIES))},
        (
            "How many people live in {country}?",
            "What is the population of {country}?",
            "Population of {country}",
        ),
        number_result("population", 100, 99999),
        "{population} people live in {country}.",
    ),
    ToolKind(
        ("paint_wall", "colour_wall", "paint"),
        ("Paint a wall in a colour", "Gives a wall a new colour"),
        {
            "colour": Parameter(("colour", "paint"), "string", one_of(COLOURS)),
            "walls": Parameter(("walls", "count"), "integer", whole_number(1, 9)),
        },
        (
            "Paint {walls} walls {colour}.",
            "Please paint {walls} walls in {colour}.",
            "I want {walls} {colour} walls.",
        ),
        plain_ok,
        "I painted {walls} walls {colour}.",
    ),
    ToolKind(
        ("feed_animal", "feed", "give_food"),
        ("Feed an animal with some food", "Give food to an animal"),
        {
            "animal": Parameter(("animal", "pet"), "string", one_of(ANIMALS)),
            "food": Parameter(("food", "meal"), "string", one_of(FOODS)),
        },
        (
            "Feed the {animal} with {food}.",
            "Give {food} to the {animal}.",
            "The {animal} is hungry. Give it {food}.",
        ),
        plain_ok,
        "I gave {food} to the {animal}.",
    ),
]
