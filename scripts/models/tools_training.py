"""More kinds of tools for training alone: none of them is asked for in the evaluation."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tool_kind import CITY, DAY, MESSAGE, PERSON, TIME, TOPIC, Parameter, ToolKind, Value
from tool_kind import email_address, number_result, one_of, plain_ok, some_text, whole_number
from words import ANIMALS, COLOURS, COUNTRIES, FIELDS, FOODS, LANGUAGES, MONTHS, THINGS, WORDS, invented, pick

ROOMS = ["kitchen", "bedroom", "bathroom", "hall", "office", "garage", "cellar", "garden"]


def _code(rng: Random, _: bool) -> str:
    return f"{invented(rng)[:3].upper()}{rng.choice(['', '-'])}{rng.randint(10, 9999)}"


def _path(rng: Random, _: bool) -> str:
    return f"{invented(rng)}{rng.choice(['', '/' + invented(rng)])}.{rng.choice(['txt', 'md', 'json', 'csv', 'pdf'])}"


def _address(rng: Random, _: bool) -> str:
    return f"https://{invented(rng)}.{rng.choice(['com', 'org', 'net', 'io'])}/{invented(rng)}"


def _string(names: str, value: Callable[[Random, bool], Value]) -> Parameter:
    return Parameter(tuple(names.split()), "string", value)


def _integer(names: str, low: int, high: int) -> Parameter:
    return Parameter(tuple(names.split()), "integer", whole_number(low, high))


def _options(names: str, values: str) -> Parameter:
    options = tuple(values.split())
    return Parameter(tuple(names.split()), options, lambda rng, _: rng.choice(options))


def _kind(
    names: str,
    descriptions: str,
    parameters: dict[str, Parameter],
    asks: str,
    answer: str = "Done.",
    result: Callable[[Random], dict[str, Any]] = plain_ok,
) -> ToolKind:
    parted = tuple(ask.strip() for ask in asks.split("|"))
    return ToolKind(tuple(names.split()), tuple(descriptions.split(" | ")), parameters, parted, result, answer, True)


COLOUR = _string("colour color shade tint", one_of(COLOURS))
ANIMAL = _string("animal species creature beast", one_of(ANIMALS))
FOOD = _string("food dish ingredient meal", one_of(FOODS))
COUNTRY = _string("country state land nation", one_of(COUNTRIES))
OBJECT = _string("item thing object name", one_of(THINGS))
ROOM = _string("room where place", lambda rng, _: rng.choice(ROOMS))
LANGUAGE = _string("language lang to", one_of(LANGUAGES))
WORD = _string("word term text", one_of(WORDS))
PATH = _string("path file filename target", _path)
TEXT = _string("text content body message", some_text)
COUNT = _integer("count number n amount quantity", 1, 60)

TRAINING_KINDS: list[ToolKind] = [
    _kind(
        "book_table reserve_table table",
        "Book a table in a restaurant | Reserves a table",
        {"place": _string("restaurant place name", some_text), "people": _integer("people guests seats", 2, 12)},
        "Book a table for {people} at {place}. | Reserve a table at {place} for {people} people. | "
        "I want to eat at {place} with {people} people. | A table for {people} in the restaurant {place}, please. | "
        "We are {people} and want a table at {place}.",
        "Your table for {people} at {place} is booked.",
    ),
    _kind(
        "book_hotel hotel find_hotel",
        "Book a hotel in a city | Finds a room for some nights",
        {"city": CITY, "nights": _integer("nights days length", 1, 21)},
        "Book a hotel in {city} for {nights} nights. | I need a room in {city} for {nights} nights. | "
        "Find me a hotel in {city}, {nights} nights. | We stay {nights} nights in {city}. Book a hotel. | "
        "{nights} nights in {city}, please.",
        "I booked {nights} nights in {city}.",
    ),
    _kind(
        "rent_car car_rental hire_car",
        "Rent a car in a city on a day | Hires a car",
        {"city": CITY, "day": DAY},
        "Rent a car in {city} on {day}. | I need a car in {city} on {day}. | On {day} I want to hire a car in {city}. | "
        "Get me a car for {day} in {city}. | Hire a car in {city} for {day}.",
        "A car waits for you in {city} on {day}.",
    ),
    _kind(
        "add_todo todo new_task",
        "Add something to the to-do list | Puts a task on the list",
        {"task": _string("task item text title", some_text)},
        "Put {task} on my to-do list. | To do: {task} | Add the task {task}. | I must not forget {task}. | "
        "New task: {task} | My list needs {task}.",
        "{task} is on your list.",
    ),
    _kind(
        "define dictionary define_word meaning",
        "Look a word up in a dictionary | Tells what a word means",
        {"word": WORD},
        "What does {word} mean? | Define {word}. | Look up the word {word}. | What is the meaning of {word}? | "
        "Explain the word {word}. | I do not know the word {word}.",
        "{word} means {meaning}.",
        lambda rng: {"meaning": f"{rng.choice(WORDS)} {rng.choice(WORDS)}"},
    ),
    _kind(
        "get_capital capital capital_of",
        "Get the capital of a country | Name a country's capital",
        {"country": COUNTRY},
        "What is the capital of {country}? | Capital of {country} | Which city is the capital of {country}? | "
        "Tell me the capital of {country}. | Name the capital of {country}. | {country}: which capital?",
        "The capital of {country} is {capital}.",
        lambda rng: {"capital": invented(rng).capitalize()},
    ),
    _kind(
        "country_area area get_area",
        "Get the area of a country | How large a country is",
        {"country": COUNTRY},
        "How large is {country}? | What is the area of {country}? | Area of {country} | How big is {country}? | "
        "Tell me the size of {country}. | Is {country} a large country?",
        "{country} has {area} square km.",
        number_result("area", 100, 99999),
    ),
    _kind(
        "dye_shirts dye colour_shirts",
        "Dye shirts in a colour | Gives shirts a colour",
        {"colour": COLOUR, "shirts": _integer("shirts count pieces", 1, 30)},
        "Dye {shirts} shirts {colour}. | I want {shirts} shirts in {colour}. | Make {shirts} shirts {colour}. | "
        "Please dye {shirts} shirts in {colour}. | {shirts} {colour} shirts, please.",
        "I dyed {shirts} shirts {colour}.",
    ),
    _kind(
        "order_balloons balloons get_balloons",
        "Order balloons | Gets balloons of a colour",
        {"count": COUNT, "colour": COLOUR},
        "Order {count} {colour} balloons. | I need {count} balloons in {colour}. | Get {count} {colour} balloons. | "
        "We want {count} {colour} balloons. | Balloons: {count}, {colour} | {count} balloons, all {colour}.",
        "{count} {colour} balloons are on the way.",
    ),
    _kind(
        "adopt adopt_animal new_pet",
        "Adopt an animal and name it | Takes an animal home",
        {"animal": ANIMAL, "name": PERSON},
        "Adopt a {animal} named {name}. | I want a {animal} called {name}. | Get me a {animal} and call it {name}. | "
        "My new {animal} is called {name}. | Adopt {name}, the {animal}.",
        "You now have a {animal} called {name}.",
    ),
    _kind(
        "animal_facts about_animal zoo_info",
        "Facts about an animal | Tells something about an animal",
        {"animal": ANIMAL},
        "Tell me about the {animal}. | What do you know about the {animal}? | Facts about the {animal} | "
        "How does the {animal} live? | I want to learn about the {animal}. | What is special about the {animal}?",
        "The {animal} weighs {weight} kg.",
        number_result("weight", 1, 900),
    ),
    _kind(
        "find_recipe recipe cook_with",
        "Find a recipe | Searches recipes with some food",
        {"food": FOOD},
        "Find a recipe with {food}. | How do I cook {food}? | I have {food}. What can I cook? | Recipe for {food} | "
        "Give me a recipe with {food}. | What can I make of {food}?",
        "Try this: {recipe}.",
        lambda rng: {"recipe": f"{invented(rng)} {rng.choice(FOODS)}"},
    ),
    _kind(
        "calories count_calories energy",
        "Calories of some food | Energy of a weight of food",
        {"food": FOOD, "grams": _integer("grams weight amount", 10, 900)},
        "How many calories have {grams} grams of {food}? | Calories of {grams} g {food} | I ate {grams} grams of {food}. | "
        "{grams} grams of {food}: how many calories? | Count the calories of {food}, {grams} grams.",
        "{grams} grams of {food} have {kcal} calories.",
        number_result("kcal", 10, 3000),
    ),
    _kind(
        "add_to_list shopping add_shopping",
        "Put food on the shopping list | Adds to the shopping list",
        {"food": FOOD, "count": COUNT},
        "Put {count} {food} on the shopping list. | We need {count} x {food}. | Shopping: {count} {food} | "
        "Add {food} to my shopping list, {count} of it. | I am out of {food}. Write down {count}.",
        "{count} x {food} is on the list.",
    ),
    _kind(
        "post publish write_post",
        "Post a text for all to read | Publishes a text",
        {"text": TEXT},
        "Post this: {text} | Publish {text}. | Post the text {text}. | Tell the world: {text} | Share this: {text} | "
        "Make a post with {text}.",
        "Your text is posted.",
    ),
    _kind(
        "speak say_aloud read_aloud",
        "Say a text aloud | Speaks a text",
        {"text": TEXT},
        "Say aloud: {text} | Speak this text: {text} | Read aloud {text}. | Let me hear {text}. | "
        "I want to hear the words {text}.",
        "I said it.",
    ),
    _kind(
        "set_volume volume loudness",
        "Set the volume | Makes it louder or quieter",
        {"level": _integer("level volume percent", 0, 100)},
        "Set the volume to {level}. | Volume {level} | Make the volume {level} percent. | Turn the sound to {level}. | "
        "I want volume {level}.",
        "The volume is {level}.",
    ),
    _kind(
        "blinds set_blinds shutter",
        "Open or close the blinds of a room | Moves the blinds",
        {"room": ROOM, "position": _options("position state to", "open closed half")},
        "Set the blinds in the {room} to {position}. | Blinds {position} in the {room} | "
        "I want the blinds of the {room} {position}. | Make the {room} blinds {position}.",
        "The blinds in the {room} are {position}.",
    ),
    _kind(
        "vacuum clean_room start_robot",
        "Clean a room | Sends the robot to a room",
        {"room": ROOM},
        "Clean the {room}. | The {room} is dirty. | Vacuum the {room}, please. | Send the robot into the {room}. | "
        "Please make the {room} clean. | It is dusty in the {room}.",
        "The {room} is clean.",
    ),
    _kind(
        "create_user add_user new_user signup",
        "Create a user | Adds a user with an address",
        {"name": PERSON, "email": _string("email mail address", email_address)},
        "Create a user {name} with the email {email}. | New user: {name}, {email} | Add {name} ({email}). | "
        "Sign up {name} with {email}. | The user {name} has the address {email}. Add them.",
        "The user {name} is created.",
    ),
    _kind(
        "remove_user delete_user drop_user",
        "Delete a user | Removes a user",
        {"name": PERSON},
        "Delete the user {name}. | Remove {name}. | Take {name} off the list of users. | {name} has left us. | "
        "Please delete {name}. | We do not need {name} as a user.",
        "The user {name} is gone.",
    ),
    _kind(
        "track_package package where_is_package",
        "Track a package | Tells where a package is",
        {"code": _string("code number id tracking", _code)},
        "Where is my package {code}? | Track {code}. | Find the package {code}. | Package {code} | "
        "Has {code} arrived? | What happened to my package {code}?",
        "The package {code} is in {place}.",
        lambda rng: {"place": invented(rng).capitalize()},
    ),
    _kind(
        "order_status status_of_order check_order",
        "Status of an order | Looks an order up",
        {"order": _integer("order id number", 100, 9999)},
        "What is the status of order {order}? | Order {order} | Check my order {order}. | Where is order {order}? | "
        "Is order {order} on its way?",
        "The order {order} is {state}.",
        lambda rng: {"state": rng.choice(["paid", "packed", "sent", "lost", "here"])},
    ),
    _kind(
        "delete_file remove_file rm",
        "Delete a file | Removes a file from disk",
        {"path": PATH},
        "Delete the file {path}. | Remove {path}. | I do not need {path} any more. | Get rid of {path}. | "
        "Please delete {path}. | Throw {path} away.",
        "{path} is deleted.",
    ),
    _kind(
        "rename_file move_file mv",
        "Rename a file | Gives a file a new name",
        {"old": _string("old from source", _path), "new": _string("new to target", _path)},
        "Rename {old} to {new}. | Move {old} to {new}. | Call the file {old} {new} instead. | "
        "The file {old} should be called {new}. | Give {old} the name {new}.",
        "{old} is now {new}.",
    ),
    _kind(
        "open_page browse visit open_url",
        "Open a page of the web | Visits an address",
        {"url": _string("url address link page", _address)},
        "Open {url}. | Go to {url}. | Visit the page {url}. | Show me {url}. | What is on {url}? | Browse to {url}.",
        "I opened {url}.",
    ),
    _kind(
        "distance how_far get_distance",
        "Distance between two cities | How far two places are apart",
        {"start": _string("from start a origin", CITY.value), "end": _string("to end b target", CITY.value)},
        "How far is it from {start} to {end}? | Distance from {start} to {end} | How many km from {start} to {end}? | "
        "What is the distance between {start} and {end}? | Is {start} far from {end}?",
        "It is {km} km from {start} to {end}.",
        number_result("km", 3, 9000),
    ),
    _kind(
        "call phone dial call_person",
        "Call a person | Phones somebody",
        {"person": PERSON},
        "Call {person}. | Phone {person}, please. | I want to talk to {person}. | Dial {person}. | "
        "Give {person} a ring. | Get {person} on the phone.",
        "I am calling {person}.",
    ),
    _kind(
        "schedule_meeting meeting meet plan_meeting",
        "Plan a meeting with a person | Schedules a meeting",
        {"person": PERSON, "day": DAY, "time": TIME},
        "Plan a meeting with {person} on {day} at {time}. | Meet {person} on {day} at {time}. | "
        "On {day} at {time} I meet {person}. | Schedule {person} for {day}, {time}. | "
        "I want to see {person} at {time} on {day}.",
        "You meet {person} on {day} at {time}.",
    ),
    _kind(
        "invite invite_person send_invite",
        "Invite a person to something | Sends an invitation",
        {"person": PERSON, "event": _string("event what occasion title", some_text)},
        "Invite {person} to {event}. | Ask {person} to come to {event}. | Send {person} an invitation to {event}. | "
        "I want {person} at {event}. | {person} should come to {event}.",
        "{person} is invited to {event}.",
    ),
    _kind(
        "transfer send_money pay",
        "Send money to a person | Transfers an amount",
        {"amount": _integer("amount sum value", 1, 5000), "person": PERSON},
        "Send {amount} to {person}. | Pay {person} {amount}. | Transfer {amount} to {person}. | "
        "I owe {person} {amount}. | Give {person} {amount} from my account.",
        "{person} got {amount}.",
    ),
    _kind(
        "get_news news headlines",
        "Get news about a topic | The latest headlines",
        {"topic": TOPIC},
        "News about {topic} | What is new about {topic}? | Give me the news on {topic}. | "
        "Any headlines about {topic}? | What do the papers say about {topic}?",
        "The news: {headline}.",
        lambda rng: {"headline": f"{rng.choice(WORDS)} {invented(rng)}"},
    ),
    _kind(
        "workout start_workout train exercise",
        "Start a workout | Begins an exercise for some minutes",
        {
            "sport": _options("sport kind type", "run swim yoga row"),
            "minutes": _integer("minutes duration time", 5, 90),
        },
        "Start a {sport} workout of {minutes} minutes. | I want to {sport} for {minutes} minutes. | "
        "{minutes} minutes of {sport} | Let me do {sport} for {minutes} minutes. | Workout: {sport}, {minutes} minutes",
        "Your {minutes} minutes of {sport} begin.",
    ),
    _kind(
        "chart draw_chart plot make_chart",
        "Draw a chart | Makes a chart of a kind with a title",
        {"kind": _options("kind type style", "bar line pie"), "title": _string("title name heading", some_text)},
        "Draw a {kind} chart of {title}. | Make a {kind} chart called {title}. | Plot {title} as a {kind} chart. | "
        "I need a {kind} chart with the title {title}. | Chart: {kind}, {title}",
        "The {kind} chart {title} is drawn.",
    ),
    _kind(
        "draw draw_picture make_image",
        "Draw a picture of a thing in a colour | Makes an image",
        {"object": OBJECT, "colour": COLOUR},
        "Draw a {colour} {object}. | Make a picture of a {object} in {colour}. | I want to see a {colour} {object}. | "
        "A picture of a {colour} {object}, please. | Show me a {object}. It should be {colour}.",
        "Here is a {colour} {object}.",
    ),
    _kind(
        "deploy release ship_service",
        "Deploy a service | Brings a service to an environment",
        {
            "service": _string("service app name", lambda rng, _: invented(rng)),
            "stage": _options("stage env environment", "test staging production"),
        },
        "Deploy {service} to {stage}. | Release {service} on {stage}. | Bring {service} to {stage}. | "
        "Put {service} into {stage}. | {stage} needs the new {service}.",
        "{service} runs in {stage}.",
    ),
    _kind(
        "restart restart_service reboot",
        "Restart a service | Stops and starts a service",
        {"service": _string("service name unit process", lambda rng, _: invented(rng))},
        "Restart {service}. | The service {service} hangs. | Please restart the service {service}. | Reboot {service}. | "
        "{service} must be restarted. | Stop {service} and start it again.",
        "{service} was restarted.",
    ),
    _kind(
        "scale set_replicas resize",
        "Set how many copies of a service run | Scales a service",
        {
            "service": _string("service name app", lambda rng, _: invented(rng)),
            "replicas": _integer("replicas copies count n", 1, 40),
        },
        "Scale {service} to {replicas}. | Run {replicas} copies of {service}. | {service} needs {replicas} replicas. | "
        "Set {service} to {replicas} copies. | I want {replicas} of {service}.",
        "{service} has {replicas} copies.",
    ),
    _kind(
        "convert_unit units convert",
        "Convert a measure | Converts from one unit to another",
        {
            "value": _integer("value amount number", 1, 900),
            "source": _options("from source unit", "km m kg g mile foot"),
            "target": _options("to target into", "km m kg g mile foot"),
        },
        "Convert {value} {source} to {target}. | How much is {value} {source} in {target}? | {value} {source} in {target} | "
        "What are {value} {source} in {target}? | Turn {value} {source} into {target}.",
        "{value} {source} are {result} {target}.",
        number_result("result", 1, 9999),
    ),
    _kind(
        "who_is find_person lookup_person",
        "Find a person | Looks up who somebody is",
        {"person": PERSON},
        "Who is {person}? | Find {person}. | Look up {person}. | What do you know about {person}? | "
        "I want to know who {person} is. | Tell me who {person} is.",
        "{person} works as a {job}.",
        lambda rng: {"job": rng.choice(["teacher", "driver", "farmer", "doctor", "painter"])},
    ),
    _kind(
        "explain course lesson teach",
        "Explain a field | Gives a lesson in a field",
        {"field": _string("field subject topic", lambda rng, held: pick(rng, FIELDS, held))},
        "Explain {field} to me. | What is {field}? | I want to learn {field}. | Give me a lesson in {field}. | "
        "Teach me {field}. | A course in {field}, please.",
        "The lesson is {title}.",
        lambda rng: {"title": f"{invented(rng)} {rng.choice(WORDS)}"},
    ),
    _kind(
        "sunrise get_sunrise sun_times",
        "When the sun rises in a city | Sunrise on a day",
        {"city": CITY, "day": DAY},
        "When does the sun rise in {city} on {day}? | Sunrise in {city} on {day} | When is sunrise on {day} in {city}? | "
        "How early is it light in {city} on {day}? | On {day}, when does the sun come up in {city}?",
        "In {city} the sun rises at {time}.",
        lambda rng: {"time": f"{rng.randint(4, 8)}:{rng.randint(10, 59)}"},
    ),
    _kind(
        "holidays get_holidays days_off",
        "Holidays of a country in a month | Lists days off",
        {"country": COUNTRY, "month": _string("month when period", one_of(MONTHS))},
        "Which holidays has {country} in {month}? | Holidays in {country} in {month} | "
        "Is there a holiday in {country} in {month}? | When is a day off in {month} in {country}? | "
        "List the holidays of {country} for {month}.",
        "There are {count} holidays.",
        number_result("count", 0, 5),
    ),
    _kind(
        "set_language language change_language",
        "Set the language of the screen | Changes the language",
        {"language": LANGUAGE},
        "Switch to {language}. | I speak {language}. | Set the language to {language}. | Use {language} from now on. | "
        "Show everything in {language}. | Change the language to {language}.",
        "The language is {language}.",
    ),
    _kind(
        "give_present present send_present",
        "Send a present to a person | Gives a thing to somebody",
        {"object": OBJECT, "person": PERSON},
        "Send {person} a {object}. | Give the {object} to {person}. | {person} wants a {object}. Send it. | "
        "A {object} for {person}, please. | I want to give {person} a {object}.",
        "{person} gets a {object}.",
    ),
    _kind(
        "trade swap exchange_things",
        "Swap one thing for another | Trades things",
        {"mine": _string("give mine offer", one_of(THINGS)), "yours": _string("get yours want", one_of(THINGS))},
        "Swap the {mine} for a {yours}. | Trade my {mine} for a {yours}. | I give a {mine} and want a {yours}. | "
        "I have a {mine} and need a {yours}. | Change the {mine} into a {yours}.",
        "You have a {yours} now.",
    ),
    _kind(
        "send_letter letter write_letter",
        "Send a letter to a person in a city | Writes a letter",
        {"person": PERSON, "city": CITY, "text": MESSAGE},
        "Send a letter to {person} in {city}: {text} | Write to {person} in {city}: {text} | "
        "A letter for {person}, {city}: {text} | Letter to {person} in {city} with the text: {text}",
        "The letter to {person} is on its way.",
    ),
    _kind(
        "ping check_server is_up",
        "Check a server | Tells whether a host answers",
        {"host": _string("host server name address", lambda rng, _: f"{invented(rng)}.{rng.choice(['com', 'org'])}")},
        "Is {host} up? | Ping {host}. | Check {host}. | Does {host} answer? | See whether {host} works. | "
        "I cannot reach {host}. Is it down?",
        "{host} answers in {ms} ms.",
        number_result("ms", 1, 400),
    ),
]
