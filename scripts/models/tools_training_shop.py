"""Kinds of tools for training alone, about shop, bank, restaurant and delivery. None is asked for in the evaluation."""

from __future__ import annotations

from tool_kind import DAY, PERSON, TIME, ToolKind, number_result, one_of, some_text
from tool_parts import COLOUR, code, integer, kind, options, text
from words import FOODS, THINGS, invented

GARMENTS = "coat sweater jacket hat trousers shirt skirt suit gown vest dress blouse cap uniform".split()
DISHES = "soup salad pizza pasta steak curry stew omelette burger lasagne risotto pancake".split()
FLOWERS = "rose tulip lily orchid daisy iris poppy carnation violet peony sunflower".split()
MATERIALS = "oak plastic bamboo steel wicker leather pine wooden metal folding".split()
GUESTS = "guest couple family lady gentleman visitor mayor singer critic professor tourist widow".split()
SEATS = "terrace window corner bar balcony garden fireplace gallery".split()
MENUS = "lunch dinner wine dessert children breakfast"

SHOP_KINDS: list[ToolKind] = [
    kind(
        "book_haircut hairdresser barber cutHair salon.book",
        "Book a visit to the hairdresser | Has hair cut by some centimetres | The barber cuts hair on a day",
        {"cm": integer("cm centimetres length cut", 1, 30), "day": DAY},
        "My hair is too long. {cm} cm must go on {day}. | On {day} I want {cm} cm of my hair cut off. | Book the "
        "hairdresser for {day}, {cm} cm shorter. | I look shaggy. Take {cm} cm off on {day}. | I can hardly see "
        "through my fringe. {day}, {cm} cm | Can the barber cut {cm} cm on {day}? | haircut {day} {cm} cm | My head "
        "needs scissors on {day}: {cm} cm shorter, please. | Could I come for a haircut on {day}? Just {cm} cm.",
        "Your hair is cut on {day}.",
    ),
    kind(
        "show_goods showItem display presentGoods shop.show",
        "Show a customer an article of the shop | Presents goods to a customer | "
        "Takes an article from the shelf for someone",
        {
            "customer": text("customer client buyer who", PERSON.value),
            "item": text("item goods article", one_of(THINGS)),
        },
        "Show {customer} the {item} in the window. | The customer {customer} is looking for a {item}. Show her ours. | "
        "{customer} came into the shop to see a {item}. | Take the {item} off the shelf so that {customer} can look at "
        "it. | Let the customer {customer} have a look at the {item}. | The {item} may please {customer}. Present it "
        "to him. | The customer {customer} does not know what to buy. Show him a {item}. | Is {customer} in the shop? "
        "The {item} would be something to show her. | A {item} is what the customer {customer} wants to see.",
        "{customer} looks at the {item}.",
    ),
    kind(
        "bring_menu menuCard menu handMenu waiter.menu",
        "Bring a menu to a table of the restaurant | Hands the guests a card to choose from",
        {"table": integer("table number seat", 1, 60), "menu": options("menu card kind", MENUS)},
        "Bring the {menu} menu to table {table}. | Table {table} wants to choose. Give them the {menu} card. | "
        "Table {table} would like to see the {menu} menu. | The {menu} card for table {table} | "
        "They have nothing to read at table {table}. Hand them the {menu} menu. | table {table}: {menu} menu | "
        "The guests at {table} ask what there is on the {menu} card. | Can table {table} have the {menu} menu?",
        "Table {table} has the {menu} menu.",
    ),
    kind(
        "seat_guest leadToSeat seat usher restaurant.seat",
        "Lead a guest to a seat | Gives a guest of the restaurant a place to sit | Seats somebody somewhere",
        {"guest": text("guest person who party", one_of(GUESTS)), "seat": text("seat place spot where", one_of(SEATS))},
        "Lead the {guest} to the {seat}. | The {guest} is still standing at the entrance. Seat her at the {seat}. | "
        "The {seat} is free. Let the {guest} sit there. | The {guest} would like to sit at the {seat}. | "
        "Where can the {guest} sit? Take the place at the {seat}. | Give the {guest} a chair at the {seat}. | "
        "The {guest} has tired legs. There is a seat for him at the {seat}. | seat {guest}: {seat} | "
        "A place at the {seat} is what the {guest} asks for.",
        "The {guest} sits at the {seat}.",
    ),
    kind(
        "try_on fittingRoom fitting changing_room shop.tryOn",
        "Bring a garment to the fitting room for a customer | Lets somebody try clothes on",
        {
            "customer": text("customer person client", PERSON.value),
            "garment": text("garment clothes what", one_of(GARMENTS)),
        },
        "Let {customer} try the {garment} on. | {customer} wants to know whether the {garment} fits. | "
        "Does the {garment} suit {customer}? Let her try. | Hang the {garment} into the fitting room of {customer}. | "
        "{customer} is in the fitting room. Hand her the {garment}. | try on: {garment}, {customer} | "
        "Bring a {garment} to the changing room. It is for {customer}. | "
        "{customer} stands before the mirror and needs the {garment} in a size that fits.",
        "{customer} tries the {garment} on.",
    ),
    kind(
        "grant_loan giveCredit loan credit bank.lend",
        "Grant a customer of the bank a loan | Lends money to a customer | Gives credit",
        {
            "customer": text("customer client borrower", PERSON.value),
            "amount": integer("amount sum loan_amount", 100, 90000),
        },
        "Grant {customer} a loan of {amount}. | {customer} is building a house. The bank lends her {amount}. | "
        "A loan of {amount} for {customer} | {customer} cannot pay for the car. Give him {amount} on credit. | "
        "{customer} wants to borrow {amount} from the bank. | {amount} on credit is what {customer} needs. | "
        "The bank gives a credit of {amount}, and {customer} gets it. | Could the bank lend {customer} {amount}? | "
        "{customer} asks our bank for a credit. Make it {amount}.",
        "{customer} has a loan of {amount}.",
    ),
    kind(
        "hand_parcel giveParcel courier pickupParcel delivery.hand",
        "Hand a parcel to a courier | Gives the driver a parcel to take along",
        {"courier": text("courier driver to who", PERSON.value), "parcel": text("parcel code package", code)},
        "Hand parcel {parcel} to the courier {courier}. | The courier {courier} is at the door. "
        "Give him parcel {parcel}. | {courier} takes the parcel {parcel} along in the van. | "
        "Parcel {parcel} goes with the driver {courier}. | The van of {courier} is still empty. Load {parcel} into it. "
        "| The driver {courier} waits for {parcel}. | Parcel {parcel} is ready. Let the courier {courier} have it. | "
        "Can the driver {courier} take {parcel} with her?",
        "{courier} has the parcel {parcel}.",
    ),
    kind(
        "add_topping topping putOnDish garnish kitchen.topping",
        "Put a topping on a dish | Adds something on top of a meal | Garnishes a dish",
        {"dish": text("dish meal base on", one_of(DISHES)), "topping": text("topping extra add with", one_of(FOODS))},
        "I like {topping}. Put it on top of the {dish}. | The {dish} tastes of nothing. Strew some {topping} over it. "
        "| I would like my {dish} topped with {topping}. | The {dish} comes with extra {topping}, please. | "
        "{topping} on top of the {dish} | A bit of {topping} is what this {dish} lacks. | My {dish} looks bare. "
        "Add {topping}. | Garnish the {dish} with {topping}. | Can I have {topping} on my {dish}? | "
        "Take the {dish} and lay {topping} on top.",
        "There is {topping} on the {dish}.",
    ),
    kind(
        "alter_garment shorten tailor takeIn tailor.shorten",
        "Shorten a garment by some centimetres | The tailor alters clothes",
        {"garment": text("garment clothes what", one_of(GARMENTS)), "cm": integer("cm centimetres by length", 1, 25)},
        "Shorten the {garment} by {cm} cm. | The {garment} is too long for me. Sew it {cm} cm shorter. | "
        "My {garment} drags on the ground. Hem it, {cm} cm. | {cm} cm off the hem of the {garment} | "
        "The tailor should make my {garment} {cm} cm shorter. | I trip over the {garment}. {cm} cm less cloth, please. "
        "| Can you take {cm} cm of cloth from the {garment}? | tailor: {garment}, minus {cm} cm",
        "The {garment} is {cm} cm shorter.",
    ),
    kind(
        "bind_bouquet bouquet flowers makeBouquet florist.bind",
        "Bind a bouquet of flowers | The florist puts flowers together",
        {
            "count": integer("count number stems", 3, 60),
            "colour": COLOUR,
            "flower": text("flower kind sort", one_of(FLOWERS)),
        },
        "Bind {count} {colour} {flower} flowers into a bouquet. | {count} {colour} {flower} blossoms for a bouquet | "
        "I want a bouquet of {count} {flower} stems in {colour}. | It is her birthday. A bouquet: {count} {flower}, "
        "{colour} | She loves {flower} flowers. Bind {count}, all {colour}. | Put {flower} stems together, "
        "{colour} ones, {count} of them. | Can the florist bind {colour} {flower} flowers? I take {count}. | "
        "bouquet {flower} {colour} {count}",
        "The bouquet of {count} {flower} is bound.",
    ),
    kind(
        "rent_chairs chairs seating chairHire party.chairs",
        "Rent chairs for a party | Hires chairs of a material",
        {"chairs": integer("chairs count number", 2, 300), "material": text("material kind type", one_of(MATERIALS))},
        "Rent {chairs} {material} chairs. | {chairs} {material} chairs for our party | We need {chairs} {material} "
        "chairs. | The wedding guests have nothing to sit on. Hire {chairs} {material} chairs. | Chairs: {material}, "
        "{chairs} | I want chairs, {chairs} of them, {material} ones. | Can we have {material} chairs for the evening? "
        "{chairs} in all. | The hall stands empty. Put {chairs} {material} chairs in it.",
        "{chairs} {material} chairs are rented.",
    ),
    kind(
        "print_flyers flyers leaflets printLeaflets press.flyers",
        "Print flyers on paper of a colour | Makes leaflets",
        {"flyers": integer("flyers count copies", 2, 900), "colour": COLOUR},
        "Print {flyers} {colour} flyers. | {flyers} flyers on {colour} paper | I want {flyers} {colour} leaflets. | "
        "Nobody knows of our shop yet. Print {flyers} {colour} leaflets. | The flyers should be {colour}. "
        "Make {flyers}. | We hand out {colour} flyers in the street and need {flyers}. | Leaflets: {flyers}, "
        "in {colour} | Could you print flyers in {colour}? {flyers} would be enough.",
        "{flyers} {colour} flyers are printed.",
    ),
    kind(
        "slice_food slices sliceFor cutSlices deli.slice",
        "Cut food into slices | So many slices of some food from the counter",
        {"food": text("food what item", one_of(FOODS)), "slices": integer("slices count number", 2, 40)},
        "Cut {slices} slices of {food}. | {slices} thin slices of {food}, please. | "
        "I would like {food}, {slices} slices. | From the {food} I take {slices} slices. | "
        "Slice the {food}. {slices} slices will do. | Can I get {slices} slices from that {food}? | "
        "The {food} looks good. Cut me {slices} slices of it. | At the counter: {food} in {slices} slices",
        "Here are {slices} slices of {food}.",
    ),
    kind(
        "opening_hours openHours hours_of opensAt shop.hours",
        "When a shop opens | Tells the opening hours of a place",
        {"shop": text("shop store place name", some_text)},
        "When does the shop {shop} open? | Opening hours of {shop} | How long is the store {shop} open? | "
        "Is {shop} still open? | I want to go shopping at {shop}. When does it close? | "
        "From what hour can I shop at {shop}? | Does the shop {shop} open on Sundays? | When do they close at {shop}?",
        "{shop} opens at {hour} o'clock.",
        number_result("hour", 6, 11),
    ),
    kind(
        "allergens allergyCheck contains_allergens safe_to_eat dish.allergens",
        "What in a dish may cause an allergy | Lists the allergens of a dish",
        {"dish": text("dish food meal item", one_of(DISHES))},
        "Is there anything in the {dish} that I may be allergic to? | Allergens in {dish} | I have an allergy. "
        "Can I eat the {dish}? | Which allergens are in the {dish}? | My child cannot stand nuts. Is the {dish} safe? "
        "| What could make me itch in the {dish}? | allergy {dish} | Does the {dish} have nuts or gluten in it?",
        "The {dish} contains {allergen}.",
        lambda rng: {"allergen": rng.choice(["nuts", "gluten", "milk", "egg", "soy", invented(rng)])},
    ),
    kind(
        "account_balance balance getBalance money_left bank.balance",
        "How much money is on an account | The balance of an account",
        {"account": text("account code number id", code)},
        "How much money is on account {account}? | Balance of {account} | Can I still pay from {account}? | "
        "What is left on the account {account}? | Is {account} in the red? | Am I rich? Look at my account {account}. "
        "| I wonder what I own on {account}. | How much have I got at the bank on {account}?",
        "There are {balance} on {account}.",
        number_result("balance", 1, 9999),
    ),
    kind(
        "block_card blockCard stop_card freezeCard bank.block",
        "Block a bank card | Makes a lost card useless",
        {"card": text("card number code id", code)},
        "Block my card {card}. | I lost the bank card {card}. | My card {card} was stolen! | Nobody may pay with "
        "{card} any more. | Somebody took my wallet with the card {card} in it. | Stop the card {card}. | Make card "
        "{card} useless for the thief. | I cannot find my credit card {card}. What now?",
        "The card {card} is blocked.",
    ),
    kind(
        "return_item sendBack giveBack complain shop.return",
        "Return a bought article | Sends goods back for a reason",
        {
            "item": text("item article goods what", one_of(THINGS)),
            "reason": options("reason why fault", "broken small large wrong ugly used"),
        },
        "I want to return the {item}, because it is {reason}. | The {item} you sold me is {reason}. "
        "I want my money back. | Send the {item} back: {reason} | The {item} that I got from the shop is {reason}. "
        "Take it back. | {reason}! Such a {item} goes back to the shop. | return {item} {reason} | "
        "Can I give the {item} back? It is {reason}. | I bought a {item} and do not want to keep it. It is {reason}.",
        "The {item} goes back.",
    ),
    kind(
        "deliver_at deliveryTime deliver setDelivery delivery.schedule",
        "Say when a bought article is brought | Sets the hour of a delivery",
        {"item": text("item goods parcel what", one_of(THINGS)), "time": TIME},
        "Bring the {item} to my house at {time}. | Deliver the {item} at {time}. | "
        "I am at home at {time}. The {item} can come. | At {time} the {item} should be at my door. | "
        "When I come home at {time}, deliver the {item}. | delivery {time}: {item} | "
        "Is {time} a good hour to deliver my {item}? | The {item} may be brought at {time}, not sooner.",
        "The {item} comes at {time}.",
    ),
    kind(
        "dry_clean dryCleaning cleaners collect_cleaning cleaner.collect",
        "Bring a garment to the dry cleaner | Has clothes cleaned by a day",
        {"garment": text("garment clothes item", one_of(GARMENTS)), "day": DAY},
        "Bring the {garment} to the cleaner, I need it on {day}. | Have the {garment} dry cleaned by {day}. | On {day} "
        "I wear the {garment}, so the dry cleaner must have it ready. | dry cleaning: {garment}, {day} | The {garment} "
        "may not be washed. Let the cleaner do it until {day}. | I fetch the {garment} from the cleaner on {day}. | "
        "Can the dry cleaner finish my {garment} by {day}? | By {day} the {garment} must be back from the cleaner.",
        "The {garment} is clean on {day}.",
    ),
]
