"""Kinds of tools for training alone, about health, sport, nature, travel and offices. The evaluation asks for none."""

from __future__ import annotations

from random import Random

from tool_kind import DAY, PERSON, TIME, ToolKind, number_result, one_of
from tool_parts import ANIMAL, COLOUR, COUNTRY, integer, kind, options, text
from words import THINGS, city, invented

PATIENTS = "patient baby boy girl soldier farmer pensioner sailor miner pilot dancer carpenter".split()
MEDICINES = "aspirin penicillin insulin syrup drops pills ointment vitamin iodine camphor balm".split()
LIMBS = "arm leg knee foot hand finger elbow shoulder neck back ankle thumb wrist".split()
DRESSINGS = "bandage plaster splint gauze compress cloth sling".split()
AIDS = "crutch wheelchair stick walker cane pillow stool railing".split()
PLAYERS = "goalkeeper striker captain runner swimmer boxer skater jumper rower fencer skier climber".split()
GEAR = "helmet racket glove ball bat paddle whistle net mask oar rope vest".split()
SPORTS = "tennis squash badminton volleyball basketball bowling fencing judo hockey".split()
PAPERS = "passport permit licence visa certificate deed pass card".split()
EXHIBITS = "mummy skeleton statue vase mosaic throne sword fossil portrait crown meteorite".split()


def peak(rng: Random, held: bool) -> str:
    return f"{rng.choice(['Mount ', 'Mount ', '', ''])}{city(rng, held)}"


HEALTH_KINDS: list[ToolKind] = [
    kind(
        "prescribe prescription medicate giveMedicine clinic.prescribe",
        "Prescribe a patient a medicine | Gives a sick person something to get well | Medicine for a patient",
        {
            "patient": text("patient person for who", one_of(PATIENTS)),
            "medicine": text("medicine drug", one_of(MEDICINES)),
        },
        "Prescribe the {patient} some {medicine}. | The {patient} has a fever. Give her {medicine}. | "
        "The {patient} coughs all night and needs {medicine}. | {medicine} is what the sick {patient} should take. | "
        "The doctor wants {medicine} for the {patient}. | The {patient} is ill. He gets {medicine}. | "
        "Against the pain, {medicine} for the {patient} | Would {medicine} help? The {patient} has an infection. | "
        "prescription {medicine}: {patient} | Let the {patient} swallow some {medicine} to get well.",
        "The {patient} gets {medicine}.",
    ),
    kind(
        "bandage_wound bandage dressWound first_aid aid.bandage",
        "Put a dressing on a part of the body | First aid for a wound",
        {
            "part": text("part limb body_part where", one_of(LIMBS)),
            "dressing": text("dressing with", one_of(DRESSINGS)),
        },
        "Put a {dressing} on my sore {part}. | My {part} bleeds. A {dressing}, quickly! | I cut my {part}. Take the "
        "{dressing}. | There is a wound on the {part}. Cover it with a {dressing}. | The {part} must be dressed with a "
        "{dressing}. | A {dressing} is what my bleeding {part} needs. | Blood runs down my {part}. Where is the "
        "{dressing}? | first aid: {dressing}, {part} | Wind the {dressing} around the {part}.",
        "There is a {dressing} on the {part}.",
    ),
    kind(
        "massage massageFor rub_muscle physio spa.massage",
        "Massage a part of the body for some minutes | Rubs stiff muscles",
        {"part": text("part muscle area", one_of(LIMBS)), "minutes": integer("minutes mins duration", 5, 90)},
        "Massage my {part} for {minutes} minutes. | My {part} is stiff. Rub it for {minutes} minutes. | "
        "A {minutes} minute massage of the {part}, please. | I sat too long and my {part} is hard as wood. Knead it, "
        "{minutes} minutes. | {minutes} minutes of massage for my {part} | The muscles in my {part} are tense. "
        "I need {minutes} minutes of massage. | Can someone knead my {part}? {minutes} minutes would be fine. | "
        "massage {part} {minutes}",
        "Your {part} is massaged for {minutes} minutes.",
    ),
    kind(
        "visit_vet vetVisit vet animal_doctor vet.book",
        "See the vet with an animal on a day | Books the animal doctor",
        {"animal": ANIMAL, "day": DAY},
        "Take the {animal} to the vet on {day}. | My {animal} limps. Can the vet see it on {day}? | vet {day}, "
        "{animal} | On {day} the vet should look at my {animal}. | The {animal} must have its vaccine on {day}. | "
        "The vet is free on {day}. Bring the {animal}. | My {animal} has a broken tooth. To the vet with it on {day}! "
        "| I need the animal doctor on {day} for a {animal}.",
        "The vet sees the {animal} on {day}.",
    ),
    kind(
        "lend_aid walkingAid aid mobility care.lend",
        "Give somebody who walks badly an aid | Lends crutches and the like to patients",
        {"patient": text("patient person to who", PERSON.value), "aid": text("aid support item", one_of(AIDS))},
        "{patient} cannot walk alone. Bring her a {aid}. | {patient} has a broken leg and needs a {aid}. | "
        "Let {patient} lean on a {aid}. | The old {patient} is weak on her legs. She gets the {aid}. | To walk again, "
        "{patient} needs a {aid}. | A {aid} would help {patient} to get about. | walking aid {aid}, {patient} | "
        "How does {patient} get down the stairs? Give him the {aid}. | The hospital lends its {aid} to {patient}.",
        "{patient} has a {aid}.",
    ),
    kind(
        "hand_gear handGear sports_gear kit team.gear",
        "Give a player sports gear | Hands out what an athlete needs to play",
        {"player": text("player athlete to who", one_of(PLAYERS)), "gear": text("gear item equipment", one_of(GEAR))},
        "Give the {player} a {gear} to play with. | The {player} cannot play without a {gear}. | Hand the {gear} to "
        "the {player}. | The match begins and the {player} still lacks a {gear}. | The {player} has lost his {gear} in "
        "the game. Throw him another. | A {gear} is what the {player} needs for the training. | Where is the {gear} of "
        "the {player}? She wants to play. | For the game the {player} gets a {gear}. | gear {player}: {gear}",
        "The {player} has a {gear}.",
    ),
    kind(
        "set_jersey jersey shirtNumber squad_number team.number",
        "Say with which number a player plays | Gives a player a number on the back",
        {"player": text("player name who", PERSON.value), "number": integer("number jersey_number no", 1, 99)},
        "{player} plays with number {number}. | The {number} on the back is for {player}. | "
        "Give {player} the shirt with number {number}. | {player} has joined the team and takes the number {number}. | "
        "Number {number} is free. {player} may wear it. | Let {player} run with the {number} on the back. | "
        "jersey {number}: {player} | Which number has {player}? Make it {number}.",
        "{player} has number {number}.",
    ),
    kind(
        "reserve_court court bookCourt play_at sports.court",
        "Reserve a court for a sport at a time | Books a place to play",
        {"sport": text("sport game activity", one_of(SPORTS)), "time": TIME},
        "Reserve a {sport} court at {time}. | We want to play {sport} at {time}. | "
        "At {time} we need a court for {sport}. | A court, please: {sport}, {time} | "
        "Is there a free {sport} court at {time}? | Let us have a match of {sport} at {time}. | "
        "I play {sport} with a friend at {time} and have no court. | At {time} I would like a game of {sport}.",
        "You have a {sport} court at {time}.",
    ),
    kind(
        "mountain_height mountainHeight peak summit geo.height",
        "How high a mountain is | The height of a peak",
        {"mountain": text("mountain peak name summit", peak)},
        "How high is {mountain}? | Height of {mountain} | Is {mountain} a high mountain? | How many metres up is the "
        "top of {mountain}? | I want to climb {mountain}. How far up is the summit? | What is the height of the peak "
        "of {mountain}? | How tall is the mountain {mountain}? | Tell me how far {mountain} rises.",
        "{mountain} is {metres} metres high.",
        number_result("metres", 300, 8800),
    ),
    kind(
        "river_length riverLength river length_of_river geo.river",
        "How long a river is | The length of a river",
        {"river": text("river stream name water", city)},
        "How long is the river {river}? | Length of the {river} river | How far does the {river} flow? | "
        "From its source to the sea, how many km has the {river}? | Is the {river} a long river? | "
        "We want to canoe down the whole {river}. How long is it? | How many km of river is the {river}? | "
        "Tell me how long the stream {river} is.",
        "The {river} is {km} km long.",
        number_result("km", 20, 6000),
    ),
    kind(
        "lake_depth lakeDepth depth how_deep geo.lake",
        "How deep a lake is | The depth of a lake",
        {"lake": text("lake water name", city)},
        "How deep is Lake {lake}? | Depth of Lake {lake} | How far down is the bottom of Lake {lake}? | "
        "Can I stand in Lake {lake}? | I want to dive in Lake {lake}. How many metres is it to the ground? | "
        "Is Lake {lake} deep? | How many metres of water are there in Lake {lake}? | Lake {lake}: how deep?",
        "Lake {lake} is {depth} metres deep.",
        number_result("depth", 3, 900),
    ),
    kind(
        "lifespan lifeSpan how_old_gets life_expectancy animal.lifespan",
        "How many years an animal lives | The age that an animal reaches",
        {"animal": ANIMAL},
        "How old does a {animal} get? | Lifespan of a {animal} | How many years does a {animal} live? | "
        "For how many years will a {animal} be with me? | At what age does a {animal} die? | "
        "Does a {animal} live long? | My {animal} is nine. Is that old? | What age can a {animal} reach?",
        "A {animal} lives for {years} years.",
        number_result("years", 1, 90),
    ),
    kind(
        "top_speed topSpeed how_fast animal.speed speed_of",
        "How fast an animal moves | The highest speed of an animal",
        {"animal": ANIMAL},
        "How fast is a {animal}? | Speed of a {animal} | Can I outrun a {animal}? | "
        "How many km per hour does a {animal} make? | A {animal} is after me! How quick is it? | "
        "Is a {animal} quick or slow? | At what speed does a {animal} move? | Would a {animal} win a race?",
        "A {animal} makes {speed} km per hour.",
        number_result("speed", 1, 110),
    ),
    kind(
        "visa_needed visaNeeded entry_rules need_visa border.rules",
        "What one needs to enter a country | Whether a visa is needed",
        {"country": COUNTRY},
        "Do I need a visa for {country}? | What papers do I need to enter {country}? | Visa for {country} | Can I "
        "travel to {country} with my passport alone? | Will they let me over the border of {country}? | Entry rules of "
        "{country} | I go on holiday to {country}. Must I get a visa? | May I just fly to {country} and walk in?",
        "For {country} you need a {paper}.",
        lambda rng: {"paper": rng.choice(["visa", "passport", "card", invented(rng)])},
    ),
    kind(
        "moons_of moonCount moons planet_moons space.moons",
        "How many moons a planet has | The number of moons around a planet",
        {"planet": text("planet world name body", city)},
        "How many moons has {planet}? | Moons of {planet} | Are there moons around {planet}? | How many moons would I "
        "see in the sky of {planet}? | Does the planet {planet} have a moon? | What number of moons goes around "
        "{planet}? | Count the moons of the planet {planet}. | Is {planet} without a moon?",
        "{planet} has {moons} moons.",
        number_result("moons", 0, 90),
    ),
    kind(
        "issue_document issuePaper papers citizen_office office.issue",
        "Issue a citizen an official paper | The town hall makes a passport or permit",
        {
            "citizen": text("citizen person for holder", PERSON.value),
            "paper": text("paper document kind", one_of(PAPERS)),
        },
        "The town hall should issue {citizen} a {paper}. | {citizen} needs an official {paper}. | "
        "The {paper} of {citizen} has run out. Make a new one. | {citizen} has come to the town hall for a {paper}. | "
        "A {paper} from the town hall for {citizen}, please. | The state gives {citizen} a {paper}. | "
        "How does the citizen {citizen} get a {paper}? Issue one. | town hall: {paper}, {citizen} | "
        "{citizen} has no papers. The office should make him a {paper}.",
        "{citizen} has a new {paper}.",
    ),
    kind(
        "show_exhibit guideVisitor tour_stop museum.show exhibit",
        "Show a visitor of the museum an exhibit | Guides somebody to a piece of the museum",
        {
            "visitor": text("visitor guest who", one_of(PATIENTS)),
            "exhibit": text("exhibit piece object", one_of(EXHIBITS)),
        },
        "Show the {visitor} the {exhibit} in the museum. | The {visitor} came to our museum for the {exhibit}. Lead "
        "him there. | Guide the {visitor} to the {exhibit}. | The {visitor} is lost in the museum and looks for the "
        "{exhibit}. | In the museum, the {exhibit} is what the {visitor} wants to see. | museum tour {visitor}: "
        "{exhibit} | Take the {visitor} through the halls to the {exhibit}. | Which way is the {exhibit}? Show the "
        "{visitor} around the museum. | The {exhibit} is the finest piece of our museum. The {visitor} must see it.",
        "The {visitor} looks at the {exhibit}.",
    ),
    kind(
        "report_lost lostProperty lost_thing lostAndFound station.lost",
        "Report a thing that was lost | Tells the lost property office what is missing and where",
        {"thing": text("thing item what", one_of(THINGS)), "place": text("place where lost_at", city)},
        "I lost my {thing} in {place}. | My {thing} must still lie in {place}. | Lost in {place}: a {thing} | "
        "Has anybody found a {thing}? I had it last in {place}. | I left the {thing} behind at {place} station. | "
        "In {place} my {thing} fell out of my bag. | Report my {thing} as lost, in {place}. | "
        "Where is my {thing}? I must have dropped it in {place}.",
        "Your {thing} is reported as lost.",
    ),
    kind(
        "rent_bikes bikes bikeHire bicycle_rental tour.bikes",
        "Rent bicycles of a colour | Hires bikes for a group",
        {"bikes": integer("bikes count number", 2, 40), "colour": COLOUR},
        "Rent {bikes} {colour} bikes. | {bikes} bikes in {colour} | I want {bikes} {colour} bikes. | "
        "We would like to cycle along the river. Get us {bikes} {colour} bikes. | "
        "Bicycles: {colour}, {bikes} of them | The bikes should be {colour}. We need {bikes}. | "
        "Our feet hurt. {bikes} {colour} bicycles would be faster. | Do you hire out {colour} bikes? We take {bikes}.",
        "{bikes} {colour} bikes are yours.",
    ),
    kind(
        "museum_tickets museumEntry entry admission museum.tickets",
        "Buy tickets for the museum | Entry for so many persons of a kind",
        {
            "tickets": integer("tickets count persons", 2, 60),
            "kind": options("kind category fare", "child adult senior student family group"),
        },
        "{tickets} {kind} tickets for the museum | I want {tickets} {kind} tickets for the museum. | Museum: {tickets} "
        "times {kind} | We stand at the entrance of the museum and need {tickets} {kind} tickets. | Let us in. "
        "{tickets} tickets, all {kind} | The museum costs money. Buy {tickets} {kind} tickets. | How about {kind} "
        "tickets for the museum? Take {tickets}. | For the museum we need {kind} tickets, {tickets} of them.",
        "You have {tickets} {kind} tickets.",
    ),
]
