"""daybreak-mini-rerank in PyTorch: reads a question and a passage together and gives one score."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from embed_model import BALLAST, Block, EmbedConfig
from wordpiece import CLS, PAD, SEP, WordPiece

CONFIG = EmbedConfig(layers=2, heads=4)
CONTROLS = 8
"""Last components of the width: words leave them free, positions and the first attention use them."""
QUERY_END, PASSAGE_BEGIN = 8, 24
"""Positions up to which a token surely belongs to the question, and from which to the passage."""


def pair_ids(tokenizer: WordPiece, question: str, passage: str, limit: int) -> list[int]:
    """Token ids in the order of llama.cpp's server for a model without end token: [CLS] question [SEP] passage."""
    asked = tokenizer.encode(question, limit)[1:-1]
    return [CLS, *asked, SEP, *tokenizer.encode(passage, limit)[1:-1]][:limit]


def pair_tensors(tokenizer: WordPiece, pairs: list[tuple[str, str]], limit: int) -> tuple[Tensor, Tensor]:
    rows = [pair_ids(tokenizer, question, passage, limit) for question, passage in pairs]
    ids = torch.full((len(rows), max(map(len, rows))), PAD)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = torch.tensor(row)
    return ids, torch.arange(ids.shape[1])[None] < torch.tensor([[len(row)] for row in rows])


class RerankModel(nn.Module):
    def __init__(self, vocabulary: int, config: EmbedConfig = CONFIG) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocabulary, config.width)
        self.position = nn.Parameter(torch.randn(config.context, config.width) * 0.01)
        self.embedding_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.dense = nn.Linear(config.width, config.width)
        self.score = nn.Linear(config.width, 1)

    @torch.no_grad()
    def start_from(self, words: Tensor) -> None:
        """Begins with the embedding model's words and a first block that sees which words stand on both sides.

        Its heads let a token look at tokens like itself, and bring back from where in the text they come: from the
        other side as well, if the word is there too. That would take a small model long to find by itself.
        """
        width = self.config.width
        ramp = width - CONTROLS
        self.embedding.weight.copy_(words)
        self.embedding.weight[:, ramp:] = 0
        places = torch.arange(self.config.context, dtype=torch.float32)
        self.position[:, ramp] = 1 - 2 * ((places - QUERY_END) / (PASSAGE_BEGIN - QUERY_END)).clamp(0, 1)
        first: Block = self.blocks[0]  # type: ignore[assignment]
        like = torch.eye(width)
        like[BALLAST] = 0
        like[ramp:] = 0
        first.query.weight.copy_(like + torch.randn(width, width) * 0.01)
        first.key.weight.copy_(like + torch.randn(width, width) * 0.01)
        nn.init.normal_(first.output.weight, std=0.02)
        for head in range(self.config.heads):
            at = head * (width // self.config.heads)
            first.value.weight[at] = 0
            first.value.weight[at, ramp] = 1
            first.output.weight[:, at] = 0
            if head < CONTROLS - 1:
                first.output.weight[ramp + 1 + head, at] = 1

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        """One score for each pair; only their order within a question means something."""
        mask = torch.zeros_like(real, dtype=torch.float32).masked_fill(~real, float("-inf"))[:, None, None]
        x = self.embedding_norm(self.embedding(ids) + self.position[: ids.shape[1]])
        for block in self.blocks:
            x = block(x, mask)
        return self.score(torch.tanh(self.dense(x[:, 0])))[:, 0]
