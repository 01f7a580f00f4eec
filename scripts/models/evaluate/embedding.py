"""Evaluates daybreak-mini-embed through the daemon's HTTP API: held-out triples, and a search of our own pages."""

from random import Random

import numpy as np

from embedding.pages import passages, search_questions
from embedding.texts import triple
from evaluate.daemon import Daemon, options, report

BATCH = 32


def main() -> None:
    chosen = options(__doc__, 300).parse_args()
    daemon, rng = Daemon(chosen.url, "daybreak-mini-embed"), Random("evaluate triples")

    def vectors(texts: list[str]) -> np.ndarray:
        batches = [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]
        return np.concatenate([daemon.post("/api/embeddings", {"input": batch})["embeddings"] for batch in batches])

    anchor, near, far = (vectors(list(texts)) for texts in zip(*(triple(rng) for _ in range(chosen.count))))
    ordered = (anchor * near).sum(1) > (anchor * far).sum(1)
    index, asked = vectors([passage.text for passage in passages()]), search_questions()
    nearest = (vectors([text for _, text in asked]) @ index.T).argmax(1)
    found = [passages()[at].page == page for at, (page, _) in zip(nearest, asked)]
    report([("held-out triples ordered rightly", "95 %", ordered.tolist()), ("right page first", "85 %", found)])


if __name__ == "__main__":
    main()
