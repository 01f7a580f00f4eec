"""Searches our own pages with a model in training, to find hard wrong answers and to score the development set."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

from embed_data import triple
from embed_model import EmbedModel
from embed_pages import Question, passages
from wordpiece import PAD, WordPiece


def tensors(texts: list[str], tokenizer: WordPiece, limit: int) -> tuple[Tensor, Tensor]:
    """Token ids of the texts, padded to the longest, and where they are no padding."""
    encoded = [tokenizer.encode(text, limit) for text in texts]
    ids = torch.full((len(texts), max(map(len, encoded))), PAD)
    for row, tokens in enumerate(encoded):
        ids[row, : len(tokens)] = torch.tensor(tokens)
    real = torch.arange(ids.shape[1])[None] < torch.tensor([[len(tokens)] for tokens in encoded])
    return ids, real


@torch.no_grad()
def embed(model: EmbedModel, tokenizer: WordPiece, texts: list[str]) -> Tensor:
    """Vectors of any number of texts; those of like length are computed together."""
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    result = torch.empty(len(texts), model.config.width)
    for start in range(0, len(order), 64):
        chosen = order[start : start + 64]
        result[chosen] = model(*tensors([texts[index] for index in chosen], tokenizer, model.config.context))
    return result


def index_of_passages(model: EmbedModel, tokenizer: WordPiece) -> Tensor:
    return embed(model, tokenizer, [passage.text for passage in passages()])


@dataclass
class Found:
    """Shares of questions whose first passage lies on the right page, and in the right section."""

    page: float
    section: float


def search(vectors: Tensor, index: Tensor, questions: list[Question]) -> Found:
    first = (vectors @ index.T).argmax(1).tolist()
    on_page = sum(passages()[best].page == question.page for best, question in zip(first, questions))
    in_section = sum(best in question.passages for best, question in zip(first, questions))
    return Found(on_page / len(questions), in_section / len(questions))


def triples_right(model: EmbedModel, tokenizer: WordPiece, count: int = 400) -> float:
    """Share of held-out triples that are ordered rightly."""
    rng = Random("triples")
    anchors, rights, wrongs = (list(column) for column in zip(*(triple(rng) for _ in range(count))))
    vectors = [embed(model, tokenizer, texts) for texts in (anchors, rights, wrongs)]
    return float(((vectors[0] * vectors[1]).sum(1) > (vectors[0] * vectors[2]).sum(1)).float().mean())
