"""The element-wise parts of the chat model's layers, as PyTorch does them; `compiled_ops.py` does the same faster."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


class Ops:
    """What a layer computes between its matrix products."""

    def norm(self, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """The root-mean-square norm over the last dimension."""
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * weight

    def gated(self, gate: Tensor, up: Tensor) -> Tensor:
        return F.silu(gate) * up

    def split(self, x: Tensor, heads: int, turn: tuple[Tensor, Tensor] | None = None, scale: float = 1.0) -> Tensor:
        """[batch, length, width] as [batch * heads, length, head width]. With `turn`, cosine and sine of each position,
        the halves of a head are rotated by it and scaled (the export reorders rows to llama.cpp's pairs).
        """
        batch, length, width = x.shape
        parted = x.view(batch, length, heads, -1).transpose(1, 2)
        if turn is not None:
            (cosine, sine), (first, second) = turn, (parted * scale).chunk(2, dim=-1)
            parted = torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)
        return parted.reshape(batch * heads, length, width // heads)

    def join(self, x: Tensor, heads: int) -> Tensor:
        """What `split` has parted, together again."""
        _, length, head = x.shape
        return x.view(-1, heads, length, head).transpose(1, 2).reshape(-1, length, heads * head)

    def attention_weights(self, scores: Tensor) -> Tensor:
        """A softmax over each row of [number, rows, length] up to its own position, which is its row modulo length."""
        number, rows, length = scores.shape
        mask = torch.full((length, length), float("-inf")).triu(1)
        return torch.softmax(scores.view(number, -1, length, length) + mask, dim=-1).view(number, rows, length)
