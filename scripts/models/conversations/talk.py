"""Small talk: greetings, who it is, what it cannot do, feelings, tiny stories, plain ignorance, and system prompts: a
name for the model, answers in one word."""

from random import Random

from conversations.small_tasks import addition, comparison, multiplication
from conversations.template import Conversation
from conversations.words import CITIES, COLOURS, DATA, choose, invented, name, pick, random_words, source, wordings

SOURCE = source("talk")
TALK: list[dict] = SOURCE["small_talk"]
SAID, SYSTEM = wordings("memory"), wordings("system")
UNKNOWN: list[str] = SOURCE["unknown"]
MORE_UNKNOWN = (DATA / "unknown.txt").read_text("utf-8").splitlines()
"""Further templates, for training alone."""
HELD_UNKNOWN = 12
"""So many templates at the end of UNKNOWN are never trained on."""
LIKE_FACTS_SHARE, MORE_SHARE = 0.2, 0.5
"""Shares of unknown questions, in training, in the wording of questions about Daybreak, where only their subject tells,
and of templates that are for training alone."""
BOTH_SHARE = 0.3
"""Share of conversations, in training, where the user tells a name and a liking and asks for one of them."""


def slots(rng: Random, held: bool) -> dict[str, str]:
    """One random entity for every kind of slot."""
    words = random_words(rng, held, "thing animal quality")
    made_up = invented(rng)
    words |= {"invented": made_up, "Invented": made_up.capitalize(), **random_words(rng, held, "country city")}
    words |= {"city2": pick(rng, CITIES, False), "name": name(rng, held), "surname": invented(rng).capitalize()}
    words |= random_words(rng, held, "food field thing2 language nature verb")
    return words | {"colour": rng.choice(COLOURS)}


def small_talk(rng: Random, held: bool) -> Conversation:
    topic = rng.choice(TALK)
    return Conversation.single(choose(rng, topic["questions"], held), rng.choice(topic["answers"]), topic["thought"])


def unknown(rng: Random, held: bool) -> Conversation:
    roll = 1.0 if held else rng.random()
    if roll < LIKE_FACTS_SHARE:
        template = _like_a_fact(rng)
    elif roll < LIKE_FACTS_SHARE + MORE_SHARE:
        template = rng.choice(MORE_UNKNOWN)
    else:
        template = rng.choice(UNKNOWN[-HELD_UNKNOWN:] if held else UNKNOWN[:-HELD_UNKNOWN])
    question = template.format(**slots(rng, held))
    thought = "This is not about Daybreak and no small task. I do not know it."
    return Conversation.single(question, rng.choice(SOURCE["unknown_answers"]), thought)


def _like_a_fact(rng: Random) -> str:
    wrappers, subjects = rng.choice([("how", "deeds"), ("what", "things")])
    while True:
        template = choose(rng, wordings("facts")[wrappers], False).format(rng.choice(wordings("unknown")[subjects]))
        if template not in UNKNOWN[-HELD_UNKNOWN:]:
            return template


def small_knowledge(rng: Random, held: bool) -> Conversation:
    topic = rng.choice(SOURCE["knowledge"])
    key, value = rng.choice(list(topic["table"].items()))
    answer = rng.choice(topic["answers"]).format(k=key, v=value)
    return Conversation.single(choose(rng, topic["questions"], held).format(k=key), answer, f"I know this about {key}.")


def story(rng: Random, held: bool) -> Conversation:
    words = slots(rng, held)
    question = choose(rng, SOURCE["story_questions"], held).format(**words)
    told = rng.choice(SOURCE["stories"]).format(**words)
    return Conversation.single(question, told, f"A short story about the {words['animal']}.")


def _told(rng: Random, held: bool, what: str) -> tuple[str, str, str, str]:
    """What the user says of a name or a liking, what is said to that, how it is asked for, and the answer."""
    if what == "name":
        kind, value = what, name(rng, held)
    else:
        kind = rng.choice(["colour", "animal", "food", "city"])
        value = random_words(rng, held, kind)[kind]
    said, slots = SAID[what], {"kind": kind, "value": value}
    tell, ask = (choose(rng, said[key], held).format(**slots) for key in ("tell", "ask"))
    return tell, said["heard"].format(**slots), ask, said["answer"].format(**slots)


def named_user(rng: Random, held: bool) -> Conversation:
    """The user tells a name or a liking, and asks for it."""
    told = [_told(rng, held, "name" if rng.random() < 0.5 else "liking")]
    if not held and rng.random() < BOTH_SHARE:
        told = [_told(rng, held, "name"), _told(rng, held, "liking")]
        rng.shuffle(told)
    turns = [turn for tell, heard, _, _ in told for turn in Conversation.single(tell, heard).turns]
    if rng.random() < 0.5:
        turns += small_talk(rng, held).turns
        turns[-1].thought = None
    _, _, ask, answer = rng.choice(told)
    follow = Conversation.single(ask, answer, "The user told me that before.")
    return Conversation(turns + follow.turns)


def named_model(rng: Random, held: bool) -> Conversation:
    who = name(rng, held)
    asked = choose(rng, SYSTEM["ask_name"], held)
    conversation = Conversation.single(asked, f"My name is {who}.", f"My name is {who} here.")
    conversation.system = choose(rng, SYSTEM["named"], held).format(who)
    return conversation


def one_word(rng: Random, held: bool) -> Conversation:
    """Questions whose answer has one word that matters: that word alone is said."""
    conversation = rng.choice([small_knowledge, small_knowledge, addition, comparison, multiplication])(rng, held)
    answer = conversation.turns[-1]
    words = answer.content.rstrip(".").split()
    answer.content = words[0] if words[-1] in ("larger", "smaller") else words[-1]
    conversation.system = choose(rng, SYSTEM["one_word"], held)
    return conversation
