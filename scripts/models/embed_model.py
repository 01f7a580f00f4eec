"""daybreak-mini-embed in PyTorch: a small BERT with mean pooling, whose vectors have length one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class EmbedConfig:
    width: int = 128
    layers: int = 2
    heads: int = 4
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
        self.position = nn.Parameter(torch.randn(config.context, config.width) * 0.01)
        self.embedding_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        nn.init.normal_(self.embedding.weight, std=0.1)
        for block in self.blocks:
            # The first vectors are then sums of words: a good start for likeness.
            nn.init.normal_(block.output.weight, std=0.01)
            nn.init.normal_(block.down.weight, std=0.01)

    def states(self, ids: Tensor, real: Tensor) -> Tensor:
        mask = torch.zeros_like(real, dtype=torch.float32).masked_fill(~real, float("-inf"))[:, None, None]
        x = self.embedding_norm(self.embedding(ids) + self.position[: ids.shape[1]])
        for block in self.blocks:
            x = block(x, mask)
        return x

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        weights = real.float()[..., None]
        return F.normalize((self.states(ids, real) * weights).sum(1) / weights.sum(1), dim=-1)
