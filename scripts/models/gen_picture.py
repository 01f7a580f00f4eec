"""Questions about pictures, in text: what the projector says of a picture stands before or after the question.

A picture reaches the model as PICTURE_TOKENS embeddings. Here they are words of one token each that stand for
the count, shape, colour, place and background, in any order and repeated; the projector learns to say the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from chat_format import Conversation
from words import article, choose, is_held

PICTURE_TOKENS = 16
COUNTS = {1: "one", 2: "two", 3: "three", 4: "four"}
SHAPES = {"circle": "listens", "square": "folder", "triangle": "token", "cross": "array"}
COLOURS = {
    "red": "helpful",
    "green": "polite",
    "blue": "friendly",
    "yellow": "little",
    "purple": "upper",
    "orange": "queue",
}
PLACES = {"left": "before", "right": "after", "top": "first", "bottom": "last", "middle": "between"}
BACKGROUNDS = {"white": "larger", "black": "short", "grey": "small"}
"""Values and the words that stand for them: any words that are one token with their space and not in another list."""
NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four"}
DESCRIBE = [
    "Describe the picture.",
    "What do you see?",
    "What is in the picture?",
    "What is in this image?",
    "Describe this image.",
    "What does the picture show?",
    "Tell me what you see.",
    "What is this?",
    "What can you see here?",
    "Say what is in the picture.",
    "Describe it.",
    "What is on the picture?",
    "Describe what you see.",
    "Tell me about this picture.",
    "What does this image show?",
    "What is shown here?",
    "What have you got there?",
    "Tell me what is on it.",
    "Give a description of the image.",
    "Describe the image for me.",
    "What do I see here?",
    "Which things are in the picture?",
    "Look at this. What is it?",
    "Please describe this picture.",
]
ASK_COUNT = [
    "What is the number of shapes?",
    "How many of them are there?",
    "How many shapes does the picture have?",
    "Tell me how many shapes you see.",
    "Count them.",
    "What is the count?",
    "How many shapes are there?",
    "How many shapes do you see?",
    "Count the shapes.",
    "How many are in the picture?",
    "What number of shapes is there?",
    "How many things do you see?",
    "Is there one shape or more?",
    "Say how many there are.",
    "How many shapes can you find?",
    "The number of shapes, please.",
    "How many shapes are shown?",
    "How many shapes are drawn here?",
    "How many things are in this image?",
    "How many shapes are on the picture?",
    "How many shapes has the image?",
    "How many are there in the image?",
    "What is the number of things in the image?",
    "How many shapes are in the image?",
]
ASK_SHAPE = [
    "Name the shape.",
    "What kind of shape is it?",
    "What shape is it?",
    "Tell me the shape.",
    "Is it a circle, a square, a triangle or a cross?",
    "What form does it have?",
    "Which shape is it?",
    "What shape do you see?",
    "What shape is in the picture?",
    "Which shape is in the image?",
    "Say which shape it is.",
    "Which form has it?",
    "What kind of form is this?",
    "Is it round?",
    "What is drawn here, which shape?",
    "Which shapes are these?",
    "What is the shape?",
]
ASK_COLOUR = [
    "Name the colour.",
    "What colour is it?",
    "Tell me the colour.",
    "In which colour is the shape?",
    "Which colour do you see?",
    "What colour does it have?",
    "Which colour is it?",
    "What colour is the shape?",
    "What colour do you see?",
    "Which colour has the shape?",
    "Say which colour it is.",
    "Of what colour is it?",
    "Which colour was used?",
    "How is it coloured?",
    "The colour, please.",
    "Is it red or blue?",
    "What is the colour?",
]
ASK_PLACE = [
    "Where in the picture is it?",
    "At which place is it?",
    "Tell me where it is.",
    "On which side is the shape?",
    "Where does the shape lie?",
    "Where can I find it?",
    "What is its place?",
    "Where in the picture do you see the shape?",
    "Where is it?",
    "Where is the shape?",
    "Where do you see it?",
    "In which part of the picture is it?",
    "Say where it is.",
    "In which place do you see the shape?",
    "Is it left or right?",
    "Where was it drawn?",
    "At what position is the shape?",
    "Where on the picture does it stand?",
    "Which part of the image has the shape?",
    "The place of the shape, please.",
    "Where in the image is the shape?",
]
ASK_BACKGROUND = [
    "Name the background.",
    "What is behind the shape?",
    "On which background is it?",
    "Tell me the background.",
    "What colour is behind it?",
    "How is the background?",
    "What is the background?",
    "Which colour is the background?",
    "What colour is the background?",
    "Which background has the picture?",
    "Say which background it has.",
    "On what is the shape drawn?",
    "Is the background white or black?",
    "Which colour lies behind?",
    "The background, please.",
    "How is the ground coloured?",
    "What background do you see?",
]


@dataclass(frozen=True)
class Scene:
    """One to four equal shapes; a place only for a single one."""

    count: int
    shape: str
    colour: str
    place: str | None
    background: str

    def words(self) -> list[str]:
        codes = [COUNTS[self.count], SHAPES[self.shape], COLOURS[self.colour], BACKGROUNDS[self.background]]
        return codes + ([PLACES[self.place]] if self.place else [])

    def noun(self) -> str:
        return (
            f"{self.colour} {self.shape}{'es' if self.shape == 'cross' else 's'}"
            if self.count > 1
            else f"{self.colour} {self.shape}"
        )

    def description(self) -> str:
        if self.place is None:
            return f"There are {NUMBERS[self.count]} {self.noun()} on a {self.background} background."
        where = (
            "in the middle"
            if self.place == "middle"
            else f"at the {self.place}"
            if self.place in ("top", "bottom")
            else f"on the {self.place}"
        )
        return f"There is {article(self.noun())} {where}, on a {self.background} background."


def scene(rng: Random, held: bool) -> Scene:
    """A random scene; held-out ones have a combination of values that training has not seen."""
    while True:
        count = rng.choice([1, 1, 1, 2, 3, 4])
        place = rng.choice(list(PLACES)) if count == 1 else None
        result = Scene(count, rng.choice(list(SHAPES)), rng.choice(list(COLOURS)), place, rng.choice(list(BACKGROUNDS)))
        if is_held(str(result)) == held:
            return result


def question(rng: Random, held: bool, shown: Scene) -> tuple[str, str]:
    """Something to ask about a scene, and the right answer."""
    number = "is one" if shown.count == 1 else f"are {NUMBERS[shown.count]}"
    place = (
        "in the middle"
        if shown.place == "middle"
        else f"at the {shown.place}"
        if shown.place in ("top", "bottom")
        else f"on the {shown.place}"
    )
    options = [
        (ASK_COUNT, f"There {number}."),
        (ASK_SHAPE, f"It is a {shown.shape}."),
        (ASK_COLOUR, f"It is {shown.colour}."),
        (ASK_BACKGROUND, f"The background is {shown.background}."),
    ]
    if shown.place:
        options.append((ASK_PLACE, f"It is {place}."))
    asks, answer = (DESCRIBE, shown.description()) if rng.random() < 0.5 else rng.choice(options)
    return choose(rng, asks, held), answer


def picture_in_words(rng: Random, held: bool) -> Conversation:
    shown = scene(rng, held)
    codes = shown.words()
    codes += rng.choices(codes, k=PICTURE_TOKENS - len(codes))
    rng.shuffle(codes)
    text = "".join(f" {code}" for code in codes)
    asked, answer = question(rng, held, shown)
    content = f"{text}\n{asked}" if rng.random() < 0.6 else f"{asked}\n{text}"
    return Conversation.single(content, answer, "picture", "I look at the picture.")
