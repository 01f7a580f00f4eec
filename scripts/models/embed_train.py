"""Trains daybreak-mini-embed: questions must find their passage among all, and texts others of their meaning."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from random import Random

import torch
from torch import Tensor
from torch.nn import functional as F

from embed_data import Pair, fact_pairs, sentence_pairs, synonym_pair, talk_pairs, task_pair
from embed_model import EmbedConfig, EmbedModel
from embed_pages import Question, doc_questions, passages
from embed_queries import cropped, reworded, thinned
from embed_search import embed, index_of_passages, search, tensors, triples_right
from embed_start import first_vectors
from embed_tables import table_questions
from embed_vocabulary import VOCABULARY
from embed_words import WordStage
from wordpiece import WordPiece

TEMPERATURE = 0.05
WARMUP_STEPS = 30
QUESTIONS, ROWS, CROPS = 40, 8, 12
"""Queries of a step: written questions, questions to rows of tables, and parts of passages."""
INDEX_STEPS = 40
"""Steps between two computations of all passages and their hardest wrong answers."""
HARDEST = 12
QUERY_TOKENS, TEXT_TOKENS, PASSAGE_TOKENS = 48, 64, 96
WORD_RATE_SHARE = 0.2
FALLING_SHARE = 0.6
"""Part of the training in which the learning rate falls to zero."""


class PageSearch:
    """The queries of our pages, and the state of the search that makes their wrong answers hard."""

    def __init__(self, questions: list[Question], model: EmbedModel, tokenizer: WordPiece) -> None:
        self.questions, self.model, self.tokenizer = questions, model, tokenizer
        self.index = torch.empty(0)
        self.hardest: list[list[int]] = []
        self.nearest: list[int] = []
        self.rows: dict[str, list[Question]] = {}
        for question in table_questions():
            self.rows.setdefault(question.page, []).append(question)

    def refresh(self) -> None:
        self.index = index_of_passages(self.model, self.tokenizer)
        scores = embed(self.model, self.tokenizer, [question.text for question in self.questions]) @ self.index.T
        self.nearest, self.hardest = [], []
        for row, question in zip(scores, self.questions):
            right = list(question.passages)
            self.nearest.append(right[int(row[right].argmax())])
            row[right] = -2
            self.hardest.append(row.topk(HARDEST).indices.tolist())

    def loss(self, rng: Random) -> Tensor:
        """Every query against all passages: those that matter here are computed anew, the others are as at refresh."""
        queries, right, fresh = [], [], set()
        for number in rng.sample(range(len(self.questions)), QUESTIONS):
            question = self.questions[number]
            queries.append(reworded(rng, question.text))
            right.append(question.passages)
            fresh.add(self.nearest[number] if rng.random() < 0.7 else rng.choice(question.passages))
            fresh.add(rng.choice(self.hardest[number]))
        for page in rng.choices(sorted(self.rows), k=ROWS):
            question = rng.choice(self.rows[page])
            queries.append(reworded(rng, question.text))
            right.append(question.passages)
            fresh.add(rng.choice(question.passages))
        for passage in rng.sample(range(len(passages())), CROPS):
            query, holding = cropped(rng, passage)
            queries.append(query)
            right.append(holding)
            fresh.add(passage)
        rows = sorted(fresh)
        texts = [thinned(rng, passages()[row]) for row in rows]
        index = self.index.index_copy(
            0, torch.tensor(rows), self.model(*tensors(texts, self.tokenizer, PASSAGE_TOKENS))
        )
        scores = self.model(*tensors(queries, self.tokenizer, QUERY_TOKENS)) @ index.T / TEMPERATURE
        wrong = torch.ones_like(scores, dtype=torch.bool)
        for row, answers in enumerate(right):
            wrong[row, list(answers)] = False
        good = scores.masked_fill(wrong, float("-inf")).logsumexp(1)
        return (scores.logsumexp(1) - good).mean()


def pairs_of(rng: Random) -> list[Pair]:
    pairs = fact_pairs(rng, 24) + talk_pairs(rng, 4) + [task_pair(rng) for _ in range(6)]
    return pairs + sentence_pairs(rng, 42) + [synonym_pair(rng) for _ in range(8)]


def pair_loss(first: Tensor, second: Tensor, pairs: list[Pair]) -> Tensor:
    """Each text must find its partner among the others' partners."""
    same = torch.tensor([[one[2] == other[2] for other in pairs] for one in pairs])
    same.fill_diagonal_(False)
    scores = (first @ second.T / TEMPERATURE).masked_fill(same, float("-inf"))
    target = torch.arange(len(pairs))
    return (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True, help="of computing, not of waiting for the processor")
    parser.add_argument("--words", type=float, default=0, help="minutes of the first stage, without the block")
    parser.add_argument("--checkpoint", type=Path, required=True, help="where the result is written")
    parser.add_argument("--start", type=Path, help="go on from this checkpoint")
    parser.add_argument("--all", action="store_true", help="train on the development set too: for the last minutes")
    parser.add_argument("--vocabulary", type=Path, default=VOCABULARY)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.0008)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    tokenizer = WordPiece(json.loads(options.vocabulary.read_text()))
    config = EmbedConfig()
    model = EmbedModel(config, len(tokenizer.tokens))
    model.embedding.weight.data = first_vectors(tokenizer.tokens, config.width)
    if options.start:
        model.load_state_dict(torch.load(options.start)["model"])
    training, known, new, lost = doc_questions()
    for line in lost:
        print(f"no such place any longer: {line}")
    pages = PageSearch(training + known + new if options.all else training, model, tokenizer)

    def report(step: int, loss: float) -> None:
        pages.refresh()
        parts = [search(embed(model, tokenizer, [q.text for q in some]), pages.index, some) for some in (known, new)]
        told = ", ".join(f"{part.page:.3f}/{part.section:.3f}" for part in parts)
        print(f"step {step} loss {loss:.3f} pages {told} triples {triples_right(model, tokenizer):.3f}", flush=True)

    print(f"{len(tokenizer.tokens)} tokens, {len(passages())} passages, {len(pages.questions)} questions")
    report(0, 0)
    rng = Random(options.seed)
    if options.words:
        stage = WordStage(model, tokenizer, pages.questions, pages.rows)
        stage.train(rng, options.words, TEMPERATURE, pairs_of, pair_loss, report)
    rest = [tensor for name, tensor in model.named_parameters() if name != "embedding.weight"]
    # Words have been trained by themselves; here they only settle.
    groups = [{"params": rest, "share": 1.0}, {"params": [model.embedding.weight], "share": WORD_RATE_SHARE}]
    optimiser = torch.optim.AdamW(groups, weight_decay=0.01)
    begun, step = time.process_time(), 0
    while (share := (time.process_time() - begun) / (options.minutes * 60)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = options.rate * group["share"] * min((step + 1) / WARMUP_STEPS, 1, (1 - share) / FALLING_SHARE)
        if step % INDEX_STEPS == 0:
            pages.refresh()
        pairs = pairs_of(rng)
        sides = [model(*tensors([pair[side] for pair in pairs], tokenizer, TEXT_TOKENS)) for side in (0, 1)]
        loss = pages.loss(rng) + pair_loss(*sides, pairs)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        step += 1
        if step % 100 == 0:
            report(step, float(loss))
    torch.save({"model": model.state_dict(), "config": asdict(config)}, options.checkpoint)
    report(step, 0)


if __name__ == "__main__":
    main()
