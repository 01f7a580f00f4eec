"""Questions about pictures, in text: what the projector says of a picture stands before or after the question.

A picture reaches the model as PICTURE_TOKENS embeddings. Here they are words of one token each that stand for
the count, shape, colour, place and background, in any order and repeated; the projector learns to say the same.
"""

from dataclasses import dataclass
from random import Random

from conversations.template import Conversation
from conversations.words import article, choose, is_held, wordings

PICTURE_TOKENS = 16
NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four"}
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
SAID = wordings("pictures")


@dataclass(frozen=True)
class Scene:
    """One to four equal shapes; a place only for a single one."""

    count: int
    shape: str
    colour: str
    place: str | None
    background: str

    def words(self) -> list[str]:
        codes = [NUMBERS[self.count], SHAPES[self.shape], COLOURS[self.colour], BACKGROUNDS[self.background]]
        return codes + ([PLACES[self.place]] if self.place else [])

    def noun(self) -> str:
        plural = {"cross": "es"}.get(self.shape, "s") if self.count > 1 else ""
        return f"{self.colour} {self.shape}{plural}"

    def where(self) -> str:
        return {"middle": "in the middle", "top": "at the top", "bottom": "at the bottom"}.get(
            str(self.place), f"on the {self.place}"
        )

    def description(self) -> str:
        if self.place is None:
            return f"There are {NUMBERS[self.count]} {self.noun()} on a {self.background} background."
        return f"There is {article(self.noun())} {self.where()}, on a {self.background} background."


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
    options = [
        (SAID["count"], f"There {number}."),
        (SAID["shape"], f"It is a {shown.shape}."),
        (SAID["colour"], f"It is {shown.colour}."),
        (SAID["background"], f"The background is {shown.background}."),
    ]
    if shown.place:
        options.append((SAID["place"], f"It is {shown.where()}."))
    asks, answer = (SAID["describe"], shown.description()) if rng.random() < 0.5 else rng.choice(options)
    return choose(rng, asks, held), answer


def picture_in_words(rng: Random, held: bool) -> Conversation:
    shown = scene(rng, held)
    codes = shown.words()
    codes += rng.choices(codes, k=PICTURE_TOKENS - len(codes))
    rng.shuffle(codes)
    text = "".join(f" {code}" for code in codes)
    asked, answer = question(rng, held, shown)
    content = f"{text}\n{asked}" if rng.random() < 0.6 else f"{asked}\n{text}"
    return Conversation.single(content, answer, "I look at the picture.")
