"""Evaluates daybreak-mini-embed through the daemon's HTTP API: held-out triples, and a search of our own pages."""

from random import Random

import numpy as np

from embedding.pages import passages, search_questions
from embedding.texts import triple
from evaluate.daemon import Daemon, Score, options, report

BATCH = 32


def vectors(daemon: Daemon, texts: list[str]) -> np.ndarray:
    return np.concatenate([np.array(daemon.embed(texts[at : at + BATCH])) for at in range(0, len(texts), BATCH)])


def triple_score(daemon: Daemon, count: int) -> Score:
    score, rng = Score("held-out triples ordered rightly", "95 %"), Random("evaluate triples")
    triples = [triple(rng) for _ in range(count)]
    anchor, near, far = (vectors(daemon, list(texts)) for texts in zip(*triples))
    for right, texts in zip((anchor * near).sum(1) > (anchor * far).sum(1), triples):
        score.add(bool(right), " / ".join(texts))
    return score


def search_score(daemon: Daemon) -> Score:
    """Of the 100 questions: right is whose nearest passage lies on the page that it was written for."""
    score = Score("right page first", "85 %")
    index = vectors(daemon, [passage.text for passage in passages()])
    nearest = (vectors(daemon, [text for _, text in search_questions()]) @ index.T).argmax(1)
    for best, (page, text) in zip(nearest.tolist(), search_questions()):
        found = passages()[best].page
        score.add(found == page, f"{text}: found {found}, wanted {page}")
    return score


def main() -> None:
    chosen = options(__doc__, "daybreak-mini-embed", 300).parse_args()
    daemon = Daemon(chosen.url, chosen.model)
    report([triple_score(daemon, chosen.count), search_score(daemon)], chosen.failures)


if __name__ == "__main__":
    main()
