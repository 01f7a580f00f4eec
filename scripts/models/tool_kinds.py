"""Kinds of tools that training varies: names, descriptions, parameters, ways to ask, results and answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from words import ANIMALS, CITIES, COLOURS, COUNTRIES, DAYS, FIELDS, FOODS, LANGUAGES, MONTHS, THINGS, WORDS, city, invented, name, pick

Value = str | int
CURRENCIES = ["EUR", "USD", "GBP", "JPY", "CHF", "SEK"]
SKIES = ["sunny", "cloudy", "rainy", "windy", "foggy", "clear"]


@dataclass(frozen=True)
class Parameter:
    """One argument: its possible names, its type (or allowed values) and what a user may say for it."""

    names: tuple[str, ...]
    kind: str | tuple[str, ...]
    value: Callable[[Random, bool], Value]


@dataclass(frozen=True)
class ToolKind:
    """A family of tools of one meaning. Slots in `asks` are keys of `parameters`; the answer may also use results."""

    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    parameters: dict[str, Parameter]
    asks: tuple[str, ...]
    result: Callable[[Random], dict[str, Any]]
    answer: str
    optional: tuple[str, ...] = field(default=())


def _text(rng: Random, held: bool) -> str:
    words = [pick(rng, WORDS, held) for _ in range(rng.randint(1, 3))]
    return " ".join(words) if rng.random() < 0.7 else f"{invented(rng)} {words[0]}"


def _count(low: int, high: int) -> Callable[[Random, bool], int]:
    return lambda rng, _: rng.randint(low, high)


def _time(rng: Random, _: bool) -> str:
    return f"{rng.randint(0, 23)}:{rng.choice(['00', '15', '30', '45'])}"


def _from(words: list[str]) -> Callable[[Random, bool], str]:
    return lambda rng, held: pick(rng, words, held)


def _email(rng: Random, held: bool) -> str:
    return f"{name(rng, held).lower()}@{invented(rng)}.{rng.choice(['com', 'org', 'net'])}"


def _expression(rng: Random, _: bool) -> str:
    return f"{rng.randint(2, 9999)} {rng.choice('+-*/')} {rng.randint(2, 999)}"


def _number(key: str, low: int, high: int) -> Callable[[Random], dict[str, Any]]:
    return lambda rng: {key: rng.randint(low, high)}


def _ok(rng: Random) -> dict[str, Any]:
    return {"status": "ok"}


CITY = Parameter(("city", "location", "place", "town"), "string", city)
TOPIC = Parameter(("query", "q", "text", "term", "topic"), "string", _text)
PERSON = Parameter(("name", "person", "to", "contact"), "string", name)
MESSAGE = Parameter(("message", "text", "body", "content"), "string", _text)
TASK = Parameter(("title", "task", "text", "what"), "string", _text)
DAY = Parameter(("day", "date", "when"), "string", _from(DAYS))
TIME = Parameter(("time", "at", "when"), "string", _time)
THING = Parameter(("item", "product", "article", "thing"), "string", _from(THINGS))

KINDS: list[ToolKind] = [
    ToolKind(
        ("get_weather", "weather", "current_weather", "fetch_weather", "weather_now", "getWeather"),
        ("Get the weather of a city", "Current weather in a place", "Look up the weather", "Tells the weather"),
        {"city": CITY},
        ("What is the weather in {city}?", "How is the weather in {city}?", "Weather in {city}", "Tell me the weather in {city}.", "Is it warm in {city}?", "Will it rain in {city}?", "what's the weather like in {city}", "I am in {city}. Do I need a coat?", "How warm is it in {city} now?"),
        lambda rng: {"temperature": rng.randint(-9, 35), "sky": rng.choice(SKIES)}, "It is {temperature} degrees and {sky} in {city}.",
    ),
    ToolKind(
        ("get_forecast", "forecast", "weather_forecast", "forecastWeather"),
        ("Weather forecast for a city and a number of days", "Get the forecast for some days"),
        {"city": CITY, "days": Parameter(("days", "n_days", "count"), "integer", _count(1, 14))},
        ("Give me the forecast for {city} for {days} days.", "What is the forecast for {city} for the next {days} days?", "Forecast {city}, {days} days", "How will the weather be in {city} in the next {days} days?", "I need a {days} day forecast for {city}."),
        lambda rng: {"forecast": rng.choice(SKIES)}, "The forecast for {city} is {forecast}.",
    ),
    ToolKind(
        ("calculator", "calculate", "compute", "eval_math", "math"),
        ("Calculate an expression", "Evaluate arithmetic", "Does sums", "Compute the value of an expression"),
        {"expression": Parameter(("expression", "expr", "formula", "input"), "string", _expression)},
        ("What is {expression}?", "Calculate {expression}", "Compute {expression}.", "{expression}", "How much is {expression}?", "Work out {expression} for me.", "Please evaluate {expression}."),
        _number("result", -999, 99999), "The result is {result}.",
    ),
    ToolKind(
        ("search", "web_search", "search_web", "find", "lookup", "searchWeb"),
        ("Search the web", "Find pages about something", "Search for a text", "Look something up"),
        {"query": TOPIC},
        ("Search for {query}.", "Look up {query}.", "Find pages about {query}.", "search {query}", "Please search the web for {query}.", "Find something about {query}.", "What does the web say about {query}?"),
        lambda rng: {"title": f"{invented(rng).capitalize()} {rng.choice(THINGS)}"}, "I found this: {title}.",
    ),
    ToolKind(
        ("send_message", "send_text", "message", "sendMessage", "text_person"),
        ("Send a message to a person", "Sends a text to someone", "Write to a contact"),
        {"person": PERSON, "message": MESSAGE},
        ("Send {person} the message: {message}", "Tell {person}: {message}", "Write to {person}: {message}", "Message {person} with the text: {message}", "Please send to {person}: {message}"),
        _ok, "I sent the message to {person}.",
    ),
    ToolKind(
        ("send_email", "email", "mail", "sendEmail", "write_email"),
        ("Send an email", "Sends mail to an address"),
        {"address": Parameter(("to", "address", "email", "recipient"), "string", _email), "subject": Parameter(("subject", "title", "about"), "string", _text)},
        ("Send an email to {address} about {subject}.", "Write an email to {address} with the subject {subject}.", "Email {address} about {subject}.", "Mail {address}, subject {subject}."),
        _ok, "I sent the email to {address}.",
    ),
    ToolKind(
        ("set_timer", "timer", "start_timer", "startTimer"),
        ("Start a timer", "Sets a timer for some minutes"),
        {"minutes": Parameter(("minutes", "duration", "mins", "length"), "integer", _count(1, 90))},
        ("Set a timer for {minutes} minutes.", "Start a timer of {minutes} minutes.", "Timer: {minutes} minutes", "Wake me in {minutes} minutes.", "Please time {minutes} minutes."),
        _ok, "The timer runs for {minutes} minutes.",
    ),
    ToolKind(
        ("set_alarm", "alarm", "wake_up", "setAlarm"),
        ("Set an alarm at a time", "Wakes the user at a time"),
        {"time": TIME},
        ("Set an alarm for {time}.", "Wake me at {time}.", "Alarm at {time}", "Please wake me up at {time}.", "I must get up at {time}."),
        _ok, "The alarm is set for {time}.",
    ),
    ToolKind(
        ("add_event", "create_event", "calendar_add", "new_event", "addEvent"),
        ("Add an event to the calendar", "Create a calendar entry"),
        {"title": TASK, "day": DAY},
        ("Add {title} to my calendar on {day}.", "Put {title} in the calendar for {day}.", "Create an event {title} on {day}.", "New event on {day}: {title}", "Plan {title} for {day}."),
        _ok, "I added {title} on {day}.",
    ),
    ToolKind(
        ("add_reminder", "remind", "create_reminder", "reminder", "remindMe"),
        ("Remind the user of something", "Create a reminder"),
        {"task": TASK, "time": TIME},
        ("Remind me of {task} at {time}.", "Remind me at {time} of {task}.", "Set a reminder for {task} at {time}.", "At {time}, remind me: {task}"),
        _ok, "I will remind you of {task} at {time}.",
    ),
    ToolKind(
        ("translate", "translate_text", "translator", "to_language"),
        ("Translate a text", "Translates text into a language"),
        {"text": Parameter(("text", "phrase", "input", "content"), "string", _text), "language": Parameter(("language", "target", "to", "lang"), "string", _from(LANGUAGES))},
        ("Translate {text} into {language}.", "Translate to {language}: {text}", "How do you say {text} in {language}?", "What is {text} in {language}?", "Give me {text} in {language}."),
        lambda rng: {"translation": f"{invented(rng)} {invented(rng)}"}, "In {language} it is: {translation}.",
    ),
    ToolKind(
        ("convert_currency", "exchange", "currency", "convertMoney"),
        ("Convert money", "Converts an amount from one currency to another"),
        {"amount": Parameter(("amount", "value", "sum"), "integer", _count(1, 5000)), "source": Parameter(("from", "source", "base"), "string", lambda rng, _: rng.choice(CURRENCIES)), "target": Parameter(("to", "target", "into"), "string", lambda rng, _: rng.choice(CURRENCIES))},
        ("Convert {amount} {source} to {target}.", "How much is {amount} {source} in {target}?", "{amount} {source} in {target}", "Change {amount} {source} into {target}.", "What are {amount} {source} in {target}?"),
        _number("result", 1, 9000), "{amount} {source} are {result} {target}.",
    ),
    ToolKind(
        ("get_price", "price", "price_of", "lookup_price", "getPrice"),
        ("Get the price of a product", "Look up what something costs"),
        {"item": THING},
        ("What does the {item} cost?", "How much is the {item}?", "Price of the {item}", "Tell me the price of the {item}.", "What is the price of the {item}?", "Look up what the {item} costs."),
        _number("price", 1, 900), "The {item} costs {price}.",
    ),
    ToolKind(
        ("order", "buy", "place_order", "order_item", "add_to_cart"),
        ("Order a product", "Buys some pieces of an item"),
        {"item": THING, "count": Parameter(("count", "quantity", "amount", "n"), "integer", _count(2, 40))},
        ("Order {count} of the item {item}.", "Buy {count} pieces of {item}.", "I want {count} pieces of {item}.", "Please order {count} x {item}.", "Get me {count} pieces of {item}."),
        lambda rng: {"order": rng.randint(100, 9999)}, "I ordered {count} x {item}. The order number is {order}.",
    ),
    ToolKind(
        ("light", "set_light", "switch_light", "lamp", "setLight"),
        ("Switch a light on or off", "Controls the light of a room"),
        {"room": Parameter(("room", "place", "where"), "string", lambda rng, _: rng.choice(["kitchen", "bedroom", "bathroom", "garden", "hall", "office", "garage", "cellar"])), "state": Parameter(("state", "value", "switch"), ("on", "off"), lambda rng, _: rng.choice(["on", "off"]))},
        ("Turn {state} the light in the {room}.", "Switch the {room} light {state}.", "Light {state} in the {room}, please.", "Turn the light in the {room} {state}.", "Put the {room} light {state}."),
        _ok, "The light in the {room} is {state}.",
    ),
    ToolKind(
        ("play_music", "play", "play_song", "music", "playMusic"),
        ("Play music", "Plays songs of an artist"),
        {"artist": Parameter(("artist", "singer", "band", "query"), "string", name)},
        ("Play music by {artist}.", "Play {artist}.", "I want to hear {artist}.", "Put on something by {artist}.", "Music by {artist}, please."),
        lambda rng: {"song": invented(rng).capitalize()}, "I play {song} by {artist}.",
    ),
    ToolKind(
        ("read_file", "open_file", "cat", "load_file", "readFile"),
        ("Read a file", "Gives the text of a file"),
        {"path": Parameter(("path", "file", "filename"), "string", lambda rng, _: f"{invented(rng)}.{rng.choice(['txt', 'md', 'json', 'csv'])}")},
        ("Read the file {path}.", "Open {path}.", "What is in {path}?", "Show me the file {path}.", "Print {path}."),
        lambda rng: {"text": f"{rng.choice(WORDS)} {rng.choice(WORDS)}"}, "The file {path} says: {text}.",
    ),
    ToolKind(
        ("get_time", "time_in", "current_time", "clock", "getTime"),
        ("Get the time in a city", "Tells the current time of a place"),
        {"city": CITY},
        ("What time is it in {city}?", "Tell me the time in {city}.", "Time in {city}", "How late is it in {city}?", "What is the time in {city} now?"),
        lambda rng: {"time": _time(rng, False)}, "It is {time} in {city}.",
    ),
    ToolKind(
        ("find_route", "route", "directions", "navigate", "getRoute"),
        ("Find the way between two places", "Route from one city to another"),
        {"start": Parameter(("from", "start", "origin"), "string", city), "end": Parameter(("to", "end", "destination", "goal"), "string", city)},
        ("How do I get from {start} to {end}?", "Find a route from {start} to {end}.", "Directions from {start} to {end}", "Show me the way from {start} to {end}.", "I want to go from {start} to {end}."),
        _number("km", 5, 3000), "From {start} to {end} it is {km} km.",
    ),
    ToolKind(
        ("get_stock", "stock_price", "quote", "share_price"),
        ("Price of a share", "Get a stock quote"),
        {"company": Parameter(("symbol", "company", "ticker", "name"), "string", lambda rng, _: invented(rng).upper() if rng.random() < 0.5 else invented(rng).capitalize())},
        ("What is the share price of {company}?", "Stock price of {company}", "How is the stock of {company}?", "Get me a quote for {company}.", "What does a share of {company} cost?"),
        _number("price", 2, 900), "A share of {company} costs {price}.",
    ),
    ToolKind(
        ("random_number", "dice", "roll", "pick_number"),
        ("Give a random number up to a maximum", "Roll a die with many sides"),
        {"maximum": Parameter(("max", "maximum", "sides", "limit"), "integer", _count(2, 200))},
        ("Give me a random number up to {maximum}.", "Roll a die with {maximum} sides.", "Pick a number up to {maximum}.", "Random number, at most {maximum}"),
        _number("number", 1, 99), "The number is {number}.",
    ),
    ToolKind(
        ("get_date", "today", "current_date", "getDate"),
        ("Get the date of today", "Tells which day it is"),
        {},
        ("What day is it today?", "What is the date?", "Which day is today?", "Tell me the date.", "What is the date of today?"),
        lambda rng: {"date": f"{rng.choice(DAYS)}, {rng.randint(1, 28)} {rng.choice(MONTHS)}"}, "Today is {date}.",
    ),
    ToolKind(
        ("set_heating", "heating", "set_temperature", "setHeat"),
        ("Set the temperature of a room", "Heats a room to some degrees"),
        {"room": Parameter(("room", "place", "where"), "string", lambda rng, _: rng.choice(["kitchen", "bedroom", "bathroom", "hall", "office", "garage", "cellar"])), "degrees": Parameter(("degrees", "temperature", "value"), "number", _count(12, 30))},
        ("Heat the {room} to {degrees} degrees.", "Set the {room} to {degrees} degrees.", "Make the {room} {degrees} degrees warm.", "I want {degrees} degrees in the {room}.", "Put the {room} at {degrees} degrees."),
        _ok, "The {room} is set to {degrees} degrees.",
    ),
]
HELD_KINDS: list[ToolKind] = [
    ToolKind(
        ("book_flight", "flight", "reserve_flight"),
        ("Book a flight to a city on a day", "Reserve a flight"),
        {"city": Parameter(("destination", "to", "city"), "string", city), "day": DAY},
        ("Book a flight to {city} on {day}.", "I want to fly to {city} on {day}.", "Reserve a flight to {city} for {day}."),
        lambda rng: {"flight": rng.randint(100, 999)}, "Your flight to {city} on {day} is booked.",
    ),
    ToolKind(
        ("create_note", "note", "save_note"),
        ("Write a note", "Saves a note with a text"),
        {"text": Parameter(("text", "note", "content"), "string", _text)},
        ("Make a note: {text}", "Save the note {text}.", "Note this: {text}"),
        _ok, "I saved the note.",
    ),
    ToolKind(
        ("get_population", "population", "count_people"),
        ("Get the population of a country", "How many people live in a country"),
        {"country": Parameter(("country", "nation", "land"), "string", _from(COUNTRIES))},
        ("How many people live in {country}?", "What is the population of {country}?", "Population of {country}"),
        _number("population", 100, 99999), "{population} people live in {country}.",
    ),
    ToolKind(
        ("paint_wall", "colour_wall", "paint"),
        ("Paint a wall in a colour", "Gives a wall a new colour"),
        {"colour": Parameter(("colour", "paint"), "string", _from(COLOURS)), "walls": Parameter(("walls", "count"), "integer", _count(1, 9))},
        ("Paint {walls} walls {colour}.", "Please paint {walls} walls in {colour}.", "I want {walls} {colour} walls."),
        _ok, "I painted {walls} walls {colour}.",
    ),
    ToolKind(
        ("feed_animal", "feed", "give_food"),
        ("Feed an animal with some food", "Give food to an animal"),
        {"animal": Parameter(("animal", "pet"), "string", _from(ANIMALS)), "food": Parameter(("food", "meal"), "string", _from(FOODS))},
        ("Feed the {animal} with {food}.", "Give {food} to the {animal}.", "The {animal} is hungry. Give it {food}."),
        _ok, "I gave {food} to the {animal}.",
    ),
]
