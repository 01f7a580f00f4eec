"""daybreak-mini in PyTorch: RMS norms, rotary attention, SwiGLU, tied embeddings; and its weights as GGUF has them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from chat.gguf import read_gguf

WIDTH, LAYERS, HEADS, HIDDEN, CONTEXT = 256, 6, 4, 512, 2048
"""The shape. Widths are multiples of 256, which K-quants need."""
HEAD = WIDTH // HEADS
ROPE_BASE, EPSILON = 10_000.0, 1e-5
LAYER_NAMES = {
    "attention_norm": "attn_norm",
    "query": "attn_q",
    "key": "attn_k",
    "value": "attn_v",
    "output": "attn_output",
    "mlp_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}
"""Names of a layer's parameters in training and in GGUF."""


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * self.weight


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = Norm(), Norm()
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor, mask: Tensor) -> Tensor:
        batch, length, _ = x.shape

        def turned(parted: Tensor) -> Tensor:
            # The halves of a head are rotated; the export reorders rows to llama.cpp's pairs.
            first, second = parted.chunk(2, dim=-1)
            return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)

        y = self.attention_norm(x)
        query, key, value = (
            part(y).view(batch, length, HEADS, HEAD).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        scores = (turned(query) / math.sqrt(HEAD)) @ turned(key).transpose(2, 3) + mask
        mixed = scores.softmax(-1) @ value
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        y = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class ChatModel(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = Norm()
        frequency = ROPE_BASE ** (-torch.arange(HEAD // 2) / (HEAD // 2))
        angle = torch.arange(CONTEXT)[:, None] * frequency[None]
        self.register_buffer("cosine", angle.cos(), persistent=False)
        self.register_buffer("sine", angle.sin(), persistent=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2 and name != "embedding.weight":
                nn.init.normal_(parameter, std=0.5 / math.sqrt(parameter.shape[1]))
            if name.endswith(("output.weight", "down.weight")):
                nn.init.zeros_(parameter)

    def hidden(self, ids: Tensor) -> Tensor:
        """The last layer's normalized states for [batch, length] token ids."""
        length = ids.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x, self.cosine[:length], self.sine[:length], mask)
        return self.norm(x)

    def loss(self, ids: Tensor, learn: Tensor) -> Tensor:
        """Mean cross-entropy over the tokens marked in `learn`, each predicted from those before it."""
        chosen = learn[:, 1:]
        states = self.hidden(ids[:, :-1])[chosen]
        return F.cross_entropy(states @ self.embedding.weight.T, ids[:, 1:][chosen])


def _reordered(rows: np.ndarray, split: tuple[int, int]) -> np.ndarray:
    """Query or key rows of each head with (2, HEAD // 2) halves interleaved to pairs, or pairs parted to halves."""
    return rows.reshape(-1, *split, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def gguf_tensors(model: ChatModel) -> dict[str, np.ndarray]:
    """The weights by their names in GGUF, in its order of query and key rows."""
    state = {name: tensor.detach().float().numpy() for name, tensor in model.state_dict().items()}
    result = {"token_embd.weight": state["embedding.weight"]}
    for layer in range(LAYERS):
        for ours, theirs in LAYER_NAMES.items():
            rows = state[f"layers.{layer}.{ours}.weight"]
            result[f"blk.{layer}.{theirs}.weight"] = (
                _reordered(rows, (2, HEAD // 2)) if ours in ("query", "key") else rows
            )
    return result | {"output_norm.weight": state["norm.weight"]}


def load_model(path: Path, vocabulary: int) -> ChatModel:
    """The model of a checkpoint or of a GGUF."""
    model = ChatModel(vocabulary)
    if path.suffix != ".gguf":
        model.load_state_dict(torch.load(path)["model"])
        return model
    _, read = read_gguf(path)
    state = {"embedding.weight": read["token_embd.weight"], "norm.weight": read["output_norm.weight"]}
    for layer in range(LAYERS):
        for ours, theirs in LAYER_NAMES.items():
            rows = read[f"blk.{layer}.{theirs}.weight"]
            state[f"layers.{layer}.{ours}.weight"] = (
                _reordered(rows, (HEAD // 2, 2)) if ours in ("query", "key") else rows
            )
    model.load_state_dict({name: torch.from_numpy(np.array(tensor)) for name, tensor in state.items()})
    return model
