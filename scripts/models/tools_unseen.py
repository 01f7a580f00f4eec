"""Tools and wishes for the evaluation alone, written by somebody who saw neither the training data nor what failed."""

from __future__ import annotations

from tool_kind import ToolKind, clock_time, email_address, number_result, one_of, some_text
from tool_parts import ROOM, code, integer, kind, options, path, text
from words import DAYS, THINGS, city, name

UNSEEN_KINDS: list[ToolKind] = [
    kind(
        "skip_song nextTrack skip",
        "Skip to the next song | Stop this track and play the following one",
        {},
        "Next song, please. | I don't like this song, play another one. | Can we hear the next track?",
        "Here is the next song.",
    ),
    kind(
        "lock_car lockCar carlock",
        "Lock all doors of the car | Locks the user's vehicle remotely",
        {},
        "Lock the car. | I think I left my car open! | Could you make sure nobody can get into my car?",
        "The car is locked.",
    ),
    kind(
        "take_screenshot captureScreen screenshot",
        "Save a picture of the screen | Capture what the display shows now",
        {},
        "Take a screenshot. | I want to keep a picture of my screen. | Can you capture what my display shows?",
        "I saved a picture of your screen.",
    ),
    kind(
        "ring_phone findMyPhone ring",
        "Make the user's lost phone ring | Find the phone by letting it ring",
        {},
        "Where is my phone? Make it ring. | I can't find my phone anywhere. | Let my phone ring, I lost it at home.",
        "Your phone is ringing.",
    ),
    kind(
        "track_parcel trackShipment track",
        "Tell where a parcel is | Look up the delivery state of a shipment",
        {"parcel": text("tracking_number parcel_id code", code)},
        "Where is my parcel {parcel}? | Has package {parcel} been sent yet?"
        " | I'm still waiting for a delivery. Its number is {parcel}.",
        "Parcel {parcel} will be with you in {days} days.",
        number_result("days", 2, 9),
    ),
    kind(
        "list_appointments getAppointments agenda",
        "List the appointments of a day | Show what the calendar holds for a day",
        {"day": text("day date weekday", lambda rng, _: rng.choice(DAYS))},
        "What do I have to do on {day}? | Show me my calendar for {day}."
        " | I wonder if I am free on {day}. Have a look, please.",
        "You have {appointments} appointments on {day}.",
        number_result("appointments", 2, 8),
    ),
    kind(
        "show_camera openCamera cam",
        "Show the live picture of a home camera | See what is happening in a room",
        {"room": ROOM},
        "Show me the camera in the {room}. | I heard a noise in the {room}. Let me see it."
        " | Is anybody in the {room}? Check the camera.",
        "Here is the camera in the {room}.",
    ),
    kind(
        "mute_chat silenceContact mute",
        "Turn off notifications from one contact | Mute the chat with a person",
        {"person": text("contact person sender", name)},
        "Mute the chat with {person}. | {person} keeps sending me messages, I don't want to hear them."
        " | Can you turn off the notifications from {person}?",
        "You will hear no more messages from {person}.",
    ),
    kind(
        "find_parking searchParking park",
        "Find free parking spaces in a city | Where a driver can park",
        {"place": text("city place near", city)},
        "Where can I park in {place}? | I'm driving to {place} and need a spot for my car."
        " | Find me a parking space in {place}.",
        "There are {spaces} free spaces in {place}.",
        number_result("spaces", 2, 300),
    ),
    kind(
        "get_match_score matchScore score",
        "Get the live score of a team | How many goals a team has",
        {"team": text("team club side", city)},
        "What is the score of {team}? | Look up how many goals {team} has. | I can't watch {team} play. Any goals yet?",
        "{team} has {goals} goals.",
        number_result("goals", 2, 6),
    ),
    kind(
        "count_rows tableSize rows",
        "Count the rows of a database table | Tell how many records a table has",
        {"table": text("table table_name relation", one_of(THINGS))},
        "How many rows are in the table {table}? | Count the records in {table}, please."
        " | I need to know how big the database table {table} is.",
        "The table {table} has {rows} rows.",
        number_result("rows", 2, 90000),
    ),
    kind(
        "block_sender blockEmail block",
        "Block all mail from an address | Stop emails of an unwanted sender",
        {"sender": text("address email sender", email_address)},
        "Block all mail from {sender}, please. | {sender} keeps sending me spam. Can you stop it?"
        " | I never want an email from {sender} again!",
        "Mail from {sender} is blocked now.",
    ),
    kind(
        "log_blood_pressure saveBloodPressure pressure",
        "Write down a blood pressure reading | Store the user's blood pressure",
        {
            "upper": integer("systolic upper high", 96, 180),
            "lower": integer("diastolic lower low", 50, 94),
        },
        "My blood pressure is {upper} over {lower}. | Note my blood pressure: upper value {upper}, lower value {lower}."
        " | The nurse measured {upper} over {lower} this morning. Can you write that down?",
        "I noted {upper} over {lower}.",
    ),
    kind(
        "move_file moveFile mv",
        "Move a file into a folder | Put a file into another directory",
        {
            "file": text("file path source", path),
            "folder": text("folder directory destination", one_of(THINGS)),
        },
        "Move {file} into the folder {folder}. | {file} belongs in the {folder} folder."
        " | Can you put {file} in my {folder} directory?",
        "{file} is now in {folder}.",
    ),
    kind(
        "start_chess_game newChessGame chess",
        "Start a game of chess | Play chess against the user",
        {
            "level": options("level difficulty strength", "easy medium hard"),
            "side": options("side colour pieces", "white black"),
        },
        "I want to play chess as {side}, level {level}. | Start a {level} chess game, I take {side}."
        " | How about some chess? Make it {level} and let me be {side}.",
        "You play {side}. Good luck!",
    ),
    kind(
        "start_oven heatOven oven",
        "Heat the oven for some minutes | Turn on the oven with a timer",
        {
            "degrees": integer("degrees temperature heat", 100, 250),
            "minutes": integer("minutes duration time", 5, 90),
        },
        "Set the oven to {degrees} degrees for {minutes} minutes."
        " | My cake has to bake for {minutes} minutes at {degrees} degrees."
        " | Could you heat the oven for {minutes} minutes? It needs {degrees} degrees.",
        "The oven is on at {degrees} degrees for {minutes} minutes.",
    ),
    kind(
        "run_sprinklers waterLawn sprinkle",
        "Water a part of the garden | Turn on the lawn sprinklers for some minutes",
        {
            "area": options("area zone part", "front back side"),
            "minutes": integer("minutes duration length", 3, 45),
        },
        "Water the {area} lawn for {minutes} minutes."
        " | The grass in the {area} garden is dry, give it {minutes} minutes of water."
        " | Could you run the {area} sprinklers for {minutes} minutes?",
        "The {area} sprinklers run for {minutes} minutes.",
    ),
    kind(
        "restart_service restartService reboot",
        "Restart a service on a system | Stop a service and start it again",
        {
            "service": text("service app program", one_of(THINGS)),
            "system": options("environment system stage", "staging production testing"),
        },
        "Please restart {service} in {system}. | The service {service} hangs on {system}, it needs a restart."
        " | On {system}, can you stop {service} and start it again?",
        "{service} is running again in {system}.",
    ),
    kind(
        "refund_order refundOrder refund",
        "Pay back the price of an order | Give the customer the money back",
        {
            "order": text("order_id order number", code),
            "reason": options("reason why problem", "damaged late incomplete"),
        },
        "Please refund order {order}, it was {reason}. | My order {order} came {reason}. I want my money back!"
        " | Can I get a refund? The delivery was {reason}, the order is {order}.",
        "Order {order} will be paid back.",
    ),
    kind(
        "rate_movie rateFilm rate",
        "Rate a film with stars | Save how much the user liked a movie",
        {
            "film": text("title film movie", some_text),
            "stars": integer("stars rating points", 2, 5),
        },
        'Give the movie "{film}" {stars} stars. | I saw "{film}" last night, it deserves {stars} stars.'
        ' | Can you put down {stars} stars for the movie "{film}"?',
        "You gave {film} {stars} stars.",
    ),
    kind(
        "send_money transferMoney pay",
        "Send money to a person | Pay somebody from the user's account",
        {
            "amount": integer("amount sum value", 2, 900),
            "currency": options("currency unit money", "EUR USD GBP CHF"),
            "person": text("to recipient person", name),
        },
        "Send {amount} {currency} to {person}. | I owe {person} {amount} {currency}, please pay it back."
        " | Can {person} get {amount} {currency} from my account?",
        "I sent {amount} {currency} to {person}.",
    ),
    kind(
        "find_trains searchTrains trains",
        "Find trains between two cities | Search train connections on a day",
        {
            "start": text("from origin start", city),
            "goal": text("to destination goal", city),
            "day": text("day date when", lambda rng, _: rng.choice(DAYS)),
        },
        "Is there a train from {start} to {goal} on {day}? | Show me the trains that leave {start} on {day} for {goal}."
        " | I have to be in {goal} on {day} and would take the train from {start}.",
        "There are {trains} trains from {start} to {goal} on {day}.",
        number_result("trains", 2, 20),
    ),
    kind(
        "book_table reserveTable dinner",
        "Book a table at the restaurant | Reserve seats for a meal",
        {
            "guests": integer("guests people persons", 2, 12),
            "day": text("day date weekday", lambda rng, _: rng.choice(DAYS)),
            "hour": text("time at hour", clock_time),
        },
        "A table for {guests} on {day} at {hour}, please."
        " | We are {guests} people and want to eat at the restaurant on {day} at {hour}."
        " | Can you reserve a table at {hour} on {day} for {guests} guests?",
        "Your table for {guests} is booked on {day} at {hour}.",
    ),
    kind(
        "assign_task assignTask delegate",
        "Give a task to a colleague | Assign work with a due day",
        {
            "task": text("task title work", some_text),
            "person": text("assignee person colleague", name),
            "day": text("due deadline due_day", lambda rng, _: rng.choice(DAYS)),
        },
        'Give the task "{task}" to {person}, due {day}. | New task for {person}, due on {day}: {task}'
        ' | {person} has time for "{task}". Can you assign it, with {day} as the deadline?',
        "{person} has the task now, due {day}.",
    ),
]
