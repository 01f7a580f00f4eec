"""daybreak-mini in PyTorch: RMS norms, rotary attention with shared key heads, SwiGLU, tied embeddings."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from chat_config import ChatConfig
from chat_ops import Ops


class Norm(nn.Module):
    def __init__(self, width: int, epsilon: float, ops: Ops) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon, self.ops = epsilon, ops

    def forward(self, x: Tensor) -> Tensor:
        return self.ops.norm(x, self.weight, self.epsilon)


class Layer(nn.Module):
    def __init__(self, config: ChatConfig, ops: Ops) -> None:
        super().__init__()
        self.config, self.ops = config, ops
        width, hidden = config.width, config.hidden
        self.attention_norm = Norm(width, config.norm_epsilon, ops)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, config.kv_width, bias=False)
        self.value = nn.Linear(width, config.kv_width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.mlp_norm = Norm(width, config.norm_epsilon, ops)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def attend(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """What each position gathers from those before it, before the output matrix."""
        length, head, config = x.shape[1], self.config.head_width, self.config
        query = self.ops.split(self.query(x), config.heads, turn, 1 / math.sqrt(head))
        key = self.ops.split(self.key(x), config.kv_heads, turn)
        value = self.ops.split(self.value(x), config.kv_heads)
        # Query heads of one group stand below each other, so that keys need no copies.
        rows = config.heads // config.kv_heads * length
        weights = self.ops.attention_weights(torch.bmm(query.view(-1, rows, head), key.transpose(1, 2)))
        return self.ops.join(torch.bmm(weights, value).view(-1, length, head), config.heads)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor], chosen: Tensor | None = None) -> Tensor:
        """The layer's output, for the `chosen` positions alone if there are any, one row each."""
        mixed = self.attend(self.attention_norm(x), turn)
        if chosen is not None:
            x, mixed = x[chosen], mixed[chosen]
        x = x + self.output(mixed)
        inner = self.mlp_norm(x)
        return x + self.down(self.ops.gated(self.gate(inner), self.up(inner)))


class ChatModel(nn.Module):
    def __init__(self, config: ChatConfig, vocabulary: int, ops: Ops | None = None) -> None:
        super().__init__()
        self.config, ops = config, ops or Ops()
        self.embedding = nn.Embedding(vocabulary, config.width)
        self.layers = nn.ModuleList(Layer(config, ops) for _ in range(config.layers))
        self.norm = Norm(config.width, config.norm_epsilon, ops)
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
        x, turn = embedded, (self.cosine[:length], self.sine[:length])
        for index, layer in enumerate(self.layers):
            last = index == len(self.layers) - 1
            x = layer(x, turn, chosen if last else None)
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
