"""daybreak-mini in PyTorch: RMS norms, rotary attention, SwiGLU, tied embeddings. Its parameters have
their names of GGUF."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from chat.gguf import read_tensors, write_gguf
from conversations.template import TEMPLATE
from conversations.tokenizer import Tokenizer
from conversations.words import source

METADATA = source("gguf-metadata")["daybreak-mini"]
WIDTH, LAYERS, HIDDEN, CONTEXT, HEADS, EPSILON, HEAD, ROPE_BASE = (
    METADATA[f"llama.{key}"]
    for key in "embedding_length block_count feed_forward_length context_length attention.head_count "
    "attention.layer_norm_rms_epsilon rope.dimension_count rope.freq_base".split()
)
"""The shape, from the metadata; what is null there is filled in by write_model. Widths are multiples of 256, which
K-quants need."""


def attention(
    block: nn.Module, x: Tensor, heads: int, mask: Tensor | float = 0, turned: Callable[[Tensor], Tensor] = lambda x: x
) -> Tensor:
    """Attention by a block's attn_q, attn_k and attn_v, before its output matrix; `turned` rotates queries and keys."""
    query, key, value = (
        part(x).view(*x.shape[:2], heads, -1).transpose(1, 2) for part in (block.attn_q, block.attn_k, block.attn_v)
    )
    scores = turned(query) @ turned(key).transpose(2, 3) * query.shape[-1] ** -0.5 + mask
    return (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)


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
        def turned(head: Tensor) -> Tensor:
            # The halves of a head are rotated; the export reorders rows to llama.cpp's pairs.
            first, second = head.chunk(2, dim=-1)
            return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)

        x = x + self.attn_output(attention(self, self.attn_norm(x), HEADS, mask, turned))
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


def write_model(model: ChatModel, path: Path) -> None:
    """Writes the weights in the order that llama.cpp has, of tensors and of query and key rows."""
    tokenizer = Tokenizer()
    told = METADATA | {
        "llama.vocab_size": len(tokenizer),
        "tokenizer.ggml.tokens": tokenizer.tokens,
        "tokenizer.ggml.scores": tokenizer.scores,
        "tokenizer.ggml.token_type": tokenizer.types,
        "tokenizer.chat_template": TEMPLATE.read_text(),
    }
    state = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    ordered = {name: _reordered(name, rows, (2, HEAD // 2)) for name, rows in state.items()}
    write_gguf(path, told, {name: (rows, "Q8_0" if rows.ndim == 2 else "F32") for name, rows in ordered.items()})


def read_model(path: Path) -> ChatModel:
    tensors = read_tensors(path)
    model = ChatModel(len(tensors["token_embd.weight"]))
    parted = {name: _reordered(name, rows, (HEAD // 2, 2)) for name, rows in tensors.items()}
    model.load_state_dict({name: torch.from_numpy(np.array(rows)) for name, rows in parted.items()})
    return model
