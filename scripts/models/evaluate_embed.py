"""Evaluates daybreak-mini-embed through the daemon's HTTP API: held-out triples, and a search of our own pages."""

from __future__ import annotations

import argparse
from random import Random

import numpy as np

from daemon_client import Daemon
from embed_data import triple
from embed_pages import doc_questions, passages, search_questions

BATCH = 32
Asked = list[tuple[str, str]]
"""Page and question."""


def vectors(daemon: Daemon, texts: list[str]) -> np.ndarray:
    parts = [daemon.embed(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
    return np.array([vector for part in parts for vector in part])


def triples_right(daemon: Daemon, count: int) -> tuple[int, list[str]]:
    rng = Random("evaluate triples")
    triples = [triple(rng) for _ in range(count)]
    anchor, near, far = (vectors(daemon, list(texts)) for texts in zip(*triples))
    right = (anchor * near).sum(1) > (anchor * far).sum(1)
    return int(right.sum()), [f"- {' / '.join(texts)}" for texts, good in zip(triples, right) if not good]


def missed(daemon: Daemon, index: np.ndarray, asked: Asked) -> list[str]:
    """The questions whose nearest passage lies on another page than the one they were written for."""
    scores = vectors(daemon, [text for _, text in asked]) @ index.T
    found = [passages()[best].page for best in scores.argmax(1).tolist()]
    return [f"- {text}: found {got}, wanted {page}" for (page, text), got in zip(asked, found) if got != page]


def row(what: str, right: int, count: int, aim: str) -> str:
    return f"| {what} | {right} of {count} | {100 * right / count:.1f} % | {aim} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--model", default="daybreak-mini-embed")
    parser.add_argument("--count", type=int, default=300, help="triples")
    parser.add_argument("--failures", type=int, default=8)
    parser.add_argument("--search", action="store_true", help="ask the 100 questions too; never tune by them")
    options = parser.parse_args()
    daemon = Daemon(options.url, options.model)
    right, wrong = triples_right(daemon, options.count)
    print(row("held-out triples ordered rightly", right, options.count, "95 %"))
    print("\n".join(wrong[: options.failures]))
    index = vectors(daemon, [passage.text for passage in passages()])
    _, known, new, _ = doc_questions()
    sets = {
        "right page first, development questions, sections with others in training": known,
        "right page first, development questions, sections without": new,
    }
    lists = {what: [(question.page, question.text) for question in some] for what, some in sets.items()}
    if options.search:
        lists["right page first, the 100 questions"] = search_questions()
    for what, asked in lists.items():
        wrong = missed(daemon, index, asked)
        print(row(what, len(asked) - len(wrong), len(asked), "85 %"))
        print("\n".join(wrong[: options.failures]))


if __name__ == "__main__":
    main()
