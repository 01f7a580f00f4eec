"""How users ask for tools that are made up: {v} and {o} are the deed and its object, {s} is what else they say."""

from __future__ import annotations

BEGINNINGS = (
    "{V} {o} {s}. | {V} the {o} {s}. | Please {v} a {o} {s}. | I want to {v} a {o} {s}. | "
    "Can you {v} the {o} {s}? | {V} {o} {s} | I need you to {v} the {o} {s}. | {v} a {o} {s} | "
    "Let us {v} a {o} {s}. | The {o} {s}: {v} it. | Could you {v} the {o} {s}? | My {o} {s}: please {v} it. | "
    "You should {v} a {o} {s}. | {O} {s} | {O} {s}, please. | I need a {o} {s}. | "
    "It is about the {o}. {V} it {s}. | There is a {o}. Please {v} it {s}. | I want the {o} {s}. | "
    "Would you {v} a {o} {s}? | A {o} {s}, please. | Get the {o} done {s}. | We have a {o} here. {V} it {s}. | "
    "The {o} is waiting. {V} it {s}. | Do it for the {o}: {s} | {s}, please {v} the {o}. | {S}: {v} a {o}. | "
    "I would like the {o} {s} soon. | Is there a way to {v} the {o} {s} today? | Why not {v} a {o} {s} now? | "
    "The {o} {s} is what I want. | Make sure that you {v} the {o} {s} for us. | "
    "Somebody must {v} a {o} {s} again. | Start to {v} the {o} {s}, will you? | {V} me a {o} {s}. | "
    "My wish is a {o} {s}. | It is time to {v} the {o} {s}. | Think of the {o} {s}: it is one to {v}. | "
    "Go and {v} a {o} {s}. | Take care of the {o} {s} and {v} it. | Will you {v} our {o} {s} once more? | "
    "I am going to need the {o} {s}. | Just {v} the {o} {s}, please."
).split(" | ")
LOOK_UPS = (
    "{O} of {s} | What is the {o} of {s}? | Tell me the {o} of {s}. | How is the {o} of {s}? | "
    "What {o} has {s}? | Give me the {o} for {s}. | I want to know the {o} of {s}. | Look up the {o} of {s}. | "
    "{o} for {s} | How many {o}s has {s}? | How much {o} is there in {s}? | Which {o} does {s} have? | "
    "{s}: what is its {o}? | Can you tell me the {o} of {s}? | Show {s} and its {o}. | "
    "What {o} does {s} have? | Find out what {o} {s} has now. | How much {o} does {s} have today? | "
    "I wonder which {o} {s} may have. | Does {s} have a {o}? | Say what {s} has as {o}. | "
    "For {s}, what is the {o}? | Let me know about the {o} that {s} has. | Is the {o} of {s} high? | "
    "My question is the {o} of {s}, please. | {s} and its {o}, please. | Check {s} for its {o}. | "
    "What do you know of the {o} in {s} at present? | The {o} {s} has is what I need."
).split(" | ")
BEFORE_OBJECT = (
    "{V} {b} {o}s. | Please {v} {b} {o}s. | I need {b} {o}s. | {b} {o}s, please. | Can you {v} {b} {o}s? | "
    "{V} {b} {o}s for me. | We must {v} {b} {o}s. | Let us {v} {b} {o}s. | I would like {b} {o}s. | "
    "There shall be {b} {o}s."
).split(" | ")
TO_ONE = (
    "{V} {x}. | {V} the {x}. | Please {v} {x}. | Can you {v} the {x}? | I want to {v} {x}. | {x}: please {v}. | "
    "The {x} is here. {V} it. | It is time to {v} {x}. | {v} {x} | Somebody should {v} the {x}. | "
    "I would like to {v} the {x} now. | Now {v} {x}, will you? | {x} is the one to {v}. | This is about {x}. {V} it. | "
    "{V} {x} please | Do {v} the {x} for me. | We have to {v} {x} today."
).split(" | ")
TO_ONE_WITH = (
    "{V} the {x} {s}. | Please {v} {x} {s}. | {V} {x} {s} | The {x} is waiting. {V} it {s}. | "
    "Can you {v} the {x} {s}? | I have a {x}. {V} it {s}, please. | {S}, {v} the {x}. | I want to {v} the {x} {s}. | "
    "{V} {y} to the {x}. | {V} the {x} some {y}. | {x} needs {y}. {V} it. | {V} {y} for {x}. | {v} {x}, {y} | "
    "The {x} shall have {y}, so {v} it. | {x} and {y}: {v} them. | I {v} the {x} and want {y} for it. | "
    "Here is {x}. {V} it now {s}. | {y} is for the {x}. {V} it."
).split(" | ")
OTHER_VERBS = (
    "bring show teach hand offer serve lend pass deliver cook plant clean call visit invite dress brush cut carry lift "
    "push follow greet warn thank praise treat water heat cool cover wrap tie weigh count name move hire lead drive"
).split()
GET_NAMES = ("get_{}", "{}", "{}_of", "find_{}", "lookup_{}", "read_{}", "fetch{}", "{}_info", "query_{}")
GET_DESCRIPTIONS = (
    "Get the {} | Tells the {} | Looks up a {} | Finds the {} of something | {} by name | How to know the {}"
).split(" | ")
SYNONYMS = (
    "create make build add | book reserve arrange | prepare plan arrange | "
    "delete remove erase drop | find search | get fetch | start begin launch | stop end halt | "
    "check test inspect | change alter modify | fix repair mend | choose pick select | show display | "
    "buy order purchase | "
    "rent hire lease | send post mail | close shut | keep store save | collect gather | mix stir blend | "
    "wash clean rinse"
).split(" | ")
