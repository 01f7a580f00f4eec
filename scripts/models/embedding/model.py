"""daybreak-mini-embed in PyTorch: a small BERT with mean pooling, whose vectors have length one. Its parameters
have their names of GGUF.

It starts as a search by weighted words: words of one stem or meaning begin alike, common words light. Training has to
learn only what words do not tell."""

import math
import zlib
from collections import Counter
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from chat.gguf import write_gguf
from chat.model import attention
from conversations.words import source
from embedding.pages import STOP_WORDS, passages
from embedding.texts import SYNONYMS
from embedding.wordpiece import PAD, PHANTOM, SPECIALS, WordPiece, stem, words

METADATA = source("gguf-metadata")["daybreak-mini-embed"]
WIDTH, LAYERS, HIDDEN, CONTEXT, HEADS, EPSILON = (
    METADATA[f"bert.{key}"]
    for key in "embedding_length block_count feed_forward_length context_length attention.head_count "
    "attention.layer_norm_epsilon".split()
)
TOKEN_NORMAL, TOKEN_CONTROL = 1, 3
BALLAST = 0
"""A component that the result leaves out. The norms give every token the same length, so a token that has much there
has little elsewhere: that is how words that everybody uses come to weigh little in the mean."""
STEM_SHARE, WORD_SHARE, MEANING_SHARE = 0.7, 0.5, 0.5
SCALE = 4.0
"""Length of a word's vector: at this one a step of the optimizer turns it a little, not far."""
LEAST_WEIGHT, UNSEEN_WEIGHT, PART_WEIGHT = 0.08, 1.0, 0.3


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn_q, self.attn_k, self.attn_v = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.attn_output = nn.Linear(WIDTH, WIDTH, bias=False)
        self.attn_output_norm = nn.LayerNorm(WIDTH, EPSILON)
        self.ffn_up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.ffn_down = nn.Linear(HIDDEN, WIDTH, bias=False)
        self.layer_output_norm = nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attn_output_norm(x + self.attn_output(attention(self, x, HEADS, mask)))
        return self.layer_output_norm(x + self.ffn_down(F.gelu(self.ffn_up(x), approximate="tanh")))


class EmbedModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokenizer = WordPiece()
        self.token_embd = nn.Embedding(len(self.tokenizer.tokens), WIDTH)
        self.position_embd = nn.Embedding(CONTEXT, WIDTH)
        nn.init.normal_(self.position_embd.weight, std=0.002)
        self.token_types = nn.Embedding(2, WIDTH)
        nn.init.zeros_(self.token_types.weight)
        self.token_types.requires_grad_(False)
        self.token_embd_norm = nn.LayerNorm(WIDTH, EPSILON)
        self.blk = nn.ModuleList(Block() for _ in range(LAYERS))
        for block in self.blk:
            # The first vectors are then sums of words, as the first stage of training takes them to be.
            nn.init.normal_(block.attn_output.weight, std=0.001)
            nn.init.normal_(block.ffn_down.weight, std=0.001)
        with torch.no_grad():
            self.blk[-1].layer_output_norm.weight[BALLAST] = 0
            self.token_embd.weight.copy_(first_vectors(self.tokenizer.tokens))

    def forward(self, texts: list[str], limit: int = CONTEXT) -> Tensor:
        encoded = [self.tokenizer.encode(text, limit) for text in texts]
        length = max(map(len, encoded))
        ids = torch.tensor([tokens + [PAD] * (length - len(tokens)) for tokens in encoded])
        real = torch.arange(length)[None] < torch.tensor([[len(tokens)] for tokens in encoded])
        mask = torch.zeros(real.shape).masked_fill(~real, float("-inf"))[:, None, None]
        x = self.token_embd_norm(self.token_embd(ids) + self.position_embd.weight[:length])
        for block in self.blk:
            x = block(x, mask)
        weights = real.float()[..., None]
        return F.normalize((x * weights).sum(1) / weights.sum(1), dim=-1)

    @torch.no_grad()
    def embed(self, texts: list[str]) -> Tensor:
        """Vectors of any number of texts; those of like length are computed together."""
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        result = torch.empty(len(texts), WIDTH)
        for start in range(0, len(order), 64):
            chosen = order[start : start + 64]
            result[chosen] = self([texts[index] for index in chosen])
        return result


def _direction(name: str) -> Tensor:
    """A random vector of length about one, the same for the same name."""
    return torch.randn(WIDTH, generator=torch.Generator().manual_seed(zlib.crc32(name.encode()))) / math.sqrt(WIDTH)


def _weights(tokens: list[str]) -> list[float]:
    """How much each token tells, 0 to 1: much if few passages hold it."""
    total = len(passages())
    seen = Counter(word for passage in passages() for word in set(words(passage.text)))
    result = []
    for token in tokens:
        word = token.removeprefix(PHANTOM)
        if word in STOP_WORDS or not any(c.isalnum() for c in word):
            result.append(LEAST_WEIGHT)
        elif word in seen:
            result.append(max(LEAST_WEIGHT, min(1.0, math.log(total / seen[word]) / math.log(total))))
        else:
            result.append(UNSEEN_WEIGHT if token.startswith(PHANTOM) else PART_WEIGHT)
    return result


def first_vectors(tokens: list[str]) -> Tensor:
    """One row for each token of the vocabulary."""
    meanings: dict[str, list[str]] = {}
    for group in SYNONYMS:
        for word in group.split():
            meanings.setdefault(stem(word), []).append(group)
    rows = []
    for token, weight in zip(tokens, _weights(tokens)):
        word_stem = stem(token.removeprefix(PHANTOM))
        row = WORD_SHARE * _direction(token) + STEM_SHARE * _direction(f"stem {word_stem}")
        groups = meanings.get(word_stem, [])
        for group in groups:
            row += MEANING_SHARE / math.sqrt(len(groups)) * _direction(f"meaning {group}")
        row[BALLAST] = 0
        row /= row.norm()
        row[BALLAST] = math.sqrt(1 / weight**2 - 1)
        rows.append(row * SCALE / row.norm())
    return torch.stack(rows)


def write_model(model: EmbedModel, path: Path) -> None:
    tokens = model.tokenizer.tokens
    types = [TOKEN_CONTROL] * len(SPECIALS) + [TOKEN_NORMAL] * (len(tokens) - len(SPECIALS))
    told = METADATA | {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}
    whole = ("position_embd.weight", "token_types.weight")
    tensors = {
        name: (tensor.numpy(), "F32" if tensor.ndim == 1 or name in whole else "Q8_0")
        for name, tensor in model.state_dict().items()
    }
    write_gguf(path, told, tensors)
