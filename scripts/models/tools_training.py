"""More kinds of tools for training alone: none of them is asked for in the evaluation."""

from __future__ import annotations

from tool_kind import CITY, DAY, PERSON, ToolKind, email_address, number_result, some_text
from tool_parts import (
    ANIMAL,
    COLOUR,
    COUNT,
    COUNTRY,
    FOOD,
    PATH,
    ROOM,
    TEXT,
    WORD,
    code,
    integer,
    kind,
    options,
    path,
    text,
    web_address,
)
from words import FOODS, WORDS, invented

EVERYDAY_KINDS: list[ToolKind] = [
    kind(
        "book_table reserve_table table",
        "Book a table in a restaurant | Reserves a table",
        {"place": text("restaurant place name", some_text), "people": integer("people guests seats", 2, 12)},
        "Book a table for {people} at {place}. | Reserve a table at {place} for {people} people. | "
        "I want to eat at {place} with {people} people. | A table for {people} in the restaurant {place}, please. | "
        "We are {people} and want a table at {place}.",
        "Your table for {people} at {place} is booked.",
    ),
    kind(
        "book_hotel hotel find_hotel",
        "Book a hotel in a city | Finds a room for some nights",
        {"city": CITY, "nights": integer("nights days length", 1, 21)},
        "Book a hotel in {city} for {nights} nights. | I need a room in {city} for {nights} nights. | "
        "Find me a hotel in {city}, {nights} nights. | We stay {nights} nights in {city}. Book a hotel. | "
        "{nights} nights in {city}, please.",
        "I booked {nights} nights in {city}.",
    ),
    kind(
        "rent_car car_rental hire_car",
        "Rent a car in a city on a day | Hires a car",
        {"city": CITY, "day": DAY},
        "Rent a car in {city} on {day}. | I need a car in {city} on {day}. | On {day} I want to hire a car in {city}. | "
        "Get me a car for {day} in {city}. | Hire a car in {city} for {day}.",
        "A car waits for you in {city} on {day}.",
    ),
    kind(
        "add_todo todo new_task",
        "Add something to the to-do list | Puts a task on the list",
        {"task": text("task item text title", some_text)},
        "Put {task} on my to-do list. | To do: {task} | Add the task {task}. | I must not forget {task}. | "
        "New task: {task} | My list needs {task}.",
        "{task} is on your list.",
    ),
    kind(
        "define dictionary define_word meaning",
        "Look a word up in a dictionary | Tells what a word means",
        {"word": WORD},
        "What does {word} mean? | Define {word}. | Look up the word {word}. | What is the meaning of {word}? | "
        "Explain the word {word}. | I do not know the word {word}.",
        "{word} means {meaning}.",
        lambda rng: {"meaning": f"{rng.choice(WORDS)} {rng.choice(WORDS)}"},
    ),
    kind(
        "get_capital capital capital_of",
        "Get the capital of a country | Name a country's capital",
        {"country": COUNTRY},
        "What is the capital of {country}? | Capital of {country} | Which city is the capital of {country}? | "
        "Tell me the capital of {country}. | Name the capital of {country}. | {country}: which capital?",
        "The capital of {country} is {capital}.",
        lambda rng: {"capital": invented(rng).capitalize()},
    ),
    kind(
        "country_area area get_area",
        "Get the area of a country | How large a country is",
        {"country": COUNTRY},
        "How large is {country}? | What is the area of {country}? | Area of {country} | How big is {country}? | "
        "Tell me the size of {country}. | Is {country} a large country?",
        "{country} has {area} square km.",
        number_result("area", 100, 99999),
    ),
    kind(
        "dye_shirts dye colour_shirts",
        "Dye shirts in a colour | Gives shirts a colour",
        {"colour": COLOUR, "shirts": integer("shirts count pieces", 1, 30)},
        "Dye {shirts} shirts {colour}. | I want {shirts} shirts in {colour}. | Make {shirts} shirts {colour}. | "
        "Please dye {shirts} shirts in {colour}. | {shirts} {colour} shirts, please.",
        "I dyed {shirts} shirts {colour}.",
    ),
    kind(
        "order_balloons balloons get_balloons",
        "Order balloons | Gets balloons of a colour",
        {"count": COUNT, "colour": COLOUR},
        "Order {count} {colour} balloons. | I need {count} balloons in {colour}. | Get {count} {colour} balloons. | "
        "We want {count} {colour} balloons. | Balloons: {count}, {colour} | {count} balloons, all {colour}.",
        "{count} {colour} balloons are on the way.",
    ),
    kind(
        "adopt adopt_animal new_pet",
        "Adopt an animal and name it | Takes an animal home",
        {"animal": ANIMAL, "name": PERSON},
        "Adopt a {animal} named {name}. | I want a {animal} called {name}. | Get me a {animal} and call it {name}. | "
        "My new {animal} is called {name}. | Adopt {name}, the {animal}.",
        "You now have a {animal} called {name}.",
    ),
    kind(
        "animal_facts about_animal zoo_info",
        "Facts about an animal | Tells something about an animal",
        {"animal": ANIMAL},
        "Tell me about the {animal}. | What do you know about the {animal}? | Facts about the {animal} | "
        "How does the {animal} live? | I want to learn about the {animal}. | What is special about the {animal}?",
        "The {animal} weighs {weight} kg.",
        number_result("weight", 1, 900),
    ),
    kind(
        "find_recipe recipe cook_with",
        "Find a recipe | Searches recipes with some food",
        {"food": FOOD},
        "Find a recipe with {food}. | How do I cook {food}? | I have {food}. What can I cook? | Recipe for {food} | "
        "Give me a recipe with {food}. | What can I make of {food}?",
        "Try this: {recipe}.",
        lambda rng: {"recipe": f"{invented(rng)} {rng.choice(FOODS)}"},
    ),
    kind(
        "calories count_calories energy",
        "Calories of some food | Energy of a weight of food",
        {"food": FOOD, "grams": integer("grams weight amount", 10, 900)},
        "How many calories have {grams} grams of {food}? | Calories of {grams} g {food} | I ate {grams} grams of {food}. | "
        "{grams} grams of {food}: how many calories? | Count the calories of {food}, {grams} grams.",
        "{grams} grams of {food} have {kcal} calories.",
        number_result("kcal", 10, 3000),
    ),
    kind(
        "add_to_list shopping add_shopping",
        "Put food on the shopping list | Adds to the shopping list",
        {"food": FOOD, "count": COUNT},
        "Put {count} {food} on the shopping list. | We need {count} x {food}. | Shopping: {count} {food} | "
        "Add {food} to my shopping list, {count} of it. | I am out of {food}. Write down {count}.",
        "{count} x {food} is on the list.",
    ),
    kind(
        "post publish write_post",
        "Post a text for all to read | Publishes a text",
        {"text": TEXT},
        "Post this: {text} | Publish {text}. | Post the text {text}. | Tell the world: {text} | Share this: {text} | "
        "Make a post with {text}.",
        "Your text is posted.",
    ),
    kind(
        "speak say_aloud read_aloud",
        "Say a text aloud | Speaks a text",
        {"text": TEXT},
        "Say aloud: {text} | Speak this text: {text} | Read aloud {text}. | Let me hear {text}. | "
        "I want to hear the words {text}.",
        "I said it.",
    ),
    kind(
        "set_volume volume loudness",
        "Set the volume | Makes it louder or quieter",
        {"level": integer("level volume percent", 0, 100)},
        "Set the volume to {level}. | Volume {level} | Make the volume {level} percent. | Turn the sound to {level}. | "
        "I want volume {level}.",
        "The volume is {level}.",
    ),
    kind(
        "blinds set_blinds shutter",
        "Open or close the blinds of a room | Moves the blinds",
        {"room": ROOM, "position": options("position state to", "open closed half")},
        "Set the blinds in the {room} to {position}. | Blinds {position} in the {room} | "
        "I want the blinds of the {room} {position}. | Make the {room} blinds {position}.",
        "The blinds in the {room} are {position}.",
    ),
    kind(
        "vacuum clean_room start_robot",
        "Clean a room | Sends the robot to a room",
        {"room": ROOM},
        "Clean the {room}. | The {room} is dirty. | Vacuum the {room}, please. | Send the robot into the {room}. | "
        "Please make the {room} clean. | It is dusty in the {room}.",
        "The {room} is clean.",
    ),
    kind(
        "create_user add_user new_user signup",
        "Create a user | Adds a user with an address",
        {"name": PERSON, "email": text("email mail address", email_address)},
        "Create a user {name} with the email {email}. | New user: {name}, {email} | Add {name} ({email}). | "
        "Sign up {name} with {email}. | The user {name} has the address {email}. Add them.",
        "The user {name} is created.",
    ),
    kind(
        "remove_user delete_user drop_user",
        "Delete a user | Removes a user",
        {"name": PERSON},
        "Delete the user {name}. | Remove {name}. | Take {name} off the list of users. | {name} has left us. | "
        "Please delete {name}. | We do not need {name} as a user.",
        "The user {name} is gone.",
    ),
    kind(
        "track_package package where_is_package",
        "Track a package | Tells where a package is",
        {"code": text("code number id tracking", code)},
        "Where is my package {code}? | Track {code}. | Find the package {code}. | Package {code} | "
        "Has {code} arrived? | What happened to my package {code}?",
        "The package {code} is in {place}.",
        lambda rng: {"place": invented(rng).capitalize()},
    ),
    kind(
        "order_status status_of_order check_order",
        "Status of an order | Looks an order up",
        {"order": integer("order id number", 100, 9999)},
        "What is the status of order {order}? | Order {order} | Check my order {order}. | Where is order {order}? | "
        "Is order {order} on its way?",
        "The order {order} is {state}.",
        lambda rng: {"state": rng.choice(["paid", "packed", "sent", "lost", "here"])},
    ),
    kind(
        "delete_file remove_file rm",
        "Delete a file | Removes a file from disk",
        {"path": PATH},
        "Delete the file {path}. | Remove {path}. | I do not need {path} any more. | Get rid of {path}. | "
        "Please delete {path}. | Throw {path} away.",
        "{path} is deleted.",
    ),
    kind(
        "rename_file move_file mv",
        "Rename a file | Gives a file a new name",
        {"old": text("old from source", path), "new": text("new to target", path)},
        "Rename {old} to {new}. | Move {old} to {new}. | Call the file {old} {new} instead. | "
        "The file {old} should be called {new}. | Give {old} the name {new}.",
        "{old} is now {new}.",
    ),
    kind(
        "open_page browse visit open_url",
        "Open a page of the web | Visits an address",
        {"url": text("url address link page", web_address)},
        "Open {url}. | Go to {url}. | Visit the page {url}. | Show me {url}. | What is on {url}? | Browse to {url}.",
        "I opened {url}.",
    ),
]
