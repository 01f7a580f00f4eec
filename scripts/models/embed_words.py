"""The first stage of training: words alone, without the block, against all passages at once.

The block begins as nearly nothing, so what is learnt here holds for the whole model, at a twentieth of the price."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embed_data import Pair
from embed_model import EmbedModel
from embed_pages import Question, passages
from embed_queries import cropped, reworded
from wordpiece import WordPiece

WRITTEN, ROWS, CROPS = 160, 48, 64
"""Queries of a step: written questions, questions to rows of tables, and parts of passages."""
KEPT_SHARE = 0.85
"""Words of a passage that a step sees."""
RATE = 0.004
REPORT_STEPS = 200


class WordStage:
    def __init__(
        self, model: EmbedModel, tokenizer: WordPiece, questions: list[Question], rows: dict[str, list[Question]]
    ) -> None:
        self.model, self.tokenizer, self.questions, self.rows = model, tokenizer, questions, rows
        self.passages = [tokenizer.encode(passage.text, model.config.context) for passage in passages()]

    def vectors(self, encoded: list[list[int]], kept: float = 1) -> Tensor:
        """What the model would give if its block did nothing."""
        last: nn.LayerNorm = self.model.blocks[-1].output_norm  # type: ignore[assignment, union-attr]
        words = last(self.model.embedding_norm(self.model.embedding.weight))
        ids = torch.tensor([token for tokens in encoded for token in tokens])
        starts = torch.tensor([0, *map(len, encoded)])[:-1].cumsum(0)
        weights = (torch.rand(len(ids)) < kept).float()
        return F.normalize(F.embedding_bag(ids, words, starts, mode="sum", per_sample_weights=weights), dim=-1)

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [self.tokenizer.encode(text, self.model.config.context) for text in texts]

    def page_loss(self, rng: Random, temperature: float) -> Tensor:
        asked = rng.sample(self.questions, WRITTEN)
        asked += [rng.choice(self.rows[page]) for page in rng.choices(sorted(self.rows), k=ROWS)]
        queries = [(reworded(rng, question.text), question.passages) for question in asked]
        queries += [cropped(rng, index) for index in rng.sample(range(len(self.passages)), CROPS)]
        scores = self.vectors(self.encode([text for text, _ in queries])) @ self.vectors(self.passages, KEPT_SHARE).T
        wrong = torch.ones_like(scores, dtype=torch.bool)
        for row, (_, answers) in enumerate(queries):
            wrong[row, list(answers)] = False
        scores = scores / temperature
        return (scores.logsumexp(1) - scores.masked_fill(wrong, float("-inf")).logsumexp(1)).mean()

    def train(
        self,
        rng: Random,
        minutes: float,
        temperature: float,
        pairs_of: Callable[[Random], list[Pair]],
        pair_loss: Callable[[Tensor, Tensor, list[Pair]], Tensor],
        report: Callable[[int, float], None],
    ) -> None:
        norms = [self.model.embedding_norm.weight, self.model.embedding_norm.bias]
        optimiser = torch.optim.AdamW([self.model.embedding.weight, *norms], lr=RATE, weight_decay=0.01)
        begun, step = time.process_time(), 0
        while (share := (time.process_time() - begun) / (minutes * 60)) < 1:
            for group in optimiser.param_groups:
                group["lr"] = RATE * min(1, 2 * (1 - share))
            pairs = pairs_of(rng)
            first, second = (self.vectors(self.encode([pair[side] for pair in pairs])) for side in (0, 1))
            loss = self.page_loss(rng, temperature) + pair_loss(first, second, pairs)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            step += 1
            if step % REPORT_STEPS == 0:
                report(step, float(loss))
