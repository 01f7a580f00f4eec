"""The vocabulary of daybreak-mini-embed: every word of our pages, questions and lists, then the commonest parts."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from embed_data import FRAMES, SYNONYMS
from embed_pages import doc_questions, passages
from gen_facts import facts, questions
from gen_talk import TALK
from wordpiece import train
from words import ANIMALS, CITIES, COLOURS, COUNTRIES, DAYS, FIELDS, LANGUAGES, MONTHS, NAMES, WORDS, templates

VOCABULARY = Path(__file__).parent / "embed-vocabulary.json"
SIZE = 6400


def vocabulary() -> list[str]:
    training, *_ = doc_questions()
    prose = [passage.text for passage in passages()] + [question.text for question in training]
    talk = [text for asks, _, _ in TALK for text in templates(asks, False)]
    told = [text for fact in facts() for text in questions(fact, False) + fact.answers]
    lists = NAMES + CITIES + COUNTRIES + FIELDS + LANGUAGES + DAYS + MONTHS + COLOURS + WORDS + ANIMALS
    frames = [form for frame in FRAMES for form in frame] + SYNONYMS
    return train(prose + told, prose + told + talk + lists + frames, SIZE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=VOCABULARY)
    options = parser.parse_args()
    tokens = vocabulary()
    options.out.write_text(json.dumps(tokens, ensure_ascii=False, indent=0) + "\n")
    print(f"{options.out}: {len(tokens)} tokens")


if __name__ == "__main__":
    main()
