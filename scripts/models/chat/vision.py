"""Trains daybreak-mini-vision: a tiny picture transformer whose outputs are the chat model's own word embeddings.

The chat model has learnt in text what a row of code words means (conversations/scenes.py). The projector learns to give
the embeddings of these words: token by token, each of PICTURE_TOKENS places has one kind of word to say.
"""

import argparse
import time
from pathlib import Path
from random import Random

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from chat.drawing import SIZE, draw
from chat.gguf import FILE_TYPES, write_gguf
from chat.model import load_model
from conversations.scenes import BACKGROUNDS, COLOURS, NUMBERS, PICTURE_TOKENS, PLACES, SHAPES, Scene, scene
from conversations.tokenizer import Tokenizer

ROUND = ("square", "circle")
KINDS = 5
"""Count, shape, colour, background, place."""
MEAN = STD = 0.5
BATCH = 128
SHARPNESS = 12.0
"""Factor on the likeness to the code words in the classifying part of the loss."""
PATCH, WIDTH, HIDDEN, LAYERS, HEADS, EPSILON = 16, 128, 384, 3, 4, 1e-6
RATE = 0.0015


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn_q, self.attn_k, self.attn_v, self.attn_out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.ffn_up = nn.Linear(WIDTH, HIDDEN, bias=False)
        self.ffn_down = nn.Linear(HIDDEN, WIDTH, bias=False)
        self.ln1, self.ln2 = (nn.LayerNorm(WIDTH, EPSILON) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        y = self.ln1(x)
        q, k, v = (
            part(y).view(batch, length, HEADS, -1).transpose(1, 2) for part in (self.attn_q, self.attn_k, self.attn_v)
        )
        weights = (q @ k.transpose(2, 3) * (width // HEADS) ** -0.5).softmax(-1)
        x = x + self.attn_out((weights @ v).transpose(1, 2).reshape(batch, length, width))
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


def said(shown: Scene) -> list[str]:
    """The word for each picture token; where there is no place to name, the count is said again."""
    words = shown.words()
    words += [words[0]] * (KINDS - len(words))
    return [words[index % KINDS] for index in range(PICTURE_TOKENS)]


def examples(rng: Random, held: bool, count: int) -> tuple[Tensor, list[list[str]]]:
    scenes = [scene(rng, held) for _ in range(count)]
    if not held:
        # Squares and circles are the hardest to tell apart.
        while (at := next((at for at, one in enumerate(scenes[: count // 3]) if one.shape not in ROUND), -1)) >= 0:
            scenes[at] = scene(rng, held)
    pictures = np.stack([draw(rng, shown) for shown in scenes]).astype(np.float32)
    return torch.from_numpy((pictures / 255 - MEAN) / STD).permute(0, 3, 1, 2), [said(shown) for shown in scenes]


def write(model: Projector, path: Path) -> int:
    metadata = {
        "general.architecture": "clip",
        "general.type": "mmproj",
        "general.name": "daybreak-mini-vision",
        "general.license": "mit",
        "general.file_type": FILE_TYPES["F32"],
        "clip.has_vision_encoder": True,
        "clip.projector_type": "janus_pro",
        "clip.use_gelu": True,
        "clip.vision.image_size": SIZE,
        "clip.vision.patch_size": PATCH,
        "clip.vision.embedding_length": WIDTH,
        "clip.vision.feed_forward_length": HIDDEN,
        "clip.vision.projection_dim": model.mm[1].out_features,
        "clip.vision.block_count": LAYERS,
        "clip.vision.attention.head_count": HEADS,
        "clip.vision.attention.layer_norm_epsilon": EPSILON,
        "clip.vision.image_mean": [MEAN] * 3,
        "clip.vision.image_std": [STD] * 3,
    }
    tensors = {name: (tensor.numpy(), "F32") for name, tensor in model.state_dict().items()}
    return write_gguf(path, metadata, tensors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="checkpoint or GGUF of the chat model")
    parser.add_argument("--minutes", type=float, default=12)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rng, tokenizer = Random(1), Tokenizer()
    words = [word for group in (NUMBERS, SHAPES, COLOURS, PLACES, BACKGROUNDS) for word in group.values()]
    ids = [tokenizer.encode(f" {word}")[0] for word in words]
    codes = load_model(options.model, len(tokenizer)).token_embd.weight.detach()[ids]
    spread = codes.var().item()
    model = Projector(codes.shape[1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.02)

    def loss_and_hits(held: bool) -> tuple[Tensor, float]:
        pictures, wanted = examples(rng, held, BATCH)
        target = torch.tensor([[words.index(word) for word in row] for row in wanted])
        given = model(pictures)
        likeness = F.normalize(given, dim=-1) @ F.normalize(codes, dim=-1).T * SHARPNESS
        hits = (torch.cdist(given, codes.expand(len(given), -1, -1)).argmin(-1) == target).all(1).float().mean()
        loss = F.cross_entropy(likeness.flatten(0, 1), target.flatten())
        return loss + F.mse_loss(given, codes[target]) / spread, float(hits)

    begun, step = time.monotonic(), 0
    while (share := (time.monotonic() - begun) / (options.minutes * 60)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 50, 2 * (1 - share))
        loss, _ = loss_and_hits(False)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step} loss {float(loss):.3f}", flush=True)
    with torch.no_grad():
        hits = sum(loss_and_hits(True)[1] for _ in range(5)) / 5
    size = write(model, options.out)
    print(f"{options.out}: {size:,} bytes after {step} steps; held-out pictures all right: {hits:.3f}")


if __name__ == "__main__":
    main()
