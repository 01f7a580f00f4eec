"""Evaluates daybreak-mini-embed through the daemon's HTTP API: held-out triples, and a search of our own pages."""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random

import numpy as np

from daemon_client import Daemon
from embed_data import pages, sections, triple

QUESTIONS = Path(__file__).parent / "data" / "search-questions.txt"
BATCH = 32


def vectors(daemon: Daemon, texts: list[str]) -> np.ndarray:
    parts = [daemon.embed(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
    return np.array([vector for part in parts for vector in part])


def triples_right(daemon: Daemon, count: int) -> tuple[int, list[str]]:
    rng = Random("evaluate triples")
    triples = [triple(rng) for _ in range(count)]
    anchor, near, far = (vectors(daemon, list(texts)) for texts in zip(*triples))
    right = (anchor * near).sum(1) > (anchor * far).sum(1)
    return int(right.sum()), [f"- {' / '.join(texts)}" for texts, good in zip(triples, right) if not good]


def search_right(daemon: Daemon) -> tuple[int, int, list[str]]:
    """How often the first section found lies on the page that the question was written for."""
    questions = [line.split("\t") for line in QUESTIONS.read_text().splitlines() if line and not line.startswith("#")]
    units = [(page, f"{heading}. {text}") for page, content in pages().items() for heading, text in sections(content)]
    index, asked = (
        vectors(daemon, [text for _, text in units]),
        vectors(daemon, [question for _, question in questions]),
    )
    found = [units[best][0] for best in (asked @ index.T).argmax(1)]
    wrong = [
        f"- {question}: found {got}, wanted {page}" for (page, question), got in zip(questions, found) if got != page
    ]
    return len(questions) - len(wrong), len(questions), wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--model", default="daybreak-mini-embed")
    parser.add_argument("--count", type=int, default=300, help="triples")
    parser.add_argument("--failures", type=int, default=8)
    options = parser.parse_args()
    daemon = Daemon(options.url, options.model)
    right, wrong_triples = triples_right(daemon, options.count)
    print(
        f"| held-out triples ordered rightly | {right} of {options.count} "
        f"| {100 * right / options.count:.1f} % | 95 % |"
    )
    found, asked, wrong_pages = search_right(daemon)
    print(f"| right page first, of our documentation | {found} of {asked} | {100 * found / asked:.1f} % | 85 % |")
    print("\n".join(wrong_triples[: options.failures] + wrong_pages[: options.failures]))


if __name__ == "__main__":
    main()
