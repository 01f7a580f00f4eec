"""Trains daybreak-mini-rerank: of the passages that the embedding model finds, the right one must score highest."""

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

from embed_model import EmbedConfig, EmbedModel
from embed_pages import Question, doc_questions, passages
from embed_queries import cropped, reworded, thinned
from embed_search import embed, index_of_passages
from embed_vocabulary import VOCABULARY
from rerank_model import RerankModel, pair_tensors
from wordpiece import WordPiece

QUESTIONS, CROPS, WRONG = 10, 4, 3
"""Queries of a step, and wrong passages beside the right one of each."""
FOUND = 10
"""Passages that are reordered in the end."""
HARDEST = 24
WATCHED = 100
"""Development questions that are asked during training."""
PAIR_TOKENS = 80
WARMUP_STEPS = 30
FALLING_SHARE = 0.6


class Candidates:
    """What the embedding model finds for each question."""

    def __init__(self, questions: list[Question], finder: EmbedModel, tokenizer: WordPiece) -> None:
        self.questions = questions
        scores = embed(finder, tokenizer, [question.text for question in questions])
        scores = scores @ index_of_passages(finder, tokenizer).T
        self.found = scores.topk(FOUND).indices.tolist()
        self.right, self.wrong = [], []
        for row, question in zip(scores, questions):
            answers = list(question.passages)
            self.right.append([answers[i] for i in row[answers].topk(min(2, len(answers))).indices.tolist()])
            row[answers] = -2
            self.wrong.append(row.topk(HARDEST).indices.tolist())

    def group(self, rng: Random, number: int) -> tuple[str, list[int]]:
        """A question with a right passage and wrong ones."""
        wrong = rng.sample(self.wrong[number], WRONG)
        return reworded(rng, self.questions[number].text, 0.05, 0.08), [rng.choice(self.right[number]), *wrong]


def cropped_group(rng: Random) -> tuple[str, list[int]]:
    right = rng.randrange(len(passages()))
    query, holding = cropped(rng, right)
    others = [index for index in rng.sample(range(len(passages())), WRONG + 10) if index not in holding]
    # Other passages of the page, which share its words.
    near = [index for index in range(right - 3, right + 4) if index not in holding and 0 <= index < len(passages())]
    return query, [right, *(near[:2] + others)[:WRONG]]


def loss_of(model: RerankModel, tokenizer: WordPiece, rng: Random, groups: list[tuple[str, list[int]]]) -> Tensor:
    pairs = [(query, thinned(rng, passages()[index])) for query, chosen in groups for index in chosen]
    scores = model(*pair_tensors(tokenizer, pairs, PAIR_TOKENS)).view(len(groups), WRONG + 1)
    target = torch.zeros_like(scores)
    target[:, 0] = 1
    # The order is what counts; the second part keeps the scores between 0 and 1 meaningful.
    return (scores.logsumexp(1) - scores[:, 0]).mean() + 0.3 * F.binary_cross_entropy_with_logits(scores, target)


@torch.no_grad()
def first_right(model: RerankModel, tokenizer: WordPiece, candidates: Candidates) -> str:
    """Shares of questions whose first passage is in the right section: found, reordered, and among those found."""
    before = after = within = 0
    for question, found in zip(candidates.questions, candidates.found):
        pairs = [(question.text, passages()[index].text) for index in found]
        best = found[int(model(*pair_tensors(tokenizer, pairs, model.config.context)).argmax())]
        before += found[0] in question.passages
        after += best in question.passages
        within += any(index in question.passages for index in found)
    count = len(candidates.questions)
    return f"{before / count:.3f} -> {after / count:.3f} of {within / count:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True, help="of computing, not of waiting for the processor")
    parser.add_argument("--embed", type=Path, required=True, help="checkpoint of the embedding model")
    parser.add_argument("--checkpoint", type=Path, required=True, help="where the result is written")
    parser.add_argument("--vocabulary", type=Path, default=VOCABULARY)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.0007)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    tokenizer = WordPiece(json.loads(options.vocabulary.read_text()))
    saved = torch.load(options.embed)
    finder = EmbedModel(EmbedConfig(**saved["config"]), len(tokenizer.tokens))
    finder.load_state_dict(saved["model"])
    model = RerankModel(len(tokenizer.tokens))
    model.start_from(finder.embedding.weight)
    training, known, _, _ = doc_questions()
    trained = Candidates(training, finder, tokenizer)
    watched = Candidates(known[:WATCHED], finder, tokenizer)
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=0.01)
    rng = Random(options.seed)
    begun, step, told = time.process_time(), 0, 0.0
    while (share := (time.process_time() - begun) / (options.minutes * 60)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = options.rate * min((step + 1) / WARMUP_STEPS, 1, (1 - share) / FALLING_SHARE)
        groups = [trained.group(rng, number) for number in rng.sample(range(len(training)), QUESTIONS)]
        groups += [cropped_group(rng) for _ in range(CROPS)]
        loss = loss_of(model, tokenizer, rng, groups)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        step += 1
        told += float(loss)
        if step % 50 == 0:
            print(f"step {step} loss {told / 50:.3f}", flush=True)
            told = 0
        if step % 150 == 0:
            print(first_right(model, tokenizer, watched), flush=True)
    torch.save({"model": model.state_dict(), "config": asdict(model.config)}, options.checkpoint)
    print(first_right(model, tokenizer, watched))


if __name__ == "__main__":
    main()
