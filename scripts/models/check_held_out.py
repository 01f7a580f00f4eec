"""Checks that nothing held out stands in training data: no held question, no held sum, no held picture's scene; and
that no held-out word is a token.

Two questions count as the same when they differ in case, punctuation and articles alone.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random

from gen_facts import facts, held_questions
from mixture import sample
from plain_words import plain_words
from spm_tokenizer import SPACE, Tokenizer
from words import HELD_WORDS

TOKENIZER = Path(__file__).parent / "tokenizer.json"


def overlap(train_count: int, held_count: int, seed: int) -> dict[str, tuple[int, int]]:
    """For each task: held-out questions drawn, and how many of them a training draw holds in the same words."""
    rng = Random(f"train {seed}")
    seen = {
        (c.system, plain_words(turn.content))
        for c in (sample(rng) for _ in range(train_count))
        for turn in c.turns
        if turn.role == "user"
    }
    rng = Random(f"held {seed}")
    result: dict[str, list[int]] = {}
    for _ in range(held_count):
        conversation = sample(rng, held=True)
        counts = result.setdefault(conversation.task, [0, 0])
        counts[0] += 1
        counts[1] += (conversation.system, plain_words(conversation.turns[0].content)) in seen
    questions = [question for fact in facts() for question in held_questions(fact)]
    result["facts, every held-out question"] = [
        len(questions),
        sum((None, plain_words(question)) in seen for question in questions),
    ]
    return {task: (drawn, found) for task, (drawn, found) in result.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", type=int, default=100_000, help="training conversations to draw")
    parser.add_argument("--held", type=int, default=3_000, help="held-out conversations to draw")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for task, (drawn, found) in sorted(overlap(options.train, options.held, options.seed).items()):
        print(f"{task:36} {drawn:5} held-out questions, {found:4} also in training")
    tokens = {token.removeprefix(SPACE).lower() for token in Tokenizer.load(TOKENIZER).tokens}
    print(f"{'vocabulary':36} {len(HELD_WORDS):5} held-out words, {len(HELD_WORDS & tokens):8} also tokens")


if __name__ == "__main__":
    main()
