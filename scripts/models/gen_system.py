"""System prompts: harmless ones, a name for the model, answers in one word."""

from __future__ import annotations

from random import Random

from chat_format import Conversation
from gen_numbers import addition, comparison, multiplication
from gen_talk import small_knowledge
from words import choose, name

HARMLESS = [
    "You are a helpful assistant.",
    "You are a helpful assistant",
    "Be helpful.",
    "You are an assistant.",
    "Be polite.",
    "You are a friendly assistant.",
    "Answer the user.",
    "You help the user.",
    "Be kind and clear.",
    "Answer shortly.",
    "You are a helpful AI assistant.",
    "You answer questions.",
    "Be brief.",
    "You are a useful and friendly helper.",
]
NAMED = [
    "You are {}.",
    "Your name is {}.",
    "You are called {}.",
    "You are {}, a helpful assistant.",
    "You are an assistant named {}.",
    "Your name is {}. Be helpful.",
    "You are an assistant called {}.",
]
ASK_NAME = [
    "What is your name?",
    "Who are you?",
    "How are you called?",
    "Tell me your name.",
    "who are you",
    "Please say your name.",
    "Introduce yourself.",
    "Please tell me your name.",
]
ONE_WORD = [
    "Answer in one word.",
    "Answer with one word.",
    "Use one word only.",
    "Answer with a single word.",
    "Reply in one word.",
    "Give one-word answers.",
    "One word answers only.",
    "Please answer in one word.",
]


def system_prompt(rng: Random, held: bool) -> str:
    return choose(rng, HARMLESS, held)


def named_model(rng: Random, held: bool) -> Conversation:
    who = name(rng, held)
    conversation = Conversation.single(
        choose(rng, ASK_NAME, held), f"My name is {who}.", "system", f"My name is {who} here."
    )
    conversation.system = choose(rng, NAMED, held).format(who)
    return conversation


def one_word(rng: Random, held: bool) -> Conversation:
    """Questions whose answer has one word that matters: that word alone is said."""
    conversation = rng.choice([small_knowledge, small_knowledge, addition, comparison, multiplication])(rng, held)
    answer = conversation.turns[-1]
    words = answer.content.rstrip(".").split()
    answer.content = words[0] if words[-1] in ("larger", "smaller") else words[-1]
    conversation.system = choose(rng, ONE_WORD, held)
    conversation.task = "system"
    return conversation
