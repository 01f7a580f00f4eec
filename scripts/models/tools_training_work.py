"""More kinds of tools for training alone, second part: files, services, people, places."""

from __future__ import annotations

from tool_kind import CITY, DAY, MESSAGE, PERSON, TIME, TOPIC, ToolKind, number_result, one_of, some_text
from tool_parts import COLOUR, COUNTRY, LANGUAGE, OBJECT, integer, kind, options, text
from words import FIELDS, MONTHS, THINGS, WORDS, invented, pick

WORK_KINDS: list[ToolKind] = [
    kind(
        "distance how_far get_distance",
        "Distance between two cities | How far two places are apart",
        {"start": text("from start a origin", CITY.value), "end": text("to end b target", CITY.value)},
        "How far is it from {start} to {end}? | Distance from {start} to {end} | How many km from {start} to {end}? | "
        "What is the distance between {start} and {end}? | Is {start} far from {end}?",
        "It is {km} km from {start} to {end}.",
        number_result("km", 3, 9000),
    ),
    kind(
        "call phone dial call_person",
        "Call a person | Phones somebody",
        {"person": PERSON},
        "Call {person}. | Phone {person}, please. | I want to talk to {person}. | Dial {person}. | "
        "Give {person} a ring. | Get {person} on the phone.",
        "I am calling {person}.",
    ),
    kind(
        "schedule_meeting meeting meet plan_meeting",
        "Plan a meeting with a person | Schedules a meeting",
        {"person": PERSON, "day": DAY, "time": TIME},
        "Plan a meeting with {person} on {day} at {time}. | Meet {person} on {day} at {time}. | "
        "On {day} at {time} I meet {person}. | Schedule {person} for {day}, {time}. | "
        "I want to see {person} at {time} on {day}.",
        "You meet {person} on {day} at {time}.",
    ),
    kind(
        "invite invite_person send_invite",
        "Invite a person to something | Sends an invitation",
        {"person": PERSON, "event": text("event what occasion title", some_text)},
        "Invite {person} to {event}. | Ask {person} to come to {event}. | Send {person} an invitation to {event}. | "
        "I want {person} at {event}. | {person} should come to {event}.",
        "{person} is invited to {event}.",
    ),
    kind(
        "transfer send_money pay",
        "Send money to a person | Transfers an amount",
        {"amount": integer("amount sum value", 1, 5000), "person": PERSON},
        "Send {amount} to {person}. | Pay {person} {amount}. | Transfer {amount} to {person}. | "
        "I owe {person} {amount}. | Give {person} {amount} from my account.",
        "{person} got {amount}.",
    ),
    kind(
        "get_news news headlines",
        "Get news about a topic | The latest headlines",
        {"topic": TOPIC},
        "News about {topic} | What is new about {topic}? | Give me the news on {topic}. | "
        "Any headlines about {topic}? | What do the papers say about {topic}?",
        "The news: {headline}.",
        lambda rng: {"headline": f"{rng.choice(WORDS)} {invented(rng)}"},
    ),
    kind(
        "workout start_workout train exercise",
        "Start a workout | Begins an exercise for some minutes",
        {
            "sport": options("sport kind type", "run swim yoga row"),
            "minutes": integer("minutes duration time", 5, 90),
        },
        "Start a {sport} workout of {minutes} minutes. | I want to {sport} for {minutes} minutes. | "
        "{minutes} minutes of {sport} | Let me do {sport} for {minutes} minutes. | Workout: {sport}, {minutes} minutes",
        "Your {minutes} minutes of {sport} begin.",
    ),
    kind(
        "chart draw_chart plot make_chart",
        "Draw a chart | Makes a chart of a kind with a title",
        {"kind": options("kind type style", "bar line pie"), "title": text("title name heading", some_text)},
        "Draw a {kind} chart of {title}. | Make a {kind} chart called {title}. | Plot {title} as a {kind} chart. | "
        "I need a {kind} chart with the title {title}. | Chart: {kind}, {title}",
        "The {kind} chart {title} is drawn.",
    ),
    kind(
        "draw draw_picture make_image",
        "Draw a picture of a thing in a colour | Makes an image",
        {"object": OBJECT, "colour": COLOUR},
        "Draw a {colour} {object}. | Make a picture of a {object} in {colour}. | I want to see a {colour} {object}. | "
        "A picture of a {colour} {object}, please. | Show me a {object}. It should be {colour}.",
        "Here is a {colour} {object}.",
    ),
    kind(
        "deploy release ship_service",
        "Deploy a service | Brings a service to an environment",
        {
            "service": text("service app name", lambda rng, _: invented(rng)),
            "stage": options("stage env environment", "test staging production"),
        },
        "Deploy {service} to {stage}. | Release {service} on {stage}. | Bring {service} to {stage}. | "
        "Put {service} into {stage}. | {stage} needs the new {service}.",
        "{service} runs in {stage}.",
    ),
    kind(
        "restart restart_service reboot",
        "Restart a service | Stops and starts a service",
        {"service": text("service name unit process", lambda rng, _: invented(rng))},
        "Restart {service}. | The service {service} hangs. | Please restart the service {service}. | Reboot {service}. | "
        "{service} must be restarted. | Stop {service} and start it again.",
        "{service} was restarted.",
    ),
    kind(
        "scale set_replicas resize",
        "Set how many copies of a service run | Scales a service",
        {
            "service": text("service name app", lambda rng, _: invented(rng)),
            "replicas": integer("replicas copies count n", 1, 40),
        },
        "Scale {service} to {replicas}. | Run {replicas} copies of {service}. | {service} needs {replicas} replicas. | "
        "Set {service} to {replicas} copies. | I want {replicas} of {service}.",
        "{service} has {replicas} copies.",
    ),
    kind(
        "convert_unit units convert",
        "Convert a measure | Converts from one unit to another",
        {
            "value": integer("value amount number", 1, 900),
            "source": options("from source unit", "km m kg g mile foot"),
            "target": options("to target into", "km m kg g mile foot"),
        },
        "Convert {value} {source} to {target}. | How much is {value} {source} in {target}? | {value} {source} in {target} | "
        "What are {value} {source} in {target}? | Turn {value} {source} into {target}.",
        "{value} {source} are {result} {target}.",
        number_result("result", 1, 9999),
    ),
    kind(
        "who_is find_person lookup_person",
        "Find a person | Looks up who somebody is",
        {"person": PERSON},
        "Who is {person}? | Find {person}. | Look up {person}. | What do you know about {person}? | "
        "I want to know who {person} is. | Tell me who {person} is.",
        "{person} works as a {job}.",
        lambda rng: {"job": rng.choice(["teacher", "driver", "farmer", "doctor", "painter"])},
    ),
    kind(
        "explain course lesson teach",
        "Explain a field | Gives a lesson in a field",
        {"field": text("field subject topic", lambda rng, held: pick(rng, FIELDS, held))},
        "Explain {field} to me. | What is {field}? | I want to learn {field}. | Give me a lesson in {field}. | "
        "Teach me {field}. | A course in {field}, please.",
        "The lesson is {title}.",
        lambda rng: {"title": f"{invented(rng)} {rng.choice(WORDS)}"},
    ),
    kind(
        "sunrise get_sunrise sun_times",
        "When the sun rises in a city | Sunrise on a day",
        {"city": CITY, "day": DAY},
        "When does the sun rise in {city} on {day}? | Sunrise in {city} on {day} | When is sunrise on {day} in {city}? | "
        "How early is it light in {city} on {day}? | On {day}, when does the sun come up in {city}?",
        "In {city} the sun rises at {time}.",
        lambda rng: {"time": f"{rng.randint(4, 8)}:{rng.randint(10, 59)}"},
    ),
    kind(
        "holidays get_holidays days_off",
        "Holidays of a country in a month | Lists days off",
        {"country": COUNTRY, "month": text("month when period", one_of(MONTHS))},
        "Which holidays has {country} in {month}? | Holidays in {country} in {month} | "
        "Is there a holiday in {country} in {month}? | When is a day off in {month} in {country}? | "
        "List the holidays of {country} for {month}.",
        "There are {count} holidays.",
        number_result("count", 0, 5),
    ),
    kind(
        "set_language language change_language",
        "Set the language of the screen | Changes the language",
        {"language": LANGUAGE},
        "Switch to {language}. | I speak {language}. | Set the language to {language}. | Use {language} from now on. | "
        "Show everything in {language}. | Change the language to {language}.",
        "The language is {language}.",
    ),
    kind(
        "give_present present send_present",
        "Send a present to a person | Gives a thing to somebody",
        {"object": OBJECT, "person": PERSON},
        "Send {person} a {object}. | Give the {object} to {person}. | {person} wants a {object}. Send it. | "
        "A {object} for {person}, please. | I want to give {person} a {object}.",
        "{person} gets a {object}.",
    ),
    kind(
        "trade swap exchange_things",
        "Swap one thing for another | Trades things",
        {"mine": text("give mine offer", one_of(THINGS)), "yours": text("get yours want", one_of(THINGS))},
        "Swap the {mine} for a {yours}. | Trade my {mine} for a {yours}. | I give a {mine} and want a {yours}. | "
        "I have a {mine} and need a {yours}. | Change the {mine} into a {yours}.",
        "You have a {yours} now.",
    ),
    kind(
        "send_letter letter write_letter",
        "Send a letter to a person in a city | Writes a letter",
        {"person": PERSON, "city": CITY, "text": MESSAGE},
        "Send a letter to {person} in {city}: {text} | Write to {person} in {city}: {text} | "
        "A letter for {person}, {city}: {text} | Letter to {person} in {city} with the text: {text}",
        "The letter to {person} is on its way.",
    ),
    kind(
        "ping check_server is_up",
        "Check a server | Tells whether a host answers",
        {"host": text("host server name address", lambda rng, _: f"{invented(rng)}.{rng.choice(['com', 'org'])}")},
        "Is {host} up? | Ping {host}. | Check {host}. | Does {host} answer? | See whether {host} works. | "
        "I cannot reach {host}. Is it down?",
        "{host} answers in {ms} ms.",
        number_result("ms", 1, 400),
    ),
]
