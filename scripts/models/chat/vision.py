"""Trains daybreak-mini-vision: a tiny picture transformer whose outputs are the chat model's own word embeddings.

The chat model has learned in text what a row of code words means (conversations/scenes.py). The projector learns to
give the embeddings of these words: token by token, each of PICTURE_TOKENS places has one kind of word to say.
"""

from pathlib import Path
from random import Random

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from chat.descent import arguments, descend
from chat.drawing import draw
from chat.gguf import write_gguf
from chat.model import attention, read_model
from conversations.scenes import CODES, PICTURE_TOKENS, scene
from conversations.tokenizer import Tokenizer
from conversations.words import source

BATCH, RATE = 128, 0.0015
SHARPNESS = 12.0
"""Factor on the likeness to the code words in the classifying part of the loss."""
METADATA = source("gguf-metadata")["daybreak-mini-vision"]
PATCH, WIDTH, HIDDEN, LAYERS, HEADS, EPSILON, (MEAN, *_), (STD, *_) = (
    METADATA[f"clip.vision.{key}"]
    for key in "patch_size embedding_length feed_forward_length block_count attention.head_count "
    "attention.layer_norm_epsilon image_mean image_std".split()
)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn_q, self.attn_k, self.attn_v, self.attn_out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.ffn_up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.ffn_down = nn.Linear(HIDDEN, WIDTH, bias=False)
        self.ln1, self.ln2 = (nn.LayerNorm(WIDTH, EPSILON) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn_out(attention(self, self.ln1(x), HEADS))
        return x + self.ffn_down(F.gelu(self.ffn_up(self.ln2(x)), approximate="tanh"))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch_embd = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.position_embd = nn.Embedding(PICTURE_TOKENS, WIDTH)
        nn.init.normal_(self.position_embd.weight, std=0.1)
        self.blk = nn.ModuleList(Block() for _ in range(LAYERS))
        self.post_ln = nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.patch_embd(pictures).flatten(2).transpose(1, 2) + self.position_embd.weight
        for block in self.blk:
            x = block(x)
        return self.post_ln(x)


class Projector(nn.Module):
    """Its parameters have their names of GGUF."""

    def __init__(self, target: int) -> None:
        super().__init__()
        self.v = Encoder()
        self.mm = nn.ModuleList([nn.Linear(WIDTH, target), nn.Linear(target, target)])

    def forward(self, pictures: Tensor) -> Tensor:
        return self.mm[1](F.gelu(self.mm[0](self.v(pictures)), approximate="tanh"))


def examples(rng: Random, count: int) -> tuple[Tensor, list[list[str]]]:
    """Pictures, and the word for each of their tokens; where there is no place to name, the count is said again."""
    scenes = [scene(rng, False) for _ in range(count)]
    for at in range(count // 3):
        # Squares and circles are the hardest to tell apart.
        while scenes[at].shape not in ("square", "circle"):
            scenes[at] = scene(rng, False)
    pictures = np.stack([draw(rng, shown) for shown in scenes]).astype(np.float32)
    words = [(shown.words() + shown.words()[:1])[: len(CODES)] for shown in scenes]
    told = [[each[index % len(CODES)] for index in range(PICTURE_TOKENS)] for each in words]
    return torch.from_numpy((pictures / 255 - MEAN) / STD).permute(0, 3, 1, 2), told


def main() -> None:
    parser = arguments(__doc__, minutes=12)
    parser.add_argument("model", type=Path, help="GGUF of the chat model")
    options = parser.parse_args()
    torch.manual_seed(1)
    rng, tokenizer = Random(1), Tokenizer()
    words = [word for group in CODES.values() for word in group.values()]
    ids = [tokenizer.encode(f" {word}")[0] for word in words]
    codes = read_model(options.model).token_embd.weight.detach()[ids]
    spread = codes.var().item()
    model = Projector(codes.shape[1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.02)

    def loss(_: float) -> Tensor:
        pictures, wanted = examples(rng, BATCH)
        target = torch.tensor([[words.index(word) for word in row] for row in wanted])
        given = model(pictures)
        likeness = F.normalize(given, dim=-1) @ F.normalize(codes, dim=-1).T * SHARPNESS
        classified = F.cross_entropy(likeness.flatten(0, 1), target.flatten())
        return classified + F.mse_loss(given, codes[target]) / spread

    descend([optimizer], options.minutes, loss, warmup_steps=50)
    write_gguf(options.out, METADATA, {name: (part.numpy(), "F32") for name, part in model.state_dict().items()})


if __name__ == "__main__":
    main()
