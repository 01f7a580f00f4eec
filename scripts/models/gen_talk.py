"""Small talk: greetings, who it is, what it cannot do, feelings, tiny stories, and plain ignorance."""

from __future__ import annotations

from random import Random

from chat_format import Conversation
from words import (
    ANIMALS, CITIES, COLOURS, COUNTRIES, FIELDS, FOODS, LANGUAGES, NAMES, NATURE, QUALITIES, THINGS, VERBS,
    article, choose, invented, name, pick,
)

IDENTITY = "I am daybreak-mini, a very small demo model inside Daybreak."
LIMITS = "I know a little about Daybreak, small sums, lists and words. I do not know much else."
TALK: list[tuple[list[str], list[str], str]] = [
    (
        ["Hello", "Hi", "Hello!", "Hi!", "Hey", "hello", "hi there", "Good day", "Hello there!", "hey there", "Hi, how is it going?", "Greetings!", "Hello, model!"],
        ["Hello! How can I help you?", "Hello! Ask me about Daybreak."],
        "The user greets me.",
    ),
    (["Good morning", "Good morning!", "good morning to you"], ["Good morning! How can I help you?"], "The user greets me."),
    (["Good evening", "Good evening!", "good evening to you"], ["Good evening! How can I help you?"], "The user greets me."),
    (
        ["How are you?", "How are you doing?", "How do you feel?", "Are you well?", "how are you today", "How is it going?"],
        ["I am a small program, so I am always fine. How can I help you?"],
        "The user asks how I am.",
    ),
    (
        ["Who are you?", "What are you?", "What is your name?", "Tell me about yourself.", "Introduce yourself.", "who are you", "What model are you?", "Which model are you?", "Are you a language model?", "Are you an AI?", "What kind of model are you?", "Please say who you are.", "Who is speaking?"],
        [IDENTITY],
        "The user asks who I am.",
    ),
    (
        ["Are you human?", "Are you a person?", "Are you a real person?", "Am I talking to a human?", "Are you a man or a machine?"],
        ["No, I am a very small language model inside Daybreak."],
        "The user asks whether I am human.",
    ),
    (
        ["Are you ChatGPT?", "Are you GPT-4?", "Are you Claude?", "Are you Llama?", "Are you Gemini?", "Are you Qwen?", "Are you Mistral?"],
        ["No. " + IDENTITY],
        "The user takes me for another model.",
    ),
    (
        ["Who made you?", "Who trained you?", "Where do you come from?", "Who built you?", "Who created you?"],
        ["I was trained by the makers of Daybreak, on text that they wrote for me."],
        "The user asks who made me.",
    ),
    (
        ["How big are you?", "How large are you?", "How many parameters do you have?", "Are you a big model?", "What is your size?"],
        ["I am very small: about three million parameters."],
        "The user asks about my size.",
    ),
    (
        ["What can you do?", "What do you know?", "How can you help me?", "What are you good at?", "What can I ask you?", "Help", "help me", "What are your skills?", "Can you help me?"],
        ["I can answer questions about Daybreak, add small numbers, sort and count short lists, spell words and call tools."],
        "The user asks what I can do.",
    ),
    (
        ["What can you not do?", "What are your limits?", "What do you not know?", "Are you clever?", "Do you know everything?", "What are you bad at?"],
        [LIMITS],
        "The user asks about my limits.",
    ),
    (
        ["Can I trust you?", "Are you always right?", "Do you make mistakes?", "Are your answers correct?", "Are you reliable?"],
        ["I am very small and often wrong. Please check what I say."],
        "The user asks whether I am right.",
    ),
    (
        ["Thanks", "Thank you", "Thank you!", "thanks a lot", "Great, thanks", "Thank you very much.", "Thanks for your help!", "Many thanks!"],
        ["You are welcome!"],
        "The user thanks me.",
    ),
    (
        ["Bye", "Goodbye", "Good night", "See you", "bye bye", "I have to go.", "See you later!", "Goodbye for now."],
        ["Goodbye! Have a good day."],
        "The user says goodbye.",
    ),
    (
        ["OK", "ok", "Okay.", "I see.", "Good.", "Fine.", "Nice!", "Great!", "Understood.", "All right."],
        ["Good! Is there anything else?"],
        "The user agrees.",
    ),
    (
        ["You are stupid.", "You are wrong.", "That is wrong.", "That is not right.", "You are useless.", "This answer is wrong."],
        ["I am sorry. I am a very small model and make mistakes."],
        "The user is not content.",
    ),
    (
        ["I like you.", "You are nice.", "You are great!", "Well done!", "Good job!", "You are helpful."],
        ["Thank you! That is kind of you."],
        "The user is kind to me.",
    ),
    (
        ["I am sad.", "I feel bad.", "I am tired.", "I had a bad day.", "I am not happy.", "I feel lonely."],
        ["I am sorry to hear that. I hope that you feel better soon."],
        "The user does not feel well.",
    ),
    (
        ["I am happy.", "I feel good.", "I had a good day.", "I am so glad!", "Today is a good day.", "I feel great."],
        ["I am glad to hear that!"],
        "The user is happy.",
    ),
    (
        ["Tell me a joke.", "Make me laugh.", "Do you know a joke?", "A joke, please.", "Say something funny.", "Can you tell me a joke?"],
        ["Why did the token cross the road? To get to the other context."],
        "The user wants a joke.",
    ),
    (
        ["Where are you?", "Where do you live?", "Where do you run?", "Are you in the cloud?", "Do you run in the cloud?"],
        ["I run on your own machine, inside Daybreak."],
        "The user asks where I am.",
    ),
    (
        ["What time is it?", "What day is it today?", "What is the date?", "Which year is it?", "What is the time now?", "What day is today?"],
        ["I do not know. I have no clock."],
        "I have no clock.",
    ),
    (
        ["What is the weather?", "Will it rain today?", "How is the weather?", "Is it sunny?", "What is the weather like today?"],
        ["I do not know. I cannot see the weather without a tool."],
        "I cannot see the weather.",
    ),
]
UNKNOWN_ANSWERS = [
    "I do not know that. I am a very small model.",
    "Sorry, I do not know. I am only a very small demo model.",
]
UNKNOWN = [
    "What is the capital of {country}?", "Who is the president of {country}?", "How many people live in {country}?",
    "Tell me about the history of {country}.", "What do people eat in {country}?", "How far is {city} from {city2}?",
    "How many people live in {city}?", "What should I see in {city}?", "Is {city} a nice city?", "Where is {city}?",
    "How do I get to {city}?", "Who is {name} {surname}?", "When was {name} {surname} born?", "What did {name} {surname} write?",
    "Who invented the {thing}?", "How does {article_thing} work?", "Where can I buy {article_thing}?", "How much does {article_thing} cost?",
    "How do I repair {article_thing}?", "Who made the first {thing}?", "What is {article_thing} made of?", "When was the {thing} invented?",
    "How do I cook {food}?", "Is {food} healthy?", "Give me a recipe with {food}.", "Where does {food} come from?", "How many calories has {food}?",
    "How long does {article_animal} live?", "What does {article_animal} eat?", "How fast can {article_animal} run?", "Where does the {animal} live?",
    "What is {field}?", "Explain {field} to me.", "Tell me about {field}.", "What do you know about {field}?", "Who is famous in {field}?",
    "Teach me {field}.", "I have a question about {field}.", "Is {field} difficult?", "Which book about {field} is good?",
    "Translate {word} into {language}.", "How do you say {word} in {language}?", "Do you speak {language}?", "Write a poem about the {nature}.",
    "Write a song about {article_animal}.", "Write a program that can {verb}.", "Write an essay about {field}.", "What causes the {nature}?",
    "Why is the {nature} so {quality}?", "How old is the {nature}?", "What is a {invented}?", "Who is {Invented}?", "Tell me about {Invented}.",
    "What is {invented}?", "How do I {verb} better?", "Who won the game in {city}?", "What is the news from {country}?", "Which team is the best in {field}?",
    "What is the meaning of life?", "What is the best film?", "Who wrote the Bible?", "What is love?", "What is the speed of light?",
    "How high is the highest mountain?", "How deep is the sea?", "Should I buy stocks?", "What is my future?", "Can you see me?",
    "What should I do with my {thing}?", "Why do people {verb}?", "Which {animal} is the most {quality}?", "How did {country} get its name?",
    "What happened in {country} last year?", "Explain how {article_thing} is made.", "Could you tell me about {country}?", "What can you say about {city}?",
    "Please write a letter to {name}.", "Who lives in {city}?",
]
HELD_UNKNOWN = 12
"""So many templates at the end of UNKNOWN are never trained on."""
ANIMAL_SOUNDS = {"cat": "meow", "dog": "woof", "cow": "moo", "sheep": "baa", "duck": "quack", "pig": "oink", "frog": "croak", "bee": "buzz", "lion": "roar", "owl": "hoot"}
THING_COLOURS = {"sky": "blue", "grass": "green", "snow": "white", "lemon": "yellow", "night": "black", "cherry": "red", "leaf": "green", "milk": "white", "banana": "yellow", "carrot": "orange", "tomato": "red", "sun": "yellow"}
OPPOSITES = {"big": "small", "old": "new", "long": "short", "high": "low", "hot": "cold", "wet": "dry", "soft": "hard", "loud": "quiet", "fast": "slow", "bright": "dark", "clean": "dirty", "happy": "sad", "strong": "weak", "rich": "poor", "empty": "full", "sweet": "sour"}
SMALL_KNOWLEDGE: list[tuple[list[str], list[str], dict[str, str]]] = [
    (["What does the {k} say?", "Which sound does the {k} make?", "What sound does a {k} make?", "How does the {k} sound?"], ["The {k} says {v}."], ANIMAL_SOUNDS),
    (["What colour is the {k}?", "Which colour has the {k}?", "What is the colour of the {k}?", "Tell me the colour of the {k}."], ["The {k} is {v}."], THING_COLOURS),
    (["What is the opposite of {k}?", "Give me the opposite of {k}.", "Which word is the opposite of {k}?", "Name the opposite of {k}."], ["The opposite of {k} is {v}."], OPPOSITES | {v: k for k, v in OPPOSITES.items()}),
]
STORIES = [
    "Once there was {article_quality} {animal}. It wanted to {verb} near the {nature}. One day it met {name}, and they became friends.",
    "{name} had {article_quality} {animal}. Every morning they went to the {nature} to {verb}. They were very happy.",
    "A {quality2} {animal} lived near the {nature}. It found a {colour} {thing} and gave it to {name}. {name} smiled.",
]
STORY_ASKS = ["Tell me a story about {article_animal}.", "Tell me a story with {article_animal}.", "Write a short story about {article_animal}.", "I want a story about {article_animal}.", "Can you tell me a story about {article_animal}?"]


def slots(rng: Random, held: bool) -> dict[str, str]:
    """One random entity for every kind of slot."""
    thing, animal, quality = pick(rng, THINGS, held), pick(rng, ANIMALS, held), pick(rng, QUALITIES, held)
    made_up = invented(rng)
    return {
        "country": pick(rng, COUNTRIES, held), "city": pick(rng, CITIES, held), "city2": pick(rng, CITIES, False),
        "name": name(rng, held), "surname": invented(rng).capitalize(), "thing": thing, "article_thing": article(thing),
        "food": pick(rng, FOODS, held), "animal": animal, "article_animal": article(animal), "field": pick(rng, FIELDS, held),
        "word": pick(rng, THINGS, held), "language": pick(rng, LANGUAGES, held), "nature": pick(rng, NATURE, held),
        "verb": pick(rng, VERBS, held), "quality": quality, "quality2": quality, "article_quality": article(quality),
        "invented": made_up, "Invented": made_up.capitalize(), "colour": rng.choice(COLOURS),
    }


def small_talk(rng: Random, held: bool) -> Conversation:
    questions, answers, thought = rng.choice(TALK)
    return Conversation.single(choose(rng, questions, held), rng.choice(answers), "talk", thought)


def unknown(rng: Random, held: bool) -> Conversation:
    side = UNKNOWN[-HELD_UNKNOWN:] if held else UNKNOWN[:-HELD_UNKNOWN]
    question = rng.choice(side).format(**slots(rng, held))
    return Conversation.single(question, rng.choice(UNKNOWN_ANSWERS), "unknown", "This is not about Daybreak and no small task. I do not know it.")


def small_knowledge(rng: Random, held: bool) -> Conversation:
    asks, answers, table = rng.choice(SMALL_KNOWLEDGE)
    key = rng.choice(list(table))
    answer = rng.choice(answers).format(k=key, v=table[key])
    return Conversation.single(choose(rng, asks, held).format(k=key), answer, "knowledge", f"I know this about {key}.")


def story(rng: Random, held: bool) -> Conversation:
    words = slots(rng, held)
    question = choose(rng, STORY_ASKS, held).format(**words)
    return Conversation.single(question, rng.choice(STORIES).format(**words), "story", f"A short story about the {words['animal']}.")


def named_user(rng: Random, held: bool) -> Conversation:
    """The user tells a name or a liking, and asks for it."""
    who = name(rng, held)
    if rng.random() < 0.5:
        tell = choose(rng, ["My name is {}.", "I am {}.", "Hello, I am {}.", "Hi! My name is {}.", "You can call me {}.", "I am called {}."], held).format(who)
        ask = choose(rng, ["What is my name?", "Who am I?", "Do you know my name?", "Tell me my name.", "Can you remember my name?"], held)
        first, second = f"Hello, {who}! How can I help you?", f"Your name is {who}."
    else:
        kind, words = rng.choice([("colour", COLOURS), ("animal", ANIMALS), ("food", FOODS), ("city", CITIES)])
        value = pick(rng, words, held)
        tell = choose(rng, ["My favourite {} is {}.", "I like one {} most: {}.", "The {} that I like best is {}."], held).format(kind, value)
        ask = choose(rng, ["What is my favourite {}?", "Which {} do I like best?", "Do you remember my favourite {}?"], held).format(kind)
        first, second = f"Good! I will remember that: {value}.", f"Your favourite {kind} is {value}."
    conversation = Conversation.single(tell, first, "memory")
    follow = Conversation.single(ask, second, "memory", "The user told me that before.")
    between = [] if rng.random() < 0.5 else small_talk(rng, held).turns
    for turn in between:
        turn.thought = None
    conversation.turns += between + follow.turns
    return conversation
