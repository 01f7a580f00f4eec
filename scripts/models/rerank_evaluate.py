"""Evaluates daybreak-mini-rerank through the daemon: it reorders the ten passages that daybreak-mini-embed finds."""

from __future__ import annotations

import argparse

from daemon_client import Daemon
from embed_pages import doc_questions, passages, search_questions
from evaluate_embed import nearest, passage_index, row

FOUND = 10


def reordered(daemon: Daemon, question: str, found: list[int]) -> list[int]:
    """The same passages, the one that answers best first."""
    body = {"model": daemon.model, "query": question, "documents": [passages()[index].text for index in found]}
    return [found[result["index"]] for result in daemon.post("/v1/rerank", body)["results"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--embed", default="daybreak-mini-embed")
    parser.add_argument("--rerank", default="daybreak-mini-rerank")
    parser.add_argument("--failures", type=int, default=8)
    parser.add_argument("--search", action="store_true", help="ask the 100 questions too; never tune by them")
    options = parser.parse_args()
    finder, reranker = Daemon(options.url, options.embed), Daemon(options.url, options.rerank)
    _, known, new, _ = doc_questions()
    lists = {
        "development questions, sections with others in training": [(q.page, q.text) for q in known],
        "development questions, sections without": [(q.page, q.text) for q in new],
    }
    if options.search:
        lists["the 100 questions"] = search_questions()
    index = passage_index(finder)
    for what, asked in lists.items():
        before = after = within = 0
        wrong = []
        for (page, text), found in zip(asked, nearest(finder, index, [text for _, text in asked], FOUND)):
            best = reordered(reranker, text, found)[0]
            before += passages()[found[0]].page == page
            after += passages()[best].page == page
            within += any(passages()[index].page == page for index in found)
            if passages()[best].page != page:
                wrong.append(f"- {text}: {passages()[best].page} ({passages()[best].body[:60]}), wanted {page}")
        print(row(f"{what}: right page first, as found", before, len(asked), ""))
        print(row(f"{what}: right page first, reordered", after, len(asked), ""))
        print(row(f"{what}: right page among the ten", within, len(asked), ""))
        print("\n".join(wrong[: options.failures]))


if __name__ == "__main__":
    main()
