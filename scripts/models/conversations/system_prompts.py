"""System prompts: harmless ones, a name for the model, answers in one word."""

from random import Random

from conversations.number_tasks import addition, comparison, multiplication
from conversations.talk import small_knowledge
from conversations.template import Conversation
from conversations.words import choose, name, wordings

SAID = wordings("system")


def system_prompt(rng: Random, held: bool) -> str:
    """One that changes nothing."""
    return choose(rng, SAID["harmless"], held)


def named_model(rng: Random, held: bool) -> Conversation:
    who = name(rng, held)
    asked = choose(rng, SAID["ask_name"], held)
    conversation = Conversation.single(asked, f"My name is {who}.", "system", f"My name is {who} here.")
    conversation.system = choose(rng, SAID["named"], held).format(who)
    return conversation


def one_word(rng: Random, held: bool) -> Conversation:
    """Questions whose answer has one word that matters: that word alone is said."""
    conversation = rng.choice([small_knowledge, small_knowledge, addition, comparison, multiplication])(rng, held)
    answer = conversation.turns[-1]
    words = answer.content.rstrip(".").split()
    answer.content = words[0] if words[-1] in ("larger", "smaller") else words[-1]
    conversation.system = choose(rng, SAID["one_word"], held)
    conversation.task = "system"
    return conversation
