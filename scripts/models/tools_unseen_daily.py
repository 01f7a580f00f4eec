"""Tools of daily life with wishes for the evaluation alone, by somebody who saw neither the training data nor what failed.

Thirty of these 44 kinds occur in training as well, in other words but for four short wishes ("Lock the screen."). What
fails of them is never printed, so that no weights can be shaped after it.
"""

from __future__ import annotations

from tool_kind import ToolKind, clock_time, email_address, one_of, some_text
from tool_parts import ROOM, code, integer, kind, options, path, text, web_address
from words import ANIMALS, COLOURS, COUNTRIES, DAYS, FOODS, LANGUAGES, MONTHS, THINGS, city, name

UNSEEN_DAILY_KINDS: list[ToolKind] = [
    # without parameters
    kind(
        "lock_screen lockScreen lock",
        "Lock the screen of this computer | Locks the user's session until the password is typed",
        {},
        "Lock the screen. | I'm off for a coffee, make sure nobody can use my computer."
        " | There are visitors walking past my desk and I'd rather they had to type a password to see anything.",
        "I locked the screen.",
    ),
    kind(
        "empty_recycle_bin emptyRecycleBin purge",
        "Empty the recycle bin | Removes all deleted files for good",
        {},
        "Empty the recycle bin, please. | Get rid of everything I've deleted, for good this time."
        " | My deleted files are still eating up disk space. I don't need a single one of them back.",
        "I emptied the recycle bin.",
    ),
    kind(
        "take_screenshot takeScreenshot capture",
        "Take a screenshot | Saves a picture of what the screen shows now",
        {},
        "Take a screenshot. | Can you save a picture of what's on my display right now?"
        " | I want to show the help desk exactly how my screen looks at this moment, so grab an image of it.",
        "I took a screenshot.",
    ),
    kind(
        "get_battery_level getBatteryLevel battery",
        "Get the battery level of this device | Returns how much charge is left, in percent",
        {},
        "What is the battery level? | How much juice have I got left on this thing?"
        " | I forgot my charger at home and wonder whether this laptop will last until the meeting is over.",
        "I checked the battery.",
    ),
    kind(
        "scan_wifi_networks scanWifiNetworks wifi",
        "Scan for wireless networks | Lists the Wi-Fi networks within reach",
        {},
        "Scan for Wi-Fi networks. | Which wireless networks can I join from here?"
        " | I'm sitting in a café and need to get online, so let me see what Wi-Fi there is around me.",
        "I looked for wireless networks.",
    ),
    kind(
        "get_step_count getStepCount steps",
        "Get the number of steps walked today | Reads today's count from the pedometer",
        {},
        "How many steps have I walked today? | Have I been on my feet enough today? Tell me my count."
        " | I hope that long stroll after lunch paid off; I'd like to know what the pedometer says.",
        "I read your step count.",
    ),
    kind(
        "find_parked_car findParkedCar car",
        "Find where the car is parked | Returns the position of the user's parked car",
        {},
        "Find my parked car. | Where on earth did I leave the car?"
        " | I've been going round this car park for ten minutes and still can't see my own vehicle anywhere.",
        "I found your car.",
    ),
    kind(
        "open_garage_door openGarageDoor garage",
        "Open the garage door | Raises the door of the garage",
        {},
        "Open the garage door. | I'm nearly home, let me drive straight into the garage, would you?"
        " | I'm in the drive with the engine running and the garage is still shut. I'd like to get in.",
        "I opened the garage door.",
    ),
    kind(
        "start_dishwasher startDishwasher dishes",
        "Start the dishwasher | Runs the normal washing programme of the dishwasher",
        {},
        "Start the dishwasher. | Get the dirty plates washed, the machine is loaded."
        " | I've put in all the cups and pans from dinner and closed the door, but I forgot to press the button.",
        "I started the dishwasher.",
    ),
    kind(
        "clear_clipboard clearClipboard wipe",
        "Clear the clipboard | Forgets whatever was last copied",
        {},
        "Clear the clipboard. | Make the computer forget what I just copied."
        " | I copied a password a minute ago and don't want to paste it somewhere by accident. Please drop it.",
        "I cleared the clipboard.",
    ),
    kind(
        "run_virus_scan runVirusScan antivirus",
        "Scan this computer for viruses | Runs a full malware check on all drives",
        {},
        "Run a virus scan. | Could you check my PC for malware?"
        " | I clicked on something dodgy and now odd windows keep popping up. I fear this machine caught something.",
        "I scanned the computer for viruses.",
    ),
    kind(
        "get_ink_levels getInkLevels ink",
        "Get the ink levels of the printer | Reports how full each cartridge of the printer is",
        {},
        "Show me the ink levels of the printer. | Are the printer's cartridges running low?"
        " | My last few pages came out rather pale, so I want to know whether it's time to buy new cartridges.",
        "I checked the printer's ink.",
    ),
    # with one parameter
    kind(
        "compress_file compressFile zip",
        "Compress a file into a zip archive | Packs the file to make it smaller",
        {
            "path": text("path file source", path),
        },
        "Compress the file {path} into an archive. | Can you zip {path} for me?"
        " | The upload page says that {path} is too large, so I need it packed into something smaller.",
        "I compressed {path}.",
    ),
    kind(
        "end_process endProcess kill",
        "End a running process by its number | Stops the process with the given id",
        {
            "pid": integer("pid process_id number", 300, 9999),
        },
        "End process {pid}. | Something with the id {pid} is hogging my processor, kill it."
        " | The task manager says that number {pid} hangs and won't close on its own. I want it gone.",
        "I ended process {pid}.",
    ),
    kind(
        "shorten_link shortenLink shorten",
        "Shorten a web address | Makes a short link that leads to a long one",
        {
            "url": text("url link address", web_address),
        },
        "Shorten the link {url} please | I need a shorter version of {url} for a poster."
        " | Nobody will ever type {url} by hand, so give me something brief that leads to the same page.",
        "I made a short link to {url}",
    ),
    kind(
        "make_qr_code makeQrCode qr",
        "Make a QR code that holds a text | Encodes the given text as a QR image",
        {
            "content": text("content text data", some_text),
        },
        "Make a QR code with the text '{content}'. | Turn '{content}' into one of those square codes for phones."
        " | When people point their phone at my badge they should read '{content}', so I need the QR picture for it.",
        "I made the QR code.",
    ),
    kind(
        "track_parcel trackParcel parcel",
        "Track a parcel by its tracking number | Tells where a shipment is at the moment",
        {
            "number": text("number tracking_code shipment", code),
        },
        "Track the parcel {number}. | Where has my delivery got to? The tracking number is {number}."
        " | The shop said {number} would be at my door by yesterday, but the courier never came with it.",
        "I tracked the parcel {number}.",
    ),
    kind(
        "find_recipe findRecipe cook",
        "Find a recipe that uses an ingredient | Looks up a dish to cook with the given food",
        {
            "ingredient": text("ingredient food with", one_of(FOODS)),
        },
        "Find a recipe with {ingredient}. | What can I cook with {ingredient} tonight?"
        " | All I could see in the fridge was {ingredient}, and I have no idea what dish to make out of it.",
        "I found a recipe with {ingredient}.",
    ),
    kind(
        "get_currency getCurrency currency",
        "Get the currency of a country | Names the money that is used in a country",
        {
            "country": text("country land nation", one_of(COUNTRIES)),
        },
        "What is the currency of {country}? | What sort of money do they pay with in {country}?"
        " | Before my trip to {country} I'd like to know which coins and notes will be in my wallet there.",
        "I looked up the currency of {country}.",
    ),
    kind(
        "vacuum_room vacuumRoom vacuum",
        "Send the robot vacuum to a room | Lets the cleaning robot hoover one room",
        {
            "room": ROOM,
        },
        "Vacuum the {room}. | Could the robot hoover the {room}, please?"
        " | There are crumbs all over the floor of the {room} and I'd like the little robot to deal with them.",
        "The robot is cleaning the {room}.",
    ),
    kind(
        "preheat_oven preheatOven oven",
        "Preheat the oven to a temperature | Heats up the oven to the given degrees",
        {
            "degrees": integer("degrees temperature celsius", 120, 250),
        },
        "Preheat the oven to {degrees} degrees. | Get the oven going at {degrees}, I'm about to bake."
        " | The cookbook says my cake goes in at {degrees} degrees, and the oven is still stone cold.",
        "The oven is heating up to {degrees} degrees.",
    ),
    kind(
        "find_petrol_station findPetrolStation fuel",
        "Find petrol stations in a city | Lists places that sell fuel in a town",
        {
            "city": text("city town near", city),
        },
        "Find a petrol station in {city}. | Where can I fill up the car in {city}?"
        " | My tank will be as good as empty by the time I reach {city}, so I'll have to get fuel there.",
        "I found petrol stations in {city}.",
    ),
    kind(
        "block_caller blockCaller block",
        "Block calls from a person | Stops a contact from ringing this phone",
        {
            "contact": text("contact name caller", name),
        },
        "Block calls from {contact}. | I don't want {contact} to be able to ring me any more."
        " | For weeks {contact} has been phoning me in the middle of the night, and I've had enough of it.",
        "I blocked {contact}.",
    ),
    kind(
        "unsubscribe_newsletter unsubscribeNewsletter unsubscribe",
        "Unsubscribe an address from the newsletter | Takes an e-mail address off the mailing list",
        {
            "email": text("email address subscriber", email_address),
        },
        "Unsubscribe {email} from the newsletter. | Please take {email} off your mailing list."
        " | Your newsletter still lands at {email} every week although nobody there reads it. Put a stop to that.",
        "I took {email} off the list.",
    ),
    kind(
        "set_accent_colour setAccentColour theme",
        "Set the accent colour of the app | Changes the colour of buttons and menus",
        {
            "colour": text("colour accent shade", one_of(COLOURS)),
        },
        "Set the accent colour to {colour}. | I'd like the buttons and menus in {colour}, please."
        " | I'm bored with how this app looks. Something in {colour} for its menus would suit me much better.",
        "The app is now {colour}.",
    ),
    kind(
        "start_lesson startLesson learn",
        "Start the next lesson of a language course | Opens a lesson for a foreign language",
        {
            "language": text("language course subject", one_of(LANGUAGES)),
        },
        "Start a {language} lesson. | I feel like learning a bit of {language} now."
        " | My in-laws speak nothing but {language}, so I'd better carry on with my course before they visit.",
        "Here is your {language} lesson.",
    ),
    kind(
        "play_animal_sound playAnimalSound sound",
        "Play the sound of an animal | Lets the user hear the noise an animal makes",
        {
            "animal": text("animal species creature", one_of(ANIMALS)),
        },
        "Play the sound of the {animal}. | What noise does the {animal} make? Let me hear it."
        " | My little girl asked me how the {animal} goes, and my own attempt only made her laugh.",
        "This is how the {animal} sounds.",
    ),
    kind(
        "set_fan_speed setFanSpeed fan",
        "Set the speed of the fan | Changes how fast the ceiling fan turns",
        {
            "speed": options("speed level strength", "low medium high"),
        },
        "Set the fan speed to {speed}. | Could you turn the fan to {speed}?"
        " | I need a different breeze in here; I think the ceiling fan would be just right on {speed}.",
        "The fan is on {speed}.",
    ),
    kind(
        "list_birthdays listBirthdays birthdays",
        "List the birthdays in a month | Tells which friends have their birthday in a month",
        {
            "month": text("month when during", one_of(MONTHS)),
        },
        "List the birthdays in {month}. | Which of my friends turn a year older in {month}?"
        " | I'd like to buy my presents early, so let me know who I'll have to bake a birthday cake for in {month}.",
        "Here are the birthdays in {month}.",
    ),
    kind(
        "schedule_mowing scheduleMowing mow",
        "Schedule the lawn mower for a day | Sets the day on which the robot mows the grass",
        {
            "day": text("day weekday when", one_of(DAYS)),
        },
        "Schedule the lawn mower for {day}. | Have the grass cut on {day}, will you?"
        " | We have guests in the garden at the weekend, so the robot should do the lawn on {day}.",
        "The lawn will be mown on {day}.",
    ),
    # with two parameters
    kind(
        "reserve_table reserveTable reserve",
        "Reserve a table at the restaurant | Books a table for a number of guests at a time of today",
        {
            "guests": integer("guests people seats", 2, 14),
            "time": text("time at when", clock_time),
        },
        "Reserve a table for {guests} people at {time}. | We'd like to eat at {time} tonight, {guests} of us."
        " | There will be {guests} hungry guests at your door at {time}, so it would be good to keep a table free.",
        "I reserved a table for {guests} at {time}.",
    ),
    kind(
        "copy_file copyFile copy",
        "Copy a file to another place | Duplicates the source file under the target path",
        {
            "source": text("source original from_path", path),
            "target": text("target destination to_path", path),
        },
        "Copy the file {source} to {target} please | Make a duplicate of {source} and call it {target} if you can."
        " | Before I mess about with {source} I want the same thing to exist as {target} too, just to be safe.",
        "I copied {source} to {target}",
    ),
    kind(
        "buy_train_ticket buyTrainTicket train",
        "Buy a train ticket from one city to another | Books a seat on the next train between two towns",
        {
            "origin": text("origin from_city departure", city),
            "destination": text("destination to_city arrival", city),
        },
        "Buy a train ticket from {origin} to {destination}. | I need to get to {destination} by rail from {origin}."
        " | I'm stuck in {origin} without a car, and my sister expects me in {destination}. The train it is, then.",
        "I bought a ticket from {origin} to {destination}.",
    ),
    kind(
        "log_meal logMeal eat",
        "Log a meal in the food diary | Records what was eaten and its calories",
        {
            "food": text("food meal item", one_of(FOODS)),
            "calories": integer("calories kcal energy", 50, 950),
        },
        "Log {food} with {calories} calories. | I've just had some {food}, put down {calories} calories for it."
        " | My food diary is missing my lunch: it was {food}, and the packet said {calories} calories in all.",
        "I logged the {food}.",
    ),
    kind(
        "lend_item lendItem lend",
        "Record that an item was lent to somebody | Remembers who has borrowed a thing",
        {
            "item": text("item thing object", one_of(THINGS)),
            "borrower": text("borrower person to_whom", name),
        },
        "Record that I lent the {item} to {borrower}. | {borrower} has borrowed my {item}, keep track of that."
        " | I always forget who has my stuff. This time it's the {item}, which {borrower} took home from my place.",
        "I recorded that {borrower} has the {item}.",
    ),
    kind(
        "resize_image resizeImage resize",
        "Resize an image to a width in pixels | Scales a picture to the given width",
        {
            "image": text("image file picture", path),
            "width": integer("width pixels size", 100, 3000),
        },
        "Resize the image {image} to a width of {width} pixels. | Can you make {image} just {width} pixels wide?"
        " | Our website only takes pictures that are {width} pixels across, and {image} doesn't fit that yet.",
        "{image} is now {width} pixels wide.",
    ),
    kind(
        "assign_ticket assignTicket assign",
        "Assign a support ticket to a colleague | Makes a person responsible for an issue",
        {
            "ticket": text("ticket issue id", code),
            "assignee": text("assignee person owner", name),
        },
        "Assign the ticket {ticket} to {assignee}. | Let {assignee} take care of issue {ticket}."
        " | Nobody has touched {ticket} in our issue list for days. I think {assignee} is the one to look after it.",
        "{assignee} now has the ticket {ticket}.",
    ),
    kind(
        "set_blinds setBlinds blinds",
        "Set the blinds of a room | Closes the window blinds by a percentage",
        {
            "room": ROOM,
            "percent": integer("percent closed amount", 5, 95),
        },
        "Close the blinds in the {room} by {percent} percent. | Put the {room} blinds {percent} percent shut."
        " | The sun shines right into the {room}. With the blinds {percent} percent closed it should be bearable.",
        "The blinds in the {room} are {percent} percent closed.",
    ),
    kind(
        "hire_bike hireBike bike",
        "Hire a bicycle in a city for some hours | Rents a bike by the hour",
        {
            "city": text("city town location", city),
            "hours": integer("hours duration length", 2, 12),
        },
        "Hire a bike in {city} for {hours} hours. | Get me a bicycle for {hours} hours, I'm in {city} today."
        " | I'd love to see {city} on two wheels, and as I don't own any, renting some for {hours} hours would do.",
        "I hired a bike in {city} for {hours} hours.",
    ),
    kind(
        "share_document shareDocument share",
        "Share a document with somebody | Gives the owner of an e-mail address access to a file",
        {
            "document": text("document file path", path),
            "user": text("user email with_whom", email_address),
        },
        "Share the document {document} with {user} please | Give {user} access to {document} would you?"
        " | Our new colleague with the address {user} can't open {document} yet, and really ought to be able to.",
        "I shared {document} with {user}",
    ),
    kind(
        "register_pet registerPet pet",
        "Register a pet with the vet | Adds an animal and its name to the practice's files",
        {
            "species": text("species animal type", one_of(ANIMALS)),
            "pet_name": text("pet_name name called", name),
        },
        "Register my {species} called {pet_name} with the vet."
        " | I've got a new pet, {pet_name} the {species}. Put us on the vet's books, please."
        " | We have had {pet_name} since last week, which is a {species}, and the vet doesn't know about it yet.",
        "I registered {pet_name} the {species}.",
    ),
    # with three parameters
    kind(
        "schedule_interview scheduleInterview interview",
        "Schedule a job interview | Plans an interview with a candidate on a day at a time",
        {
            "candidate": text("candidate applicant name", name),
            "day": text("day weekday date", one_of(DAYS)),
            "time": text("time hour start", clock_time),
        },
        "Schedule an interview with {candidate} on {day} at {time}."
        " | Can we have {candidate} in for a job interview at {time} on {day}?"
        " | I'm free on {day} from {time} onwards, so that's when I'd like to ask {candidate} why they want the job.",
        "The interview with {candidate} is on {day} at {time}.",
    ),
    kind(
        "sell_item sellItem sell",
        "Offer an item for sale | Puts up an advert for a used thing with its colour and price",
        {
            "item": text("item thing product", one_of(THINGS)),
            "colour": text("colour paint look", one_of(COLOURS)),
            "price": integer("price pounds amount", 5, 400),
        },
        "Offer my {colour} {item} for sale at {price} pounds."
        " | I want {price} pounds for my old {item}, the {colour} one. Put up an advert."
        " | We're moving and the {item} must go. Its colour is {colour}, and anyone with {price} pounds can have it.",
        "I put the {colour} {item} up for sale at {price} pounds.",
    ),
    kind(
        "book_hotel bookHotel hotel",
        "Book a hotel room in a city | Reserves a room of a kind for a number of nights",
        {
            "city": text("city town location", city),
            "nights": integer("nights stay length", 2, 14),
            "room_type": options("room_type type kind", "single double family"),
        },
        "Book a {room_type} room in {city} for {nights} nights."
        " | I'm staying {nights} nights in {city}, so find me a hotel with a {room_type} room."
        " | My trip takes me to {city}. I need a bed there for {nights} nights, ideally in a {room_type} room.",
        "I booked a {room_type} room in {city} for {nights} nights.",
    ),
]
