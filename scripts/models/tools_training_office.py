"""Kinds of tools for training alone, about office, school, people and documents. The evaluation asks for none."""

from __future__ import annotations

from tool_kind import DAY, PERSON, ToolKind, number_result, one_of, some_text
from tool_parts import COLOUR, integer, kind, path, text
from words import FIELDS, invented

STAFF = "clerk manager secretary trainee director accountant cook guard driver nurse engineer editor lawyer".split()
PUPILS = "pupil student girl boy class beginner winner runner choir team youngest freshman".split()
PRIZES = "medal cup trophy ribbon crown certificate diploma badge scholarship wreath plaque".split()
DEVICES = "laptop phone tablet headset monitor printer scanner keyboard camera projector microphone".split()
PLACES = "archive cellar vault kitchen storeroom office garage library laboratory attic lobby".split()
REASONS = "flu fever measles holiday wedding accident strike headache dentist funeral cough".split()
PAPER_STUFF = "leather paper plastic cardboard linen felt cork metal".split()

OFFICE_KINDS: list[ToolKind] = [
    kind(
        "lend_book lendBook library_loan checkout library.lend",
        "Lend a reader a book | The library gives a book out | Enters the loan of a book",
        {"reader": text("reader member borrower to", PERSON.value), "book": text("book title volume", some_text)},
        "Lend {reader} the book {book}. | {reader} wants to read {book} at home. She may take it from the library. | "
        "{reader} came to the library for {book}. | The book {book} goes out to {reader}. | Library: "
        "{book} for {reader} | Enter in the library that {reader} took {book}. | The reader {reader} borrows {book}. | "
        "Can {reader} borrow the novel {book}? | {reader} has a library card and asks for {book}.",
        "{reader} has borrowed {book}.",
    ),
    kind(
        "award_prize givePrize award honour school.award",
        "Award a prize to somebody | Honours a winner | Gives a medal or cup for something done well",
        {"winner": text("winner pupil to who", one_of(PUPILS)), "prize": text("prize award trophy", one_of(PRIZES))},
        "Award the {winner} a {prize}. | The {winner} did best of all. Give her a {prize}. | The {prize} goes to the "
        "{winner}, who won. | For such good work the {winner} has earned a {prize}. | The {winner} came first. Honour "
        "him with the {prize}. | A {prize} is what the brave {winner} deserves. | The jury chose the {winner}. Hand "
        "over the {prize}. | prize for {winner}: {prize} | Who gets the {prize}? The {winner} has won it.",
        "The {winner} has won the {prize}.",
    ),
    kind(
        "set_homework giveHomework homework exercise_for school.homework",
        "Give pupils homework in a subject | Sets exercises to do at home",
        {
            "class": text("class pupil group student", one_of(PUPILS)),
            "subject": text("subject field in", one_of(FIELDS)),
        },
        "Give the {class} homework in {subject}. | The {class} should practise {subject} at home. | Homework for the "
        "{class}: {subject} | The {class} knows too little of {subject}. Some homework would help. | The {class} has "
        "nothing to do after school. Set her exercises in {subject}. | Let the {class} do {subject} exercises at home. "
        "| In {subject}, the {class} gets homework. | Does the {class} have homework? If not, give some in {subject}.",
        "The {class} has homework in {subject}.",
    ),
    kind(
        "promote raiseTo promotion new_role hr.promote",
        "Promote an employee to a position | Gives somebody a higher position in the firm",
        {"employee": text("employee person who", PERSON.value), "role": text("role position job to", one_of(STAFF))},
        "Promote {employee} to {role}. | {employee} has worked hard for years. Make her {role}. | "
        "From now on {employee} is our {role}. | We need a new {role}. It will be {employee}. | "
        "The position of {role} goes to {employee}. | {employee} should rise to {role}. | "
        "Let {employee} be the {role} of this firm. | Could {employee} become {role}? | promotion: {employee}, {role}",
        "{employee} is {role} now.",
    ),
    kind(
        "issue_device issueDevice equip hardware_for it.issue",
        "Give an employee a device to work with | Equips a workplace | Issues hardware to the staff",
        {
            "employee": text("employee user staff for", one_of(STAFF)),
            "device": text("device hardware item", one_of(DEVICES)),
        },
        "Issue a {device} to the {employee} for work. | The {employee} has nothing to work with. Equip him with a "
        "{device}. | The {employee} starts work here and gets a {device}. | A {device} is what the {employee} needs on "
        "the desk. | Equip the {employee} with a {device}. | How can the {employee} work without a {device}? Give her "
        "one. | The old one of the {employee} broke. From the firm he gets another {device}. | hardware {device}, for "
        "{employee} | The {device} in the store is for the new {employee}.",
        "The {employee} has a {device}.",
    ),
    kind(
        "hand_key giveKey key keyFor doors.key",
        "Hand somebody the key to a room | Lets a person into a locked room",
        {"person": text("person holder who staff", one_of(STAFF)), "room": text("room door place", one_of(PLACES))},
        "Hand the {person} the key to the {room}. | The {person} stands before the locked {room}. Give him the key. | "
        "The {person} cannot get into the {room}. | Let the {person} have the {room} key. | The {room} is locked, and "
        "the {person} has to go in. | A key to the {room} for the {person}, please. | The {person} works in the {room} "
        "from now on and needs a key. | key {room}: {person} | May the {person} unlock the {room}? Give her the key.",
        "The {person} has the key to the {room}.",
    ),
    kind(
        "assign_project putOnProject staffing join_project project.assign",
        "Put an employee on a project | Says who works on which project",
        {"employee": text("employee member who", PERSON.value), "project": text("project team work", some_text)},
        "Put {employee} on the project {project}. | {employee} joins the project {project}. | The project {project} is "
        "short of people. {employee} can help. | Let {employee} work on project {project}. | {employee} has no "
        "project. Let her do {project}. | Who could join {project}? I think of {employee}. | Assign {employee} to the "
        "project {project}. | The team of {project} gets {employee}. | project {project} + {employee}",
        "{employee} works on {project}.",
    ),
    kind(
        "share_document shareDocument let_see docs.share",
        "Let a person see a document | Shares a document with somebody",
        {"person": text("person with viewer who", PERSON.value), "document": text("document doc path", path)},
        "Share {document} with {person}. | Let {person} see {document}. | {person} has not seen {document} yet. "
        "Share it. | The document {document} should be open to {person}. | {person} has to look through {document}. | "
        "Make {document} visible for {person}. | May {person} look into {document}? | I wrote {document}, "
        "and {person} wants a look at it. | share: {person}, {document}",
        "{person} can see {document}.",
    ),
    kind(
        "set_mentor mentor guide_newcomer pairWith team.mentor",
        "Give a newcomer a mentor | Says who guides a new colleague",
        {
            "newcomer": text("newcomer trainee mentee", PERSON.value),
            "mentor": text("mentor guide coach by", PERSON.value),
        },
        "{mentor} shall be the mentor of {newcomer}. | {newcomer} is new here. Let {mentor} guide her. | The mentor of "
        "{newcomer} is {mentor}. | {newcomer} does not know her way around yet. {mentor} can show her. | Make {mentor} "
        "the mentor of our newcomer {newcomer}. | Our trainee {newcomer} learns from {mentor}. | {newcomer} started "
        "today and is lost. {mentor} takes care of him. | Give our trainee {newcomer} the mentor {mentor}.",
        "{mentor} guides {newcomer}.",
    ),
    kind(
        "print_copies printDocument copies copier.print",
        "Print copies of a document | Puts a document on paper, so many times",
        {"document": text("document path what", path), "copies": integer("copies count times", 2, 200)},
        "Print {copies} copies of {document}. | I need {document} on paper, {copies} times. | {document}, "
        "{copies} copies | Everyone in the meeting should hold {document} in hand. Print it {copies} times. | "
        "{copies} printouts of {document}, please. | Put {document} through the printer. I want {copies} copies. | "
        "Can I have {document} on paper? {copies} copies will do. | The printer should make {copies} of {document}.",
        "{copies} copies of {document} are printed.",
    ),
    kind(
        "make_badges nameBadges badges lanyards event.badges",
        "Make name badges of a colour | Badges to pin on, so many",
        {"badges": integer("badges count number", 2, 400), "colour": COLOUR},
        "Make {badges} {colour} badges. | {badges} name badges in {colour} | We need {badges} {colour} badges. | "
        "Nobody knows the names of our guests. {badges} {colour} badges, please. | Badges: {colour}, {badges} pieces | "
        "I want the badges to be {colour}. Make {badges}. | Could you make {colour} badges to pin on? "
        "{badges} of them. | At the congress everyone wears a {colour} badge. That makes {badges}.",
        "{badges} {colour} badges are ready.",
    ),
    kind(
        "get_folders folders binders ringBinders supplies.folders",
        "Get folders of a material for the office | Binders to file papers in",
        {"folders": integer("folders count n", 2, 90), "material": text("material of kind", one_of(PAPER_STUFF))},
        "Get {folders} {material} folders. | {folders} folders made of {material} | I want {folders} {material} "
        "folders. | My papers lie about. I need {folders} {material} folders to file them. | Folders, {material}, "
        "{folders} of them | The archive has run out of {material} folders. Get {folders}. | Can we have folders of "
        "{material}? {folders} are enough. | To file all this we need {material} binders, {folders} in number.",
        "{folders} {material} folders are here.",
    ),
    kind(
        "grade_of gradeOf mark exam_result school.grade",
        "Which grade a pupil got | The result of an exam | How well a pupil did",
        {"pupil": text("pupil student name", PERSON.value)},
        "How did {pupil} do in the exam? | What grade did {pupil} get? | Grade of {pupil} | "
        "Has {pupil} passed the test? | Is {pupil} a good pupil? Look at the marks. | I am the father of {pupil}. "
        "How was her exam? | Did {pupil} fail at school? | Tell me which mark {pupil} has. | exam result {pupil}",
        "{pupil} has got grade {grade}.",
        number_result("grade", 1, 6),
    ),
    kind(
        "desk_of deskOf seat_in_office whereSits office.desk",
        "Where in the office an employee sits | Finds somebody's desk",
        {"employee": text("employee colleague name", PERSON.value)},
        "Where does {employee} sit? | Desk of {employee} | In which room can I find {employee}? | I must hand "
        "{employee} something and do not know the desk. | Which desk belongs to {employee}? | Where in the office is "
        "{employee}? | I am looking for the workplace of {employee}. | On what floor does {employee} work?",
        "{employee} sits at desk {desk}.",
        number_result("desk", 1, 300),
    ),
    kind(
        "author_of whoWrote author writer book.author",
        "Who wrote a book | The author of a book",
        {"book": text("book title novel work", some_text)},
        "Who wrote {book}? | Author of {book} | Whose book is {book}? | By whom is the novel {book}? | "
        "I read {book} and want to know the writer. | What is the name of the author of {book}? | "
        "Which writer made the book {book}? | Tell me who the novel {book} is by.",
        "{book} is by {author}.",
        lambda rng: {"author": invented(rng).capitalize()},
    ),
    kind(
        "reserve_equipment equipment bookDevice borrow_device av.reserve",
        "Reserve a device of the office for a day | Books equipment",
        {"device": text("device equipment item", one_of(DEVICES)), "day": DAY},
        "Reserve the {device} for {day}. | I give a talk on {day} and need the {device}. | On {day} the {device} is "
        "mine. | Keep the {device} free for me on {day}. | {device}, {day} | Nobody else may use the {device} on "
        "{day}. | Is the {device} free on {day}? I would like to use it. | For my talk, the {device} on {day}, please.",
        "The {device} is yours on {day}.",
    ),
    kind(
        "set_shift shift roster dutyOn staff.shift",
        "Say who works on a day | Puts an employee on the roster",
        {"worker": text("worker employee staff who", one_of(STAFF)), "day": DAY},
        "The {worker} works on {day}. | Put the {worker} on the roster for {day}. | On {day} the {worker} is on duty. "
        "| {day}: shift of the {worker} | We are short of staff on {day}. Let the {worker} come in. | Who works on "
        "{day}? The {worker} does. | The {worker} has the shift of {day}. | The {worker} must come to work on {day}.",
        "The {worker} works on {day}.",
    ),
    kind(
        "extend_deadline extendDeadline more_time postpone deadline.move",
        "Give more time for a piece of work | Moves a deadline to another day",
        {"work": text("work paper task what", some_text), "day": text("until to due", DAY.value)},
        "I cannot finish {work} in time. Give me until {day}. | Move the deadline of {work} to {day}. | "
        "{work} takes longer. Make it due on {day}. | Could I hand in {work} on {day} instead? | "
        "Until {day} is what I need to finish {work}. | New deadline, {day}: {work} | "
        "We are late with {work}. {day} would do. | Let {work} be due on {day} and no sooner.",
        "There is time until {day} for {work}.",
    ),
    kind(
        "mark_absent absent excuse reportAbsence school.absent",
        "Enter that somebody is absent and why | Excuses a pupil from school",
        {"pupil": text("pupil person who", PERSON.value), "reason": text("reason because why", one_of(REASONS))},
        "{pupil} is absent because of {reason}. | {pupil} cannot come to school. The reason is {reason}. | "
        "Excuse {pupil}: {reason} | Because of {reason}, {pupil} is missing in class. | The seat of {pupil} is empty: "
        "{reason} | {reason} keeps {pupil} away from school. | Why is {pupil} not in class? It is the {reason}. | "
        "absent {pupil}, {reason} | My daughter {pupil} stays at home with {reason}.",
        "{pupil} is excused.",
    ),
    kind(
        "count_words wordCount length_of_text words_in docs.length",
        "How many words a document has | The length of a text",
        {"document": text("document path doc", path)},
        "How many words has {document}? | How long is the document {document}? | Word count of {document} | "
        "Is {document} too long? Count the words. | I may write so many words only. What has {document} got? | "
        "Count the words in {document}. | How much text is in {document}? | {document}: number of words",
        "{document} has {words} words.",
        number_result("words", 10, 9999),
    ),
]
