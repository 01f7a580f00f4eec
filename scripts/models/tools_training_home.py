"""Kinds of tools for training alone, about home, kitchen, garden and family. None is asked for in the evaluation."""

from __future__ import annotations

from tool_kind import DAY, PERSON, TIME, ToolKind, number_result, one_of
from tool_parts import COLOUR, COUNT, integer, kind, options, text
from words import ANIMALS, FOODS, NATURE, THINGS, invented

GARMENTS = "coat sweater jacket hat scarf shirt skirt sock glove shoe boot dress jersey cap raincoat".split()
PEOPLE = "aunt uncle guest visitor grandmother grandfather cousin friend baker plumber postman dentist singer".split()
DRINKS = "water tea coffee juice milk lemonade cocoa wine beer cider syrup punch".split()
MATERIALS = "oak pine glass steel bamboo stone plastic marble copper birch iron cork".split()
STAINS = "wine ink coffee grass mustard blood oil wax tea soot chocolate beetroot".split()
TOOLS = "ladder hammer drill saw wrench spade rake wheelbarrow pump bucket rope axe shovel pliers".split()
LAWNS = "pond shed house church school fence gate tree terrace pool hedge garage".split()
CHORES = "dishes laundry dusting ironing shopping sweeping gardening cooking windows stairs".split()
WASTE = "paper glass plastic metal garden kitchen brown yellow bottle battery".split()
FERTILISERS = "compost ash manure lime bark guano seaweed potash".split()

HOME_KINDS: list[ToolKind] = [
    kind(
        "cover_up bring_cover keepWarm wrap home.cover",
        "Bring something warm to a person who is cold | Wraps somebody up against the cold | Keeps a person warm",
        {
            "person": text("person guest who name", PERSON.value),
            "cover": text("cover thing with item", one_of(GARMENTS)),
        },
        "The guest {person} is cold. Get her a {cover}. | {person} is shivering. Fetch a {cover}. | "
        "{person} is cold, so put a {cover} around her. | A {cover} is what {person} needs against the cold. | "
        "Wrap {person} in a {cover}. | {person} sits outside and freezes. She gets a {cover}. | "
        "With this wind {person} will catch a cold. Hand him a {cover}. | Keep {person} warm with the {cover}. | "
        "Would a {cover} help? Our {person} is freezing. | {cover} around the shoulders of {person}",
        "{person} is warm now.",
    ),
    kind(
        "pour_drink fillGlass pour bar.pour",
        "Pour a drink into somebody's glass | Fills the glass of a guest | Gives a person something to drink",
        {"guest": text("guest person for who", one_of(PEOPLE)), "drink": text("drink beverage liquid", one_of(DRINKS))},
        "Pour the {guest} some {drink}. | The {guest} has an empty glass. Fill it with {drink}. | "
        "A glass of {drink} for the {guest}, please. | The {guest} has a dry throat. Pour her some {drink}. | "
        "{drink} is what the {guest} wants to drink. | What the {guest} needs in his cup is {drink}. | "
        "Take the {drink} and fill the glass of our {guest}. | My {guest} would love a sip of {drink}. | "
        "Could the {guest} have a cup of {drink}? | glass {guest}: {drink}",
        "The {guest} has a glass of {drink}.",
    ),
    kind(
        "tell_story bedtimeStory story read_to_child",
        "Tell a child a story | Reads a fairy tale at bedtime | A tale about something for a child",
        {
            "child": text("child kid listener name", PERSON.value),
            "hero": text("about hero story tale", one_of(ANIMALS)),
        },
        "Tell {child} the story of the {hero}. | {child} cannot sleep. Tell her about the {hero}. | "
        "It is bedtime for {child}. The tale of the {hero} again! | The fairy tale of the {hero} is for {child}. | "
        "{child} lies in bed with open eyes. Let him hear the tale of the {hero}. | "
        "A bedtime story about a {hero} for {child}, please. | Read {child} the tale with the {hero}. | "
        "Can {child} hear the one about the {hero} before she sleeps? | bedtime {child}: {hero} story",
        "{child} is asleep now.",
    ),
    kind(
        "dress_child putOn dress clothe family.dress",
        "Put a garment on a child | Dresses a child | Chooses what a child wears",
        {"child": text("child kid who name", PERSON.value), "garment": text("garment clothes wear", one_of(GARMENTS))},
        "Put the {garment} on little {child}. | {child} is still in pyjamas. She wears the {garment}. | Dress {child} "
        "in the {garment}. | {child} has nothing on yet. Take the {garment} for him. | The {garment} is what {child} "
        "should wear to school. | Let {child} wear the {garment}. | For school, the {garment}: {child} must get "
        "dressed. | Help {child} into the {garment}. | Is {child} dressed? If not, the {garment}.",
        "{child} wears the {garment}.",
    ),
    kind(
        "lend_tool lendOut neighbour_loan lend shed.lend",
        "Lend a tool to a neighbour | Lets a neighbour borrow something | Keeps track of what was lent",
        {"neighbour": text("neighbour to borrower who", PERSON.value), "tool": text("tool item what", one_of(TOOLS))},
        "Lend {neighbour} our {tool}. | {neighbour} next door asks for the {tool}. Let him have it for a while. | "
        "Our neighbour {neighbour} wants to borrow the {tool}. | The {tool} may go to {neighbour} until she is done. | "
        "{neighbour} is building a shed without a {tool}. Lend her ours. | "
        "May {neighbour} next door borrow a {tool}? | Over the fence: {tool} on loan for {neighbour} | "
        "Our {tool} is free, so {neighbour} can borrow it. | loan {tool} to neighbour {neighbour}",
        "{neighbour} has borrowed the {tool}.",
    ),
    kind(
        "pack_lunch lunchBox lunch snack_for",
        "Pack a snack into a child's lunch box | Makes a packed lunch | Fills a lunch box",
        {"child": text("child pupil kid for", PERSON.value), "snack": text("snack food filling", one_of(FOODS))},
        "Pack {child} a {snack} for the break. | {child} goes to school with an empty lunch box. Put a {snack} in it. "
        "| The lunch box of {child} needs {snack}. | For the break at school {child} gets {snack}. | Put {snack} into "
        "the box of {child}. | {snack} goes into the lunch of {child}. | What does {child} eat at school? Give her "
        "some {snack}. | lunch box {child}: {snack} | {child} must not be hungry at noon in class. Pack him {snack}.",
        "The lunch of {child} is packed.",
    ),
    kind(
        "fertilise fertilizePlant nourish garden.fertilise",
        "Give a plant fertiliser | Nourishes the soil of a plant | Helps a plant to grow",
        {
            "plant": text("plant crop bed tree", one_of(NATURE + FOODS)),
            "food": text("fertiliser with", one_of(FERTILISERS)),
        },
        "Fertilise the {plant} with {food}. | The leaves of the {plant} are pale. Strew {food} around it. | The "
        "{plant} does not grow. It needs {food} in the soil. | {food} would make the {plant} grow better. | Work some "
        "{food} into the earth under the {plant}. | My {plant} has poor soil. Give it {food}. | Why is the {plant} so "
        "small? Put {food} at its roots. | fertiliser for {plant}: {food} | Use {food} to help the {plant} grow.",
        "The {plant} has got {food}.",
    ),
    kind(
        "assign_chore giveChore chore housework family.chores",
        "Give a member of the family a chore | Says who does which housework | Shares out the work at home",
        {"member": text("member person who child", PERSON.value), "chore": text("chore job duty", one_of(CHORES))},
        "{member} does the {chore} this week. | It is the turn of {member} to do the {chore}. | Let {member} do the "
        "{chore} at home. | The {chore} is a chore for {member}. | {member} never helps in the house. From now on she "
        "has the {chore}. | Housework: {chore}, {member} | Who does the {chore}? {member} does. | {member} lies on the "
        "sofa. Make him do the {chore}. | Put {member} in charge of the {chore} in our house.",
        "{member} does the {chore}.",
    ),
    kind(
        "sew_curtains makeCurtains curtains drapes sewing.curtains",
        "Sew curtains of a colour | Makes curtains for the windows | Curtains, so many and in which colour",
        {"count": COUNT, "colour": COLOUR},
        "I want {count} {colour} curtains. | {count} curtains in {colour} | Sew me {count} {colour} curtains. | "
        "Everyone looks in through our windows. We need {count} {colour} curtains. | Curtains, please: {colour}, "
        "and {count} of them. | Our windows are bare. Hang {count} curtains, {colour} ones. | "
        "Can you make {colour} curtains? I need {count}. | Let the curtains be {colour}. There should be {count}. | "
        "Of the {colour} curtains I take {count}.",
        "{count} {colour} curtains are sewn.",
    ),
    kind(
        "fold_napkins napkins setNapkins table.napkins",
        "Fold napkins for the table | Lays out napkins of a colour",
        {"napkins": integer("napkins count number", 2, 80), "colour": COLOUR},
        "Fold {napkins} {colour} napkins. | {napkins} napkins in {colour}, please. | The table is laid, but for "
        "napkins: {napkins} in {colour}. | Lay {napkins} {colour} napkins beside the plates. | We dine with guests and "
        "need {napkins} {colour} napkins. | {colour} napkins, {napkins} pieces | How about {colour} napkins? Fold "
        "{napkins} of them. | With napkins in {colour} the table looks nice. Take {napkins}.",
        "{napkins} {colour} napkins are folded.",
    ),
    kind(
        "bake_muffins muffins bakeMuffins bakery.muffins",
        "Bake muffins of a flavour | Makes small cakes | So many muffins with something in them",
        {
            "count": integer("count muffins n pieces", 2, 60),
            "flavour": text("flavour flavor taste with", one_of(FOODS)),
        },
        "Bake {count} {flavour} muffins. | {count} muffins with {flavour} | I want {count} {flavour} muffins. | "
        "The children have a party and would like {flavour} muffins, {count} in all. | "
        "Muffins, please: {count}, and they should taste of {flavour}. | Make {flavour} muffins. I need {count}. | "
        "Can we have {count} muffins made with {flavour}? | Put {flavour} into the muffins and bake {count} of them. | "
        "{count} fresh muffins would be lovely, {flavour} ones.",
        "{count} {flavour} muffins are in the oven.",
    ),
    kind(
        "build_shelves shelves putUpShelf shelving",
        "Build shelves of a material | Puts up shelves",
        {"shelves": integer("shelves count number", 2, 30), "material": text("material wood of", one_of(MATERIALS))},
        "Build {shelves} {material} shelves. | {shelves} shelves of {material} | I need {shelves} {material} shelves. "
        "| My books lie on the floor. Put up {shelves} {material} shelves. | Shelves in {material}: "
        "{shelves} of them | There is no room for my things. {shelves} shelves made of {material} would help. | "
        "Use {material} and build {shelves} shelves. | Could I have {material} shelves? {shelves} should do.",
        "{shelves} {material} shelves are up.",
    ),
    kind(
        "run_washer startWashing laundry washing_machine washer.start",
        "Start the washing machine at a time | Washes clothes | Does the laundry later",
        {"load": text("load clothes laundry what", one_of(GARMENTS)), "time": TIME},
        "Wash the {load} at {time}. | Start the washing machine with the {load} at {time}. | My {load} is full of "
        "stains. Run the machine at {time}. | At {time}, do the laundry: {load} | The {load} smells. It goes into the "
        "washing machine at {time}. | laundry {load} {time} | I have no clean {load}. Wash it at {time}. | Can the "
        "{load} be washed at {time}? | Power is cheap at {time}, so let the machine wash the {load} then.",
        "The {load} is washed at {time}.",
    ),
    kind(
        "put_out_bin binDay rubbish waste.bin trash",
        "Put a bin out on a day | Says when rubbish is fetched | Takes the waste to the street",
        {"bin": text("bin waste kind", one_of(WASTE)), "day": DAY},
        "Put the {bin} bin out on {day}. | The {bin} waste is fetched on {day}. Put it out. | "
        "On {day} the {bin} bin goes to the street. | Our {bin} bin is full. It must go out on {day}. | "
        "rubbish: {bin}, {day} | The lorry for {bin} rubbish comes on {day}. See that the bin stands outside. | "
        "Take the rubbish out on {day}, the {bin} one. | Can you roll the {bin} bin out on {day}?",
        "The {bin} bin goes out on {day}.",
    ),
    kind(
        "book_sitter babysitter findSitter child_care",
        "Find a babysitter for a child on a day | Somebody to look after a child | Books child care",
        {"child": text("child kid baby", PERSON.value), "day": DAY},
        "Find a babysitter for {child} on {day}. | Who looks after {child} on {day}? | "
        "We go out on {day} and {child} is too small to be alone. | On {day} somebody must mind {child}. | "
        "{child} needs a sitter on {day}. | babysitter {day}, {child} | My {child} cannot stay at home alone on {day}. "
        "Get someone. | We are away on {day}. Who stays with little {child}?",
        "Somebody looks after {child} on {day}.",
    ),
    kind(
        "shelf_life keepsFor freshness how_long_fresh food.keeps",
        "How long some food keeps | Tells after how many days food goes bad",
        {"food": text("food item what product", one_of(FOODS))},
        "How long does {food} keep? | When does {food} go bad? | Shelf life of {food} | "
        "I opened the {food} last week. Is it still good? | How many days does {food} stay fresh? | "
        "Can I still eat old {food}? | My {food} smells odd. How long may one keep it? | {food}: fresh for how long?",
        "Fresh {food} keeps for {keeps} days.",
        number_result("keeps", 1, 90),
    ),
    kind(
        "stain_help removeStain stain cleaning.stains",
        "How to get a stain out | Tells what helps against a stain | Advice about spots on clothes",
        {"stain": text("stain spot of kind", one_of(STAINS))},
        "How do I get {stain} out of my shirt? | There is {stain} on the carpet. What helps? | Remove a {stain} stain. "
        "| I spilled {stain} on my trousers. | What takes away spots of {stain}? | stain: {stain} | "
        "My blouse has a spot of {stain} on it. What now? | {stain} on the sofa! How does it come off?",
        "Against {stain} you take {remedy}.",
        lambda rng: {"remedy": rng.choice(["salt", "soap", "vinegar", "lemon", invented(rng)])},
    ),
    kind(
        "mow_lawn cutGrass mower lawn.mow mow",
        "Cut the grass of a place to a height | Mows the lawn | Sends the mower out",
        {"lawn": text("lawn place area", one_of(LAWNS)), "cm": integer("height cm centimetres", 2, 15)},
        "Mow the lawn by the {lawn} to {cm} cm. | The grass at the {lawn} is too high. Leave {cm} cm of it. | "
        "{cm} cm is high enough for the grass near the {lawn}. | Cut the grass behind the {lawn}, {cm} cm. | "
        "Nobody has mown around the {lawn} for weeks. Bring it down to {cm} centimetres. | I like the lawn at {cm} cm, "
        "so send the mower to the {lawn}. | lawn {lawn} {cm} cm | Can the mower do the {lawn}? Set it to {cm} cm.",
        "The grass at the {lawn} is {cm} cm high.",
    ),
    kind(
        "lock_door doorLock lock door.set",
        "Lock or unlock a door | Controls the lock of a door",
        {
            "door": text("door which entrance gate", one_of(THINGS)),
            "state": options("state lock to", "locked unlocked"),
        },
        "The {door} door should be {state}. | Make sure that the {door} door is {state}. | Keep the {door} door "
        "{state}. | I want the door of the {door} {state}. | {state}: that is how the {door} door must be. | door "
        "{door} {state} | Is the {door} door {state}? It has to be. | At night the {door} door stays {state}.",
        "The {door} door is {state}.",
    ),
    kind(
        "chill_drink coolDown chill fridge.chill",
        "Put a drink into the fridge for some minutes | Cools a drink down | Makes a drink cold",
        {"drink": text("drink bottle what", one_of(DRINKS)), "minutes": integer("minutes mins duration for", 5, 90)},
        "Chill the {drink} for {minutes} minutes. | The {drink} is too warm. Cool it for {minutes} minutes. | The "
        "{drink} goes into the fridge for {minutes} minutes. | {minutes} minutes in the fridge for the {drink} | "
        "Nobody likes warm {drink}. Put it on ice for {minutes} minutes. | I want ice cold {drink} in {minutes} "
        "minutes. | Give the {drink} {minutes} minutes on ice. | Can the {drink} be cooled? {minutes} minutes will do.",
        "The {drink} is cold.",
    ),
]
