"""Kinds of tools for training alone, about computers, phone, photos and media. None is asked for in the evaluation."""

from __future__ import annotations

from random import Random

from tool_kind import DAY, PERSON, TIME, ToolKind, number_result, one_of, some_text
from tool_parts import COLOUR, integer, kind, text
from words import ANIMALS, NATURE, THINGS, invented

GADGETS = "laptop phone tablet watch television console router printer camera speaker notebook headset".split()
PARTS = "keyboard mouse microphone headset webcam speaker joystick scanner monitor stylus dongle".split()
SYSTEMS = "Debian Ubuntu Fedora Windows Alpine Gentoo Arch FreeBSD Solaris Mint".split()
APPS = "calculator browser editor player scanner dictionary compass recorder chess atlas game keyboard".split()
DATA = "orders users customers invoices articles members photos logs sales".split()
RIGHTS = "archive wiki database server folder backup dashboard network printer repository intranet vault".split()
FAULTS = "crash freeze flicker noise smoke error leak lag overheating loop".split()


def system(rng: Random, _: bool) -> str:
    return f"{invented(rng)}{rng.choice(['', '-' + invented(rng), str(rng.randint(1, 30))])}"


def image(rng: Random, _: bool) -> str:
    return f"{invented(rng)}.{rng.choice(['png', 'jpg', 'gif', 'webp'])}"


TECH_KINDS: list[ToolKind] = [
    kind(
        "grant_access grantAccess allow access_right auth.grant",
        "Grant a user access to something | Gives a user a right | Lets a person use a system",
        {"user": text("user account person who", PERSON.value), "to": text("to resource system what", one_of(RIGHTS))},
        "Grant {user} access to the {to}. | {user} cannot open the {to}: no permission. | Let {user} use the {to}. | "
        "{user} gets the message 'access denied' at the {to}. Change that. | The {to} should be open for {user}. | "
        "Give the user {user} rights on the {to}. | {user} needs permission for the {to}. | allow {user}: {to} | "
        "For her job, {user} must be able to use the {to}. | Access to the {to} is what {user} lacks.",
        "{user} may use the {to}.",
    ),
    kind(
        "install_app installApp app_on setup device.install",
        "Install an app on a device | Puts a program onto a device",
        {
            "device": text("device on machine gadget", one_of(GADGETS)),
            "app": text("app program software", one_of(APPS)),
        },
        "Install the {app} on my {device}. | My {device} has no {app} app. Put one on it. | Put a {app} app on the "
        "{device}. | The {device} is new and empty. I want the {app} app there. | I need the {app} program on this "
        "{device}. | The {app} app should run on the {device}. | Can I have a {app} app on my {device}? | app {app}, "
        "{device} | Download the {app} and set it up on the {device}. | What my {device} lacks is a {app} app.",
        "The {app} is on the {device}.",
    ),
    kind(
        "cast_film castTo cast stream_to tv.cast",
        "Show a film on a screen | Sends a film to a television | Streams a film to a device",
        {"screen": text("screen on device tv", one_of(GADGETS)), "film": text("film movie video what", some_text)},
        "Show the film {film} on the {screen}. | Cast the movie {film} to my {screen}. | My {screen} should show "
        "{film}. | We want to see a film on the {screen}: {film} | Stream {film} to the {screen}. | The {screen} is "
        "free. Let us watch {film}. | It is movie night. On the {screen} we watch {film}. | Can the {screen} play the "
        "film {film}? | I am bored and want to watch {film} on my {screen}.",
        "{film} runs on the {screen}.",
    ),
    kind(
        "pair_device pairDevice connect bluetooth.pair link_up",
        "Connect an accessory with a device | Pairs two devices without a cable",
        {"device": text("device host with", one_of(GADGETS)), "part": text("accessory part peripheral", one_of(PARTS))},
        "Connect the {part} to my {device}. | Pair the {device} with the {part}. | My {device} does not find the "
        "{part}. | The {device} has a poor sound and image. Connect a {part} to it. | Let the {part} work with my "
        "{device}. | I have a new {part} and want to use it with the {device}. | bluetooth: {part} to {device} | Why "
        "does the {device} not see my {part}? Pair them. | Link my {device} and this {part}.",
        "The {part} works with the {device}.",
    ),
    kind(
        "show_photo showPicture photo_for album.show gallery",
        "Show somebody a photo of something | Opens a photo from the album for a person",
        {
            "viewer": text("viewer person to who", PERSON.value),
            "subject": text("subject photo of", one_of(ANIMALS + NATURE)),
        },
        "Show {viewer} the photo of the {subject}. | {viewer} wants to look at my photo of the {subject}. | {viewer} "
        "has never seen our {subject}. Show her the picture from the album. | The photo with the {subject} would "
        "please {viewer}. Open it for him. | Let {viewer} look at the {subject} photo. | In my album there is a photo "
        "of a {subject}. {viewer} should see it. | photo {subject}, for {viewer} | Do I have a {subject} in my album? "
        "Show {viewer} the picture. | The {subject} snapshot is for {viewer} to look at.",
        "{viewer} looks at the {subject}.",
    ),
    kind(
        "set_wallpaper wallpaper background setBackground desktop.background",
        "Set the picture behind everything on a device | Changes the background of a screen",
        {
            "device": text("device screen gadget", one_of(GADGETS)),
            "picture": text("picture image of", one_of(ANIMALS + THINGS)),
        },
        "Make a {picture} the background of my {device}. | I am tired of the background of my {device}. Take a "
        "{picture}. | I want to see a {picture} behind the icons of my {device}. | Set the {device} wallpaper to a "
        "{picture}. | Let the wallpaper be a {picture} on the {device}. | The screen of my {device} looks dull. A "
        "{picture} as wallpaper! | wallpaper {device} {picture} | Can my {device} have a {picture} as its background? "
        "| A {picture} would look nice behind everything on the {device}.",
        "The {device} shows a {picture}.",
    ),
    kind(
        "mount_disk mountDisk attach_volume add_storage server.mount",
        "Attach a disk to a server | Gives a server more storage | Mounts a volume",
        {"server": text("server host machine to", system), "disk": text("disk volume storage drive", system)},
        "Attach disk {disk} to server {server}. | The server {server} is full. Give it the disk {disk}. | "
        "Mount the volume {disk} on {server}. | {server} needs more storage. Attach volume {disk}. | "
        "Disk {disk} belongs into the server {server}. | Let the server {server} use the drive {disk}. | "
        "There is no space left on server {server}. The disk {disk} is free, so mount it. | "
        "The drive {disk} should be in {server}. | On the host {server}, mount drive {disk}.",
        "{server} has the disk {disk}.",
    ),
    kind(
        "report_bug reportBug bug open_ticket tickets.open",
        "Report a fault of a program or device | Opens a ticket for the support",
        {
            "thing": text("program device component", one_of(GADGETS + APPS)),
            "fault": text("fault problem bug", one_of(FAULTS)),
        },
        "Report a {fault} of the {thing}. | My {thing} has a {fault}. Tell the support. | There is a {fault} in the "
        "{thing}. | Open a ticket for the {thing}: {fault} | The support should look at my {thing}. It shows a "
        "{fault}. | bug: {thing}, {fault} | Every day the same {fault} with this {thing}! | The {thing} does not work "
        "right. It is a {fault}. | A {fault} again! The support must know about the {thing}.",
        "The {fault} of the {thing} is reported.",
    ),
    kind(
        "start_machines startMachines vm cloud.start launch_servers",
        "Start virtual machines with a system | Launches servers in the cloud",
        {"machines": integer("machines count n", 2, 60), "system": text("system os image", one_of(SYSTEMS))},
        "Start {machines} {system} machines. | I want {machines} {system} machines. | {machines} virtual machines with "
        "{system} | We need more power in the cloud: {machines} {system} machines. | Virtual machines: {system}, "
        "{machines} of them | Our test needs {system} machines. Launch {machines}. | Can I have virtual machines with "
        "{system}? {machines}, please. | Let {machines} machines boot {system} in the cloud.",
        "{machines} {system} machines run.",
    ),
    kind(
        "make_icons icons drawIcons design.icons symbols",
        "Make icons of a colour | Designs small symbols for an app",
        {"icons": integer("icons count number", 2, 80), "colour": COLOUR},
        "Make {icons} {colour} icons. | {icons} icons in {colour} | I want {icons} {colour} icons for my app. | "
        "My app looks plain. It should have {icons} {colour} icons. | Icons, all {colour}, {icons} of them | "
        "The icons should be {colour}. Design {icons}. | Could you design {colour} icons? I need {icons}. | "
        "For the buttons of my page I need {icons} symbols in {colour}.",
        "{icons} {colour} icons are made.",
    ),
    kind(
        "backup_database backupDb dump db.backup save_copy",
        "Make a safe copy of a database at a time | Backs data up",
        {"database": text("database db data", one_of(DATA)), "time": TIME},
        "Back up the {database} database at {time}. | Make a safe copy of the {database} at {time}. | "
        "backup {database} {time} | We must not lose the {database}. Copy the database at {time}. | "
        "At {time}, back up the {database}. | Nobody works at {time}, so let the backup of the {database} run then. | "
        "Is there a backup of {database}? Run one at {time}. | The backup of our {database} starts at {time}.",
        "The {database} are backed up at {time}.",
    ),
    kind(
        "schedule_update updateAt upgrade update_later device.update",
        "Update the software of a device at a time | Plans an upgrade",
        {"device": text("device machine what", one_of(GADGETS)), "time": TIME},
        "Update the {device} at {time}. | The software of my {device} is old. Update it at {time}. | "
        "Upgrade my {device} at {time}. | At {time} the {device} may update itself. | My {device} asks for an update. "
        "It may run at {time}. | There is a new system for the {device}. Install the update at {time}. | "
        "update {time}, {device} | Can the update of the {device} wait until {time}?",
        "The {device} is updated at {time}.",
    ),
    kind(
        "record_show recordShow tape recorder tv.record",
        "Record a show on a day | Keeps a programme of the television to watch it later",
        {"show": text("show programme series title", some_text), "day": DAY},
        "I am away and miss the show {show} on {day}. | Record the series {show} on {day}. | "
        "On {day} they show {show}. Record it. | Keep the programme {show} of {day} for me. | "
        "I want to watch {show} later. It comes on TV on {day}. | tv {day}: record {show} | "
        "Can you tape {show} on {day}? | I cannot sit before the TV on {day}. Tape {show} for me.",
        "{show} is recorded on {day}.",
    ),
    kind(
        "disk_space diskSpace free_space df storage.free",
        "How much room is left on a server | The free space of a disk",
        {"server": text("server host machine name", system)},
        "Is there room left on {server}? | How full is {server}? | Disk space of {server} | How many gigabytes are "
        "free on {server}? | I want to store a large film on {server}. Does it fit? | How much storage does {server} "
        "still have? | Will {server} be full soon? | Tell me the free space on {server}.",
        "There are {free} GB free on {server}.",
        number_result("free", 1, 900),
    ),
    kind(
        "battery_level battery batteryOf charge_state device.battery",
        "How full the battery of a device is | Tells how much charge is left",
        {"device": text("device gadget name", one_of(GADGETS))},
        "How full is the battery of my {device}? | Battery of the {device} | Must I charge my {device}? | Will the "
        "{device} last until the evening without a plug? | How much charge has the {device}? | Does my {device} need "
        "the charger? | How many percent of battery are in the {device}? | My {device} may go dead soon. Check it.",
        "The {device} has {charge} percent.",
        number_result("charge", 1, 100),
    ),
    kind(
        "version_of programVersion version release_of pkg.version",
        "Which version of a program is installed | The release of a package",
        {"program": text("program package software name", system)},
        "Which version of {program} do we have? | Version of {program} | Is {program} up to date? | "
        "How new is our {program}? | What release of {program} is installed? | Do I have the newest {program}? | "
        "{program} --version | I wonder whether {program} is out of date.",
        "{program} has version {version}.",
        number_result("version", 1, 40),
    ),
    kind(
        "port_owner portOwner who_listens listener net.port",
        "Which program uses a port | What listens on a port",
        {"port": integer("port number port_number", 20, 65000)},
        "What runs on port {port}? | Which program uses port {port}? | Port {port} is taken. By whom? | "
        "Who listens on {port}? | Is port {port} free? | I cannot bind to port {port}. What holds it? | "
        "Find the process on port {port}. | port {port}",
        "Port {port} is used by {program}.",
        lambda rng: {"program": invented(rng)},
    ),
    kind(
        "rotate_photo rotateImage rotate turn_picture photo.rotate",
        "Turn a picture by some degrees | Rotates an image",
        {"photo": text("photo image path file", image), "degrees": integer("degrees angle by", 1, 359)},
        "Turn the picture {photo} by {degrees} degrees. | {photo} lies on its side. Turn it {degrees} degrees. | "
        "Rotate {photo}, {degrees} degrees. | The image {photo} is askew by {degrees} degrees. Set it straight. | "
        "{degrees} degrees to the right with {photo} | I hold my head to the side to see {photo}. Turn it by "
        "{degrees}. | Can you rotate {photo} by {degrees} degrees? | By {degrees} degrees, turn the photo {photo}.",
        "{photo} is turned by {degrees} degrees.",
    ),
    kind(
        "limit_memory memoryLimit cap_memory max_ram process.limit",
        "Limit the memory of a process | Sets how many megabytes a program may use",
        {"process": text("process program name", system), "megabytes": integer("megabytes mb memory", 16, 9000)},
        "Limit {process} to {megabytes} megabytes of memory. | {process} eats all the memory. "
        "Give it {megabytes} MB and no more. | {process} may use {megabytes} MB of RAM. | The memory of {process}: "
        "at most {megabytes} MB | {megabytes} MB of memory are enough for {process}. | "
        "Do not let {process} take more than {megabytes} MB. | Because of {process} the RAM is full. "
        "Cap it at {megabytes} MB. | Can {process} live with {megabytes} MB of memory?",
        "{process} may use {megabytes} MB.",
    ),
    kind(
        "reset_password resetPassword forgot_password new_login auth.reset",
        "Give a user a new password | Helps a user who cannot log in",
        {"user": text("user account login name", PERSON.value)},
        "{user} cannot log in any more. | {user} has forgotten the password. | Reset the password of {user}. | A new "
        "password for {user}, please. | {user} typed the wrong password too often. | The login of {user} does not "
        "work. | password reset: {user} | Why can {user} not sign in? The password must be new.",
        "{user} has a new password.",
    ),
]
