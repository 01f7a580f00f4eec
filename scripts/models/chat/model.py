"""daybreak-mini in PyTorch: RMS norms, rotary attention, SwiGLU, tied embeddings. Its parameters have
their names of GGUF."""

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


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * self.weight


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn_norm = Norm()
        self.attn_q, self.attn_k, self.attn_v = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.attn_output = nn.Linear(WIDTH, WIDTH, bias=False)
        self.ffn_norm = Norm()
        self.ffn_gate, self.ffn_up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.ffn_down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor, mask: Tensor) -> Tensor:
        batch, length, _ = x.shape

        def turned(parted: Tensor) -> Tensor:
            # The halves of a head are rotated; the export reorders rows to llama.cpp's pairs.
            first, second = parted.chunk(2, dim=-1)
            return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)

        y = self.attn_norm(x)
        query, key, value = (
            part(y).view(batch, length, HEADS, HEAD).transpose(1, 2) for part in (self.attn_q, self.attn_k, self.attn_v)
        )
        scores = (turned(query) / math.sqrt(HEAD)) @ turned(key).transpose(2, 3) + mask
        mixed = scores.softmax(-1) @ value
        x = x + self.attn_output(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        y = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(y)) * self.ffn_up(y))


class ChatModel(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.token_embd = nn.Embedding(vocabulary, WIDTH)
        self.blk = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.output_norm = Norm()
        frequency = ROPE_BASE ** (-torch.arange(HEAD // 2) / (HEAD // 2))
        angle = torch.arange(CONTEXT)[:, None] * frequency[None]
        self.register_buffer("cosine", angle.cos(), persistent=False)
        self.register_buffer("sine", angle.sin(), persistent=False)
        nn.init.normal_(self.token_embd.weight, std=0.02)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2 and name != "token_embd.weight":
                nn.init.normal_(parameter, std=0.5 / math.sqrt(parameter.shape[1]))
            if name.endswith(("attn_output.weight", "ffn_down.weight")):
                nn.init.zeros_(parameter)

    def hidden(self, ids: Tensor) -> Tensor:
        """The last layer's normalized states for [batch, length] token ids."""
        length = ids.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        x = self.token_embd(ids)
        for layer in self.blk:
            x = layer(x, self.cosine[:length], self.sine[:length], mask)
        return self.output_norm(x)

    def loss(self, ids: Tensor, learn: Tensor) -> Tensor:
        """Mean cross-entropy over the tokens marked in `learn`, each predicted from those before it."""
        chosen = learn[:, 1:]
        states = self.hidden(ids[:, :-1])[chosen]
        return F.cross_entropy(states @ self.token_embd.weight.T, ids[:, 1:][chosen])


def _reordered(name: str, rows: np.ndarray, split: tuple[int, int]) -> np.ndarray:
    """Query or key rows of each head with halves interleaved to pairs (2, HEAD // 2), or pairs parted to halves."""
    if not name.endswith(("attn_q.weight", "attn_k.weight")):
        return rows
    return rows.reshape(-1, *split, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def gguf_tensors(model: ChatModel) -> dict[str, np.ndarray]:
    """The weights in the order that llama.cpp has, of tensors and of query and key rows."""
    state = {name: tensor.detach().float().numpy() for name, tensor in model.state_dict().items()}
    return {name: _reordered(name, rows, (2, HEAD // 2)) for name, rows in state.items()}


def load_model(path: Path, vocabulary: int) -> ChatModel:
    """The model of a checkpoint or of a GGUF."""
    model = ChatModel(vocabulary)
    if path.suffix == ".gguf":
        _, read = read_gguf(path)
        parted = {name: _reordered(name, rows, (HEAD // 2, 2)) for name, rows in read.items()}
        model.load_state_dict({name: torch.from_numpy(np.array(rows)) for name, rows in parted.items()})
    else:
        model.load_state_dict(torch.load(path)["model"])
    return model
