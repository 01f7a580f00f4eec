"""Kinds of tools in training, second part."""

from __future__ import annotations

from tool_kind import CITY, CURRENCIES, THING, Parameter, ToolKind, clock_time, number_result, plain_ok, whole_number
from words import DAYS, MONTHS, WORDS, city, invented, name

SECOND_KINDS: list[ToolKind] = [
    ToolKind(
        ("convert_currency", "exchange", "currency", "convertMoney"),
        ("Convert money", "Converts an amount from one currency to another"),
        {
            "amount": Parameter(("amount", "value", "sum"), "integer", whole_number(1, 5000)),
            "source": Parameter(("from", "source", "base"), "string", lambda rng, _: rng.choice(CURRENCIES)),
            "target": Parameter(("to", "target", "into"), "string", lambda rng, _: rng.choice(CURRENCIES)),
        },
        (
            "Convert {amount} {source} to {target}.",
            "How much is {amount} {source} in {target}?",
            "{amount} {source} in {target}",
            "Change {amount} {source} into {target}.",
            "What are {amount} {source} in {target}?",
        ),
        number_result("result", 1, 9000),
        "{amount} {source} are {result} {target}.",
    ),
    ToolKind(
        ("get_price", "price", "price_of", "lookup_price", "getPrice"),
        ("Get the price of a product", "Look up what something costs"),
        {"item": THING},
        (
            "What does the {item} cost?",
            "How much is the {item}?",
            "Price of the {item}",
            "Tell me the price of the {item}.",
            "What is the price of the {item}?",
            "Look up what the {item} costs.",
        ),
        number_result("price", 1, 900),
        "The {item} costs {price}.",
    ),
    ToolKind(
        ("order", "buy", "place_order", "order_item", "add_to_cart"),
        ("Order a product", "Buys some pieces of an item"),
        {"item": THING, "count": Parameter(("count", "quantity", "amount", "n"), "integer", whole_number(2, 40))},
        (
            "Order {count} of the item {item}.",
            "Buy {count} pieces of {item}.",
            "I want {count} pieces of {item}.",
            "Please order {count} x {item}.",
            "Get me {count} pieces of {item}.",
        ),
        lambda rng: {"order": rng.randint(100, 9999)},
        "I ordered {count} x {item}. The order number is {order}.",
    ),
    ToolKind(
        ("light", "set_light", "switch_light", "lamp", "setLight"),
        ("Switch a light on or off", "Controls the light of a room"),
        {
            "room": Parameter(
                ("room", "place", "where"),
                "string",
                lambda rng, _: rng.choice(
                    ["kitchen", "bedroom", "bathroom", "garden", "hall", "office", "garage", "cellar"]
                ),
            ),
            "state": Parameter(("state", "value", "switch"), ("on", "off"), lambda rng, _: rng.choice(["on", "off"])),
        },
        (
            "Turn {state} the light in the {room}.",
            "Switch the {room} light {state}.",
            "Light {state} in the {room}, please.",
            "Turn the light in the {room} {state}.",
            "Put the {room} light {state}.",
        ),
        plain_ok,
        "The light in the {room} is {state}.",
    ),
    ToolKind(
        ("play_music", "play", "play_song", "music", "playMusic"),
        ("Play music", "Plays songs of an artist"),
        {"artist": Parameter(("artist", "singer", "band", "query"), "string", name)},
        (
            "Play music by {artist}.",
            "Play {artist}.",
            "I want to hear {artist}.",
            "Put on something by {artist}.",
            "Music by {artist}, please.",
        ),
        lambda rng: {"song": invented(rng).capitalize()},
        "I play {song} by {artist}.",
    ),
    ToolKind(
        ("read_file", "open_file", "cat", "load_file", "readFile"),
        ("Read a file", "Gives the text of a file"),
        {
            "path": Parameter(
                ("path", "file", "filename"),
                "string",
                lambda rng, _: f"{invented(rng)}.{rng.choice(['txt', 'md', 'json', 'csv'])}",
            )
        },
        (
            "Read the file {path}.",
            "Open {path}.",
            "What is in {path}?",
            "Show me the file {path}.",
            "Print {path}.",
        ),
        lambda rng: {"text": f"{rng.choice(WORDS)} {rng.choice(WORDS)}"},
        "The file {path} says: {text}.",
    ),
    ToolKind(
        ("get_time", "time_in", "current_time", "clock", "getTime"),
        ("Get the time in a city", "Tells the current time of a place"),
        {"city": CITY},
        (
            "What time is it in {city}?",
            "Tell me the time in {city}.",
            "Time in {city}",
            "How late is it in {city}?",
            "What is the time in {city} now?",
        ),
        lambda rng: {"time": clock_time(rng, False)},
        "It is {time} in {city}.",
    ),
    ToolKind(
        ("find_route", "route", "directions", "navigate", "getRoute"),
        ("Find the way between two places", "Route from one city to another"),
        {
            "start": Parameter(("from", "start", "origin"), "string", city),
            "end": Parameter(("to", "end", "destination", "goal"), "string", city),
        },
        (
            "How do I get from {start} to {end}?",
            "Find a route from {start} to {end}.",
            "Directions from {start} to {end}",
            "Show me the way from {start} to {end}.",
            "I want to go from {start} to {end}.",
        ),
        number_result("km", 5, 3000),
        "From {start} to {end} it is {km} km.",
    ),
    ToolKind(
        ("get_stock", "stock_price", "quote", "share_price"),
        ("Price of a share", "Get a stock quote"),
        {
            "company": Parameter(
                ("symbol", "company", "ticker", "name"),
                "string",
                lambda rng, _: invented(rng).upper() if rng.random() < 0.5 else invented(rng).capitalize(),
            )
        },
        (
            "What is the share price of {company}?",
            "Stock price of {company}",
            "How is the stock of {company}?",
            "Get me a quote for {company}.",
            "What does a share of {company} cost?",
        ),
        number_result("price", 2, 900),
        "A share of {company} costs {price}.",
    ),
    ToolKind(
        ("random_number", "dice", "roll", "pick_number"),
        ("Give a random number up to a maximum", "Roll a die with many sides"),
        {"maximum": Parameter(("max", "maximum", "sides", "limit"), "integer", whole_number(2, 200))},
        (
            "Give me a random number up to {maximum}.",
            "Roll a die with {maximum} sides.",
            "Pick a number up to {maximum}.",
            "Random number, at most {maximum}",
        ),
        number_result("number", 1, 99),
        "The number is {number}.",
    ),
    ToolKind(
        ("get_date", "today", "current_date", "getDate"),
        ("Get the date of today", "Tells which day it is"),
        {},
        (
            "What day is it today?",
            "What is the date?",
            "Which day is today?",
            "Tell me the date.",
            "What is the date of today?",
        ),
        lambda rng: {"date": f"{rng.choice(DAYS)}, {rng.randint(1, 28)} {rng.choice(MONTHS)}"},
        "Today is {date}.",
    ),
    ToolKind(
        ("set_heating", "heating", "set_temperature", "setHeat"),
        ("Set the temperature of a room", "Heats a room to some degrees"),
        {
            "room": Parameter(
                ("room", "place", "where"),
                "string",
                lambda rng, _: rng.choice(["kitchen", "bedroom", "bathroom", "hall", "office", "garage", "cellar"]),
            ),
            "degrees": Parameter(("degrees", "temperature", "value"), "number", whole_number(12, 30)),
        },
        (
            "Heat the {room} to {degrees} degrees.",
            "Set the {room} to {degrees} degrees.",
            "Make the {room} {degrees} degrees warm.",
            "I want {degrees} degrees in the {room}.",
            "Put the {room} at {degrees} degrees.",
        ),
        plain_ok,
        "The {room} is set to {degrees} degrees.",
    ),
]
