"""daybreak-mini in PyTorch: RMS norms, rotary attention with shared key heads, SwiGLU, tied embeddings."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from chat_config import ChatConfig


class Norm(nn.Module):
    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weight


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary positions on halves of a head (the export reorders rows to llama.cpp's pairs)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


class Layer(nn.Module):
    def __init__(self, config: ChatConfig) -> None:
        super().__init__()
        self.config = config
        width, hidden = config.width, config.hidden
        self.attention_norm = Norm(width, config.norm_epsilon)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, config.kv_width, bias=False)
        self.value = nn.Linear(width, config.kv_width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.mlp_norm = Norm(width, config.norm_epsilon)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def attend(self, x: Tensor, cosine: Tensor, sine: Tensor, mask: Tensor) -> Tensor:
        """What each position gathers from those before it, before the output matrix."""
        batch, length, width = x.shape
        head, groups = self.config.head_width, self.config.heads // self.config.kv_heads
        query = self.query(x).view(batch, length, self.config.heads, head).transpose(1, 2)
        key = self.key(x).view(batch, length, self.config.kv_heads, head).transpose(1, 2)
        value = self.value(x).view(batch, length, self.config.kv_heads, head).transpose(1, 2)
        query = rotate(query * (1 / math.sqrt(head)), cosine, sine)
        key = rotate(key, cosine, sine)
        # Query heads of one group stand below each other, so that keys need no copies.
        query = query.reshape(batch * self.config.kv_heads, groups * length, head)
        scores = torch.bmm(query, key.reshape(-1, length, head).transpose(1, 2))
        weights = torch.softmax(scores.view(-1, groups, length, length) + mask, dim=-1)
        mixed = torch.bmm(weights.view(-1, groups * length, length), value.reshape(-1, length, head))
        mixed = mixed.view(batch, self.config.heads, length, head).transpose(1, 2)
        return mixed.reshape(batch, length, width)

    def forward(
        self, x: Tensor, cosine: Tensor, sine: Tensor, mask: Tensor, chosen: Tensor | None = None
    ) -> Tensor:
        """The layer's output, for the `chosen` positions alone if there are any, one row each."""
        mixed = self.attend(self.attention_norm(x), cosine, sine, mask)
        if chosen is not None:
            x, mixed = x[chosen], mixed[chosen]
        x = x + self.output(mixed)
        inner = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(inner)) * self.up(inner))


class ChatModel(nn.Module):
    def __init__(self, config: ChatConfig, vocabulary: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocabulary, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = Norm(config.width, config.norm_epsilon)
        half = config.head_width // 2
        frequency = config.rope_base ** (-torch.arange(half) / half)
        angle = torch.arange(config.context)[:, None] * frequency[None]
        self.register_buffer("cosine", angle.cos(), persistent=False)
        self.register_buffer("sine", angle.sin(), persistent=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2 and name != "embedding.weight":
                nn.init.normal_(parameter, std=0.5 / math.sqrt(parameter.shape[1]))
            if name.endswith(("output.weight", "down.weight")):
                nn.init.zeros_(parameter)

    def hidden(self, embedded: Tensor, chosen: Tensor | None = None) -> Tensor:
        """The last layer's normalised states for [batch, length, width] inputs, or those of the chosen positions."""
        length = embedded.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        x = embedded
        for index, layer in enumerate(self.layers):
            last = index == len(self.layers) - 1
            x = layer(x, self.cosine[:length], self.sine[:length], mask, chosen if last else None)
        return self.norm(x)

    def loss(self, ids: Tensor, learn: Tensor) -> Tensor:
        """Mean cross-entropy over the tokens marked in `learn`, each predicted from those before it."""
        chosen = learn[:, 1:]
        # The last layer's states are of use only where there is something to learn.
        states = self.hidden(self.embedding(ids[:, :-1]), chosen)
        return F.cross_entropy(states @ self.embedding.weight.T, ids[:, 1:][chosen])

    @torch.no_grad()
    def generate(self, ids: list[int], limit: int, stop: int) -> list[int]:
        """Greedy continuation without a cache: for looking at a model while it learns."""
        sequence = list(ids)
        while len(sequence) < len(ids) + limit:
            states = self.hidden(self.embedding(torch.tensor([sequence])))
            following = int((states[0, -1] @ self.embedding.weight.T).argmax())
            if following == stop:
                break
            sequence.append(following)
        return sequence[len(ids) :]


def exported(model: ChatModel) -> dict[str, np.ndarray]:
    """Parameters with query and key rows in llama.cpp's order: the two halves of each head interleaved."""
    result: dict[str, np.ndarray] = {}
    for name, tensor in model.state_dict().items():
        array = tensor.detach().float().numpy()
        if name.endswith(("query.weight", "key.weight")):
            head = model.config.head_width
            array = array.reshape(-1, 2, head // 2, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        result[name] = array
    return result
