"""Kinds of tools for training alone whose wishes have other shapes: a need and what follows from it, a number before
its unit, a day to reserve for, a bare subject. None of them is asked for in the evaluation."""

from __future__ import annotations

from tool_kind import CITY, DAY, PERSON, TIME, ToolKind, number_result, one_of, some_text
from tool_parts import ANIMAL, COLOUR, COUNT, COUNTRY, FOOD, LANGUAGE, OBJECT, ROOM, TEXT, WORD, integer, kind, options
from tool_parts import text as words
from words import FIELDS, FOODS, NATURE, THINGS, invented

TRIP_KINDS: list[ToolKind] = [
    kind(
        "book_train train reserve_seat train_ticket",
        "Book a train to a city on a day | Reserves a seat in a train",
        {"city": CITY, "day": DAY},
        "Book a train to {city} on {day}. | Reserve a seat to {city} for {day}. | "
        "I go to {city} by train on {day}. | Get me a train ticket to {city} for {day}. | "
        "A train to {city} for {day}, please. | On {day}, train to {city} | For {day}, reserve a train to {city}. | "
        "I want to take the train to {city} on {day}.",
        "Your seat to {city} on {day} is booked.",
    ),
    kind(
        "book_ferry ferry reserve_ship ferry_ticket",
        "Book a ferry to a place | Reserves a place on a ship",
        {"place": CITY, "day": DAY},
        "Book a ferry to {place} on {day}. | Reserve the ferry to {place} for {day}. | "
        "We take the ship to {place} on {day}. | Arrange a ferry to {place} for {day}. | "
        "I need to get to {place} by sea on {day}. | {place} by ferry, {day}",
        "Your ferry to {place} on {day} is booked.",
    ),
    kind(
        "order_taxi taxi book_cab cab",
        "Order a taxi to a place at a time | Calls a cab",
        {"place": CITY, "time": TIME},
        "Order a taxi to {place} for {time}. | Reserve a cab to {place} at {time}. | "
        "A taxi to {place} at {time}, please. | I must be driven to {place} at {time}. | "
        "Arrange a cab for {time} to {place}. | Set up a taxi to {place}, {time}.",
        "A taxi to {place} comes at {time}.",
    ),
    kind(
        "plan_trip trip book_tour tour",
        "Plan a trip of some days | Book a tour of a city",
        {"city": CITY, "days": integer("days length count duration", 2, 30)},
        "Plan a {days} day trip to {city}. | I want a {days} day tour of {city}. | "
        "A {days} day trip to {city}, please. | We need {days} days in {city}. Plan the trip. | "
        "Arrange a {days} day visit to {city}. | {days} days {city}",
        "Your trip of {days} days to {city} is planned.",
    ),
    kind(
        "rent_flat flat apartment lease",
        "Rent a flat for some months | Finds an apartment",
        {"city": CITY, "months": integer("months length count", 1, 36)},
        "I need a {months} month lease in {city}. | Rent a flat in {city} for {months} months. | "
        "Find me a {months} month flat in {city}. | We want to live in {city} for {months} months. Get a flat.",
        "You have a flat in {city} for {months} months.",
    ),
    kind(
        "write_report report make_report",
        "Write a report on a topic | Make a report of some pages",
        {"topic": words("topic subject about title", some_text), "pages": integer("pages length count", 1, 50)},
        "I need a {pages} page report on {topic}. | Write {pages} pages about {topic}. | "
        "A {pages} page report on {topic} | Make me a {pages} page paper about {topic}. | "
        "My boss wants {pages} pages on {topic}. Write them.",
    ),
    kind(
        "record_video video make_film film",
        "Record a video of some minutes | Makes a film",
        {"title": words("title name subject", some_text), "minutes": integer("minutes length mins", 1, 90)},
        "Make a {minutes} minute video of {title}. | I want a {minutes} minute film about {title}. | "
        "Record {title} for {minutes} minutes. | Shoot a film of {minutes} minutes called {title}.",
    ),
    kind(
        "book_lesson lesson course teach",
        "Book a lesson in a language | Arranges a course",
        {"language": LANGUAGE, "minutes": integer("minutes length duration", 10, 90)},
        "I want a {minutes} minute lesson in {language}. | Book {minutes} minutes of {language}. | "
        "Arrange a {minutes} minute {language} lesson. | Teach me {language} for {minutes} minutes. | "
        "My {language} is poor. I need a lesson of {minutes} minutes.",
    ),
    kind(
        "water_plant water irrigate",
        "Water a plant with some litres | Gives water to a plant",
        {"plant": words("plant flower crop", one_of(NATURE + FOODS)), "litres": integer("litres amount water", 1, 20)},
        "Water the {plant} with {litres} litres. | The {plant} is dry. It gets {litres} litres. | "
        "The {plant} looks thirsty. Give it {litres} litres. | {litres} litres for the {plant}, please. | "
        "My {plant} needs water. Pour {litres} litres on it. | Since the {plant} is so dry, pour it {litres} litres.",
    ),
    kind(
        "wash_animal wash groom clean_pet",
        "Wash an animal with something | Grooms a pet",
        {"animal": ANIMAL, "with": words("with soap tool item", one_of(THINGS))},
        "Wash the {animal} with the {with}. | The {animal} is dirty. Wash it with a {with}. | "
        "The {animal} rolled in the mud. Take the {with} and clean it. | Clean the {animal}, use {with}. | "
        "My {animal} is a mess. Groom it with {with}. | Use the {with} on the {animal}.",
    ),
    kind(
        "train_animal train_pet teach_trick trick",
        "Teach an animal a trick | Trains a pet",
        {"animal": ANIMAL, "trick": words("trick skill word", some_text)},
        "Teach the {animal} {trick}. | The {animal} is bored. Teach it {trick}. | "
        "Show the {animal} the trick {trick}. | My {animal} is clever. It should learn {trick}. | "
        "The {animal} can do nothing yet. Train it: {trick}",
    ),
    kind(
        "serve_guest serve give_drink offer",
        "Serve a guest something | Brings a dish to a person",
        {"guest": PERSON, "dish": FOOD},
        "Serve {guest} some {dish}. | {guest} is thirsty. Bring {dish}. | {guest} is here. Offer {guest} {dish}. | "
        "Bring {dish} to {guest}. | {guest} has waited long. Serve the {dish}. | {dish} for {guest}, please. | "
        "Our guest {guest} has nothing to eat. Get {dish}.",
        "{guest} has {dish} now.",
    ),
    kind(
        "warm_up heat_dish heat warm",
        "Warm a dish for some minutes | Heats food",
        {"dish": FOOD, "minutes": integer("minutes mins duration", 1, 60)},
        "Warm the {dish} for {minutes} minutes. | The {dish} is cold. Heat it for {minutes} minutes. | "
        "The {dish} is frozen. It needs {minutes} minutes of heat. | "
        "I like my {dish} hot. Give it {minutes} minutes. | Give the {dish} {minutes} minutes in the oven.",
    ),
    kind(
        "repair_item repair fix mend",
        "Repair a thing with a part | Mends things",
        {"item": OBJECT, "part": words("part spare piece using", one_of(THINGS))},
        "Repair the {item} with a {part}. | The {item} is broken. Put a new {part} in it. | "
        "The {item} is old. Give it a {part}. | My {item} makes a noise. Mend it with the {part}. | "
        "Fix the {item}, take a {part} for it. | A {part} is what the broken {item} needs.",
    ),
    kind(
        "comfort cheer_up cheer",
        "Comfort a person with something | Cheers a person up",
        {"person": PERSON, "with": words("with gift thing", one_of(THINGS + FOODS))},
        "Comfort {person} with a {with}. | {person} is sad. Send a {with}. | "
        "{person} feels lonely. Bring a {with}. | Cheer {person} up with {with}. | "
        "{person} had a bad day. A {with} might help. | {person} lost the game. Give {with}.",
    ),
    kind(
        "write_log log add_log log_line",
        "Write a line into the log | Logs a text",
        {"text": TEXT},
        "Log: {text} | Write {text} into the log. | Into the log: {text} | Log the line {text}. | "
        "For the log: {text} | The log should say {text}.",
        "It stands in the log.",
    ),
    kind(
        "add_comment comment remark",
        "Add a comment | Writes a remark",
        {"text": words("text comment remark body", some_text)},
        "Comment: {text} | Add the comment {text}. | My comment is: {text} | Say as a comment: {text} | "
        "Remark: {text} | Leave a remark: {text}",
        "Your comment is added.",
    ),
    kind(
        "get_currency currency money_of",
        "Get the currency of a country | Which money a country has",
        {"country": COUNTRY},
        "Currency of {country} | What is the currency of {country}? | With what do they pay in {country}? | "
        "Which money has {country}? | How do people pay in {country}?",
        "They pay with {currency} in {country}.",
        lambda rng: {"currency": invented(rng)},
    ),
    kind(
        "count_cities cities number_of_cities",
        "How many cities a country has | Get the number of cities",
        {"country": COUNTRY},
        "How many cities are there in {country}? | Cities of {country} | Number of cities in {country} | "
        "What is the number of cities in {country}? | Has {country} many cities?",
        "{country} has {cities} cities.",
        number_result("cities", 3, 900),
    ),
    kind(
        "country_age founded age_of",
        "Since when a country exists | Get the year when a country was founded",
        {"country": COUNTRY},
        "How old is {country}? | Since when is there {country}? | Age of {country} | When was {country} founded? | "
        "Founding year of {country}",
        "{country} exists since {year}.",
        number_result("year", 800, 1990),
    ),
    kind(
        "lay_tiles tiles order_tiles",
        "Lay tiles of a colour | Orders tiles",
        {"colour": COLOUR, "tiles": integer("tiles count pieces", 2, 99)},
        "Lay {tiles} {colour} tiles. | I need {tiles} {colour} tiles. | Please lay {tiles} tiles in {colour}. | "
        "We want {tiles} tiles, all of them {colour}. | {colour} tiles, {tiles} of them",
    ),
    kind(
        "knit_socks knit socks",
        "Knit socks in a colour | Makes socks",
        {"socks": integer("socks count pairs", 1, 20), "colour": COLOUR},
        "Knit {socks} {colour} socks. | I would like {socks} {colour} socks. | {socks} socks in {colour}, please. | "
        "My feet are cold. Knit me {socks} {colour} socks. | Make {socks} socks and make them {colour}.",
    ),
    kind(
        "plant_trees plant trees",
        "Plant trees of a kind | Sets trees",
        {"fruit": words("kind fruit species", one_of(FOODS)), "trees": COUNT},
        "Plant {trees} {fruit} trees. | I want to have {trees} {fruit} trees. | "
        "The field is empty. Plant {trees} {fruit} trees. | Set {trees} trees, {fruit} ones. | "
        "There should be {trees} {fruit} trees here.",
    ),
    kind(
        "get_humidity humidity air",
        "Get how humid the air of a city is | Humidity of the air",
        {"city": CITY},
        "How humid is it in {city}? | Humidity in {city} | How damp is the air of {city} at present? | "
        "What is the humidity of {city}?",
        "The air in {city} has {humidity} percent.",
        number_result("humidity", 10, 100),
    ),
    kind(
        "snow_depth snow get_snow",
        "How deep the snow is in a place | Get the snow of a city",
        {"place": CITY},
        "How deep is the snow in {place}? | Snow in {place} | Is there snow in {place} at present? | "
        "How much snow has {place} got?",
        "There are {snow} cm of snow in {place}.",
        number_result("snow", 0, 300),
    ),
    kind(
        "rhyme rhymes find_rhyme",
        "Find a word that rhymes | Words of the same sound",
        {"word": WORD},
        "What rhymes with {word}? | A rhyme for {word} | Give me a rhyme for {word}. | {word} rhymes with what?",
        "{rhyme} rhymes with {word}.",
        lambda rng: {"rhyme": invented(rng)},
    ),
    kind(
        "set_oven oven bake",
        "Set the oven to some degrees for some minutes | Bakes something",
        {"degrees": integer("degrees heat temperature", 50, 250), "minutes": integer("minutes mins duration", 1, 90)},
        "Set the oven to {degrees} degrees for {minutes} minutes. | "
        "Bake for {minutes} minutes at {degrees} degrees. | "
        "The oven should have {degrees} degrees for {minutes} minutes. | "
        "{minutes} minutes at {degrees} degrees, please.",
    ),
    kind(
        "fan set_fan switch_fan",
        "Switch a fan on or off | Controls the fan of a room",
        {"room": ROOM, "state": options("state power", "on off")},
        "Turn the {room} fan {state}. | The air in the {room} is bad. Turn the fan {state}. | {room} fan {state} | "
        "I want the fan in the {room} to be {state}. | Fan {state} in the {room}, please.",
    ),
    kind(
        "tip add_tip tip_bill",
        "Work out a tip | Adds some percent to a bill",
        {"amount": integer("amount bill sum", 5, 400), "percent": integer("percent rate tip", 1, 30)},
        "What is a tip of {percent} percent on {amount}? | Add {percent} percent to {amount}. | "
        "The bill is {amount}. Give {percent} percent. | The meal was {amount} and I tip {percent} percent.",
        "The tip is {tip}.",
        number_result("tip", 1, 99),
    ),
    kind(
        "find_course course study",
        "Find a course in a field in a city | Where to study something",
        {"field": words("field subject topic", one_of(FIELDS)), "city": CITY},
        "Find a {field} course in {city}. | Where can I study {field} in {city}? | "
        "I want to learn {field} in {city}. | {city} has {field} courses. Find one. | "
        "A course in {field}, and it must be in {city}.",
    ),
    kind(
        "trains_between timetable departures",
        "When trains go from one city to another | Get departures",
        {"start": words("from start origin", CITY.value), "end": words("to end destination", CITY.value)},
        "When do trains go from {start} to {end}? | I must travel from {start} to {end} by rail. When? | "
        "Trains {start} to {end} | From {start} to {end}, when is there a train? | Departures to {end} from {start}",
        "The next train to {end} goes at {hour} o'clock.",
        number_result("hour", 1, 23),
    ),
]
