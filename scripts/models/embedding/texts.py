"""What daybreak-mini-embed learns from: pairs of texts of one meaning, and the many forms in which people search."""

import re
from functools import cache
from random import Random

from conversations.facts import facts, questions
from conversations.talk import TALK
from conversations.words import DAYS, MONTHS, NAMES, WORDS, invented, pick, random_words, source, templates, wordings
from embedding.pages import Passage, Query, is_kept_out, passages

Pair = tuple[str, str, str]
"""Two texts, and what both mean: pairs of one meaning are not held against each other."""
SOURCE = source("sentence-frames")
FRAMES: list[list[str]] = SOURCE["frames"]
"""One sentence in several wordings, the last of them held out."""
SYNONYMS: list[str] = SOURCE["synonyms"]
OTHER_WORDS: dict[str, list[str]] = {}
for _group in SYNONYMS:
    for _word in _group.split():
        OTHER_WORDS.setdefault(_word, []).extend(other for other in _group.split() if other != _word)


def _slots(rng: Random, held: bool) -> dict[str, str]:
    words = random_words(rng, held, "thing animal colour")
    for key in ("name", "name2"):
        words[key] = invented(rng).capitalize() if rng.random() < 0.15 else pick(rng, NAMES, held)
    words |= random_words(rng, held, "city food verb field language")
    words |= {"day": rng.choice(DAYS), "month": rng.choice(MONTHS)}
    return words | random_words(rng, held, "country nature quality")


def _said(rng: Random, frame: list[str], slots: dict[str, str]) -> Pair:
    first, second = rng.sample(list(templates(frame, False)), 2)
    return first.format(**slots), second.format(**slots), frame[0].format(**slots)


def sentence_pairs(rng: Random, count: int) -> list[Pair]:
    """Sentences in two wordings, in threes that are easily taken for each other: one frame of other things, and another
    frame of the same things."""
    result: list[Pair] = []
    while len(result) < count:
        (frame, other), slots = rng.sample(FRAMES, 2), _slots(rng, False)
        result += [_said(rng, frame, slots), _said(rng, frame, _slots(rng, False)), _said(rng, other, slots)]
    return result[:count]


def triple(rng: Random) -> tuple[str, str, str]:
    """A held-out sentence, its paraphrase, and another: the same frame of other things, or another of the same."""
    frame, slots = rng.choice(FRAMES), _slots(rng, True)
    anchor, right = rng.choice(frame[:-1]).format(**slots), frame[-1].format(**slots)
    while True:
        if rng.random() < 0.5:
            wrong = rng.choice(frame).format(**_slots(rng, True))
        else:
            wrong = rng.choice(rng.choice(FRAMES)).format(**slots)
        if all(wrong != form.format(**slots) for form in frame):
            return anchor, right, wrong


@cache
def _fact_questions(index: int) -> list[str]:
    """The questions of a fact, without those that the search is evaluated with."""
    return [text for text in questions(facts()[index], False) if not is_kept_out(text)]


def fact_pairs(rng: Random, count: int) -> list[Pair]:
    """Questions of different facts, each with another question for the same or with the answer."""
    result = []
    for index in rng.sample(range(len(facts())), count):
        asked = _fact_questions(index)
        texts = rng.sample(asked, min(2, len(asked)))
        texts.append(rng.choice(facts()[index].answers))
        if len(texts) > 1:
            result.append((texts[0], rng.choice(texts[1:]), f"fact {index}"))
    return result


def talk_pairs(rng: Random, count: int) -> list[Pair]:
    chosen = rng.sample(range(len(TALK)), count)
    return [(*rng.sample(list(templates(TALK[index]["questions"], False)), 2), f"talk {index}") for index in chosen]


def task_pair(rng: Random) -> Pair:
    """Two wordings of the same small task."""
    if rng.random() < 0.4:
        kind, group = rng.choice(["add", "subtract", "compare"]), "numbers"
        slots, value = {"a": rng.randint(0, 99), "b": rng.randint(0, 99)}, ""
    else:
        kind, group = rng.choice(["spell", "letters", "upper", "echo", "first"]), "words"
        slots, value = {}, rng.choice(WORDS)
    first, second = rng.sample(list(templates(wordings(group)[kind], False)), 2)
    return first.format(value, **slots), second.format(value, **slots), f"{kind} {value} {slots}"


def synonym_pair(rng: Random) -> Pair:
    group = rng.choice(SYNONYMS)
    first, second = rng.sample(group.split(), 2)
    frame, other = (rng.choice(["{}", "the {}", "a {} thing", "how to {}", "{} it", "this is {}"]) for _ in range(2))
    return frame.format(first), other.format(second), group


def reworded(rng: Random, text: str, drop: float = 0.08, swap: float = 0.1) -> str:
    """The text with some words left out and some in place of others of their meaning."""
    result = []
    for word in text.split():
        bare = re.sub(r"\W", "", word).lower()
        if rng.random() < drop:
            continue
        result.append(rng.choice(OTHER_WORDS[bare]) if bare in OTHER_WORDS and rng.random() < swap else word)
    return " ".join(result) or text


def thinned(rng: Random, passage: Passage) -> str:
    """A passage as training shows it: mostly whole, sometimes without some words, its heading, or its punctuation."""
    body, chance = passage.body, rng.random()
    if chance < 0.3:
        body = " ".join(word for word in body.split() if rng.random() > 0.15) or body
    elif chance < 0.4:
        body = re.sub(r"[^\w\s]", " ", body)
    return body if rng.random() < 0.1 else f"{passage.section}. {body}"


def cropped(rng: Random, index: int) -> Query:
    """A few words of a passage as a query, and all passages that hold them."""
    passage = passages()[index]
    body = passage.body.split()
    start = rng.randrange(max(1, len(body) - 4))
    phrase = " ".join(body[start : start + rng.randint(3, 9)])
    holding = tuple(i for i, other in enumerate(passages()) if phrase in other.body)
    query = reworded(rng, phrase, 0.25, 0.15)
    if rng.random() < 0.3:
        # The part of the heading that is not the page's title.
        query = f"{passage.section.split(': ')[-1]} {query}"
    if rng.random() < 0.5:
        query = rng.choice(wordings("search")["frames"]).format(query.rstrip(".,;:"))
    return query, holding or (index,)
