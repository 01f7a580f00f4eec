"""daybreak-mini-embed in PyTorch: a small BERT with mean pooling, whose vectors have length one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


BALLAST = 0
"""A component that the result leaves out. The norms give every token the same length, so a token that has much there
has little elsewhere: that is how words that everybody uses come to weigh little in the mean."""


@dataclass(frozen=True)
class EmbedConfig:
    width: int = 256
    layers: int = 1
    heads: int = 8
    hidden: int = 512
    context: int = 256
    norm_epsilon: float = 1e-12


class Block(nn.Module):
    def __init__(self, config: EmbedConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query, self.key, self.value, self.output = (
            nn.Linear(config.width, config.width, bias=False) for _ in range(4)
        )
        self.attention_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)
        self.output_norm = nn.LayerNorm(config.width, config.norm_epsilon)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        query, key, value = (
            part(x).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(2, 3) * (width // self.heads) ** -0.5 + mask
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, width)
        x = self.attention_norm(x + self.output(mixed))
        return self.output_norm(x + self.down(F.gelu(self.up(x), approximate="tanh")))


class EmbedModel(nn.Module):
    def __init__(self, config: EmbedConfig, vocabulary: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocabulary, config.width)
        self.position = nn.Parameter(torch.randn(config.context, config.width) * 0.002)
        self.embedding_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        for block in self.blocks:
            # The first vectors are then sums of words, as embed_words.py takes them to be.
            nn.init.normal_(block.output.weight, std=0.001)
            nn.init.normal_(block.down.weight, std=0.001)
        with torch.no_grad():
            self.blocks[-1].output_norm.weight[BALLAST] = 0  # type: ignore[index, union-attr]

    def states(self, ids: Tensor, real: Tensor) -> Tensor:
        mask = torch.zeros_like(real, dtype=torch.float32).masked_fill(~real, float("-inf"))[:, None, None]
        x = self.embedding_norm(self.embedding(ids) + self.position[: ids.shape[1]])
        for block in self.blocks:
            x = block(x, mask)
        return x

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        weights = real.float()[..., None]
        return F.normalize((self.states(ids, real) * weights).sum(1) / weights.sum(1), dim=-1)
