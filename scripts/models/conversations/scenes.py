"""Questions about pictures, in text: what the projector says of a picture stands before or after the question.

A picture reaches the model as PICTURE_TOKENS embeddings. Here they are words of one token each that stand for
the count, shape, colour, place and background, in any order and repeated; the projector learns to say the same.
"""

from dataclasses import dataclass
from random import Random

from conversations.template import Conversation
from conversations.words import article, choose, is_held, source, wordings

PICTURE_TOKENS = 16
SOURCE = source("scenes")
CODES: dict[str, dict[str, str]] = SOURCE["codes"]
"""Values and the words that stand for them: any words that are one token with their space and not in another list."""
WHERE, SAID = SOURCE["where"], wordings("pictures")


@dataclass(frozen=True)
class Scene:
    """One to four equal shapes; a place only for a single one."""

    count: int
    shape: str
    colour: str
    place: str | None
    background: str

    def words(self) -> list[str]:
        kinds = ["count", "shape", "colour", "background"] + (["place"] if self.place else [])
        return [CODES[kind][str(getattr(self, kind))] for kind in kinds]

    def description(self) -> str:
        what = f"{self.colour} {self.shape}"
        if self.place:
            return f"There is {article(what)} {WHERE[self.place]}, on a {self.background} background."
        plural = "es" if self.shape == "cross" else "s"
        return f"There are {CODES['count'][str(self.count)]} {what}{plural} on a {self.background} background."


def scene(rng: Random, held: bool) -> Scene:
    """A random scene; held-out ones have a combination of values that training has not seen."""
    while True:
        count = rng.choice([1, 1, 1, 2, 3, 4])
        place = rng.choice(list(CODES["place"])) if count == 1 else None
        shape, colour, background = (rng.choice(list(CODES[kind])) for kind in ("shape", "colour", "background"))
        result = Scene(count, shape, colour, place, background)
        if is_held(str(result)) == held:
            return result


def question(rng: Random, held: bool, shown: Scene) -> tuple[str, str]:
    """Something to ask about a scene, and the right answer."""
    answers = {
        "count": "There is one." if shown.place else f"There are {CODES['count'][str(shown.count)]}.",
        "shape": f"It is a {shown.shape}.",
        "colour": f"It is {shown.colour}.",
        "background": f"The background is {shown.background}.",
    } | ({"place": f"It is {WHERE[shown.place]}."} if shown.place else {})
    what = "describe" if rng.random() < 0.5 else rng.choice(list(answers))
    return choose(rng, SAID[what], held), answers.get(what) or shown.description()


def picture_in_words(rng: Random, held: bool) -> Conversation:
    shown = scene(rng, held)
    codes = shown.words()
    codes += rng.choices(codes, k=PICTURE_TOKENS - len(codes))
    rng.shuffle(codes)
    text = "".join(f" {code}" for code in codes)
    asked, answer = question(rng, held, shown)
    content = f"{text}\n{asked}" if rng.random() < 0.6 else f"{asked}\n{text}"
    return Conversation.single(content, answer, "I look at the picture.")
