"""Prints text to learn the vocabulary from: conversations of the training side of the mixture."""

from __future__ import annotations

import argparse
from random import Random

from chat_format import segments
from mixture import sample


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=30_000, help="conversations")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = Random(options.seed)
    for _ in range(options.count):
        print("".join(text for text, _ in segments(sample(rng))))


if __name__ == "__main__":
    main()
