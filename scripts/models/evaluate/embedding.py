"""Evaluates daybreak-mini-embed through the daemon's HTTP API: held-out triples, and a search of our own pages."""

from random import Random

import numpy as np

from embedding.pages import doc_questions, passages, search_questions
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


def search_score(daemon: Daemon, index: np.ndarray, name: str, asked: list[tuple[str, str]]) -> Score:
    """Pages and their questions: right is whose nearest passage lies on the page that it was written for."""
    score = Score(f"right page first, {name}", "85 %")
    nearest = (vectors(daemon, [text for _, text in asked]) @ index.T).argmax(1)
    for best, (page, text) in zip(nearest.tolist(), asked):
        found = passages()[best].page
        score.add(found == page, f"{text}: found {found}, wanted {page}")
    return score


def main() -> None:
    parser = options(__doc__, "daybreak-mini-embed", 300)
    parser.add_argument("--search", action="store_true", help="ask the 100 questions too; never tune by them")
    chosen = parser.parse_args()
    daemon = Daemon(chosen.url, chosen.model)
    index = vectors(daemon, [passage.text for passage in passages()])
    _, known, new, _ = doc_questions()
    asked = {
        "development questions, sections with others in training": [(each.page, each.text) for each in known],
        "development questions, sections without": [(each.page, each.text) for each in new],
    }
    if chosen.search:
        asked["the 100 questions"] = search_questions()
    scores = [search_score(daemon, index, name, some) for name, some in asked.items()]
    report([triple_score(daemon, chosen.count), *scores], chosen.failures)


if __name__ == "__main__":
    main()
