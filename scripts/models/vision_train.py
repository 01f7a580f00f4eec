"""Trains daybreak-mini-vision: a tiny picture transformer whose outputs are the chat model's own word embeddings.

The chat model has learnt in text what a row of code words means (gen_picture.py). The projector learns to give
the embeddings of these words: token by token, each of PICTURE_TOKENS places has one kind of word to say.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from chat_init import read_tensors
from gen_picture import PICTURE_TOKENS, Scene, scene
from gguf_writer import FILE_TYPES, GgufWriter
from pictures import SIZE, draw
from spm_tokenizer import Tokenizer

HERE = Path(__file__).parent
ROUND = ("square", "circle")
KINDS = 5
"""Count, shape, colour, background, place."""
MEAN = STD = 0.5
BATCH = 128
SHARPNESS = 12.0
"""Factor on the likeness to the code words in the classifying part of the loss."""


@dataclass(frozen=True)
class VisionConfig:
    patch: int = 16
    width: int = 128
    hidden: int = 384
    layers: int = 3
    heads: int = 4
    norm_epsilon: float = 1e-6


class Block(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.ln1, self.ln2 = (nn.LayerNorm(config.width, config.norm_epsilon) for _ in range(2))
        self.q, self.k, self.v, self.out = (nn.Linear(config.width, config.width, bias=False) for _ in range(4))
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        y = self.ln1(x)
        q, k, v = (part(y).view(batch, length, self.heads, -1).transpose(1, 2) for part in (self.q, self.k, self.v))
        weights = (q @ k.transpose(2, 3) * (width // self.heads) ** -0.5).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Projector(nn.Module):
    def __init__(self, config: VisionConfig, target: int) -> None:
        super().__init__()
        self.config = config
        self.patch = nn.Conv2d(3, config.width, config.patch, config.patch)
        self.position = nn.Parameter(torch.randn(PICTURE_TOKENS, config.width) * 0.1)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.post = nn.LayerNorm(config.width, config.norm_epsilon)
        self.first = nn.Linear(config.width, target)
        self.second = nn.Linear(target, target)

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.patch(pictures).flatten(2).transpose(1, 2) + self.position
        for block in self.blocks:
            x = block(x)
        return self.second(F.gelu(self.first(self.post(x)), approximate="tanh"))


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


def gguf_names(weights: Collection[str], layers: int) -> dict[str, str]:
    """The names of the parameters in GGUF."""
    names = {
        "patch.weight": "v.patch_embd.weight",
        "patch.bias": "v.patch_embd.bias",
        "position": "v.position_embd.weight",
    }
    for index in range(layers):
        for ours, theirs in {
            "q": "attn_q",
            "k": "attn_k",
            "v": "attn_v",
            "out": "attn_out",
            "up": "ffn_up",
            "down": "ffn_down",
            "ln1": "ln1",
            "ln2": "ln2",
        }.items():
            for kind in ("weight", "bias"):
                if f"blocks.{index}.{ours}.{kind}" in weights:
                    names[f"blocks.{index}.{ours}.{kind}"] = f"v.blk.{index}.{theirs}.{kind}"
    for ours, theirs in {"post": "v.post_ln", "first": "mm.0", "second": "mm.1"}.items():
        names |= {f"{ours}.{kind}": f"{theirs}.{kind}" for kind in ("weight", "bias")}
    return names


def finished(path: Path, old_chat: Path, codes: Tensor, tokens: list[int], config: VisionConfig) -> dict[str, Tensor]:
    """The weights of a finished projector, turned to the embeddings of another chat model: the last layer gets the
    smallest change that sends each code word's old embedding to its new one.
    """
    read = {name: torch.from_numpy(tensor.copy()) for name, tensor in read_tensors(path).items()}
    model = Projector(config, codes.shape[1])
    names = gguf_names(model.state_dict(), config.layers)
    state = {
        ours: read[names[ours]].reshape(tensor.shape) if names[ours] in read else tensor
        for ours, tensor in model.state_dict().items()
    }
    old = torch.from_numpy(read_tensors(old_chat)["token_embd.weight"][tokens].copy())
    turn = torch.eye(codes.shape[1]) + (torch.linalg.pinv(old) @ (codes - old)).T
    state["second.weight"], state["second.bias"] = turn @ state["second.weight"], turn @ state["second.bias"]
    return state


def write(model: Projector, path: Path) -> int:
    config, weights = model.config, {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    writer = GgufWriter(
        {
            "general.architecture": "clip",
            "general.type": "mmproj",
            "general.name": "daybreak-mini-vision",
            "general.license": "mit",
            "general.file_type": FILE_TYPES["F32"],
            "clip.has_vision_encoder": True,
            "clip.projector_type": "janus_pro",
            "clip.use_gelu": True,
            "clip.vision.image_size": SIZE,
            "clip.vision.patch_size": config.patch,
            "clip.vision.embedding_length": config.width,
            "clip.vision.feed_forward_length": config.hidden,
            "clip.vision.projection_dim": weights["second.weight"].shape[0],
            "clip.vision.block_count": config.layers,
            "clip.vision.attention.head_count": config.heads,
            "clip.vision.attention.layer_norm_epsilon": config.norm_epsilon,
            "clip.vision.image_mean": [MEAN] * 3,
            "clip.vision.image_std": [STD] * 3,
        }
    )
    names = gguf_names(weights, config.layers)
    for ours, theirs in names.items():
        writer.add(theirs, weights[ours])
    return writer.write(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True, help="of the chat model, for its embeddings")
    parser.add_argument("--tokenizer", type=Path, default=HERE / "tokenizer.json")
    parser.add_argument("--rate", type=float, default=0.0015)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--save", type=Path, help="also keep PyTorch weights here, and go on from them if there are any"
    )
    parser.add_argument(
        "--init-from", type=Path, nargs=2, metavar=("PROJECTOR", "CHAT"), help="GGUFs of a projector and its chat model"
    )
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    tokenizer = Tokenizer.load(options.tokenizer)
    rng, words = (
        Random(options.seed),
        sorted({word for _ in range(2000) for word in said(scene(Random(_), False))}),
    )
    ids = [tokenizer.encode(f" {word}") for word in words]
    if split := [word for word, tokens in zip(words, ids) if len(tokens) > 1]:
        raise SystemExit(f"The vocabulary splits the code words {', '.join(split)}: every one must be one token.")
    codes = torch.load(options.checkpoint)["model"]["embedding.weight"][[tokens[0] for tokens in ids]]
    spread = codes.var().item()
    model = Projector(VisionConfig(), codes.shape[1])
    if options.save and options.save.exists():
        model.load_state_dict(torch.load(options.save))
    elif options.init_from:
        model.load_state_dict(finished(*options.init_from, codes, [tokens[0] for tokens in ids], model.config))
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=0.02)

    def loss_and_hits(held: bool) -> tuple[Tensor, float]:
        pictures, wanted = examples(rng, held, BATCH)
        target = torch.tensor([[words.index(word) for word in row] for row in wanted])
        given = model(pictures)
        likeness = F.normalize(given, dim=-1) @ F.normalize(codes, dim=-1).T * SHARPNESS
        hits = (torch.cdist(given, codes.expand(len(given), -1, -1)).argmin(-1) == target).all(1).float().mean()
        return F.cross_entropy(likeness.flatten(0, 1), target.flatten()) + F.mse_loss(
            given, codes[target]
        ) / spread, float(hits)

    begun, step = time.monotonic(), 0
    while (share := (time.monotonic() - begun) / (options.minutes * 60)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = options.rate * min(1.0, (step + 1) / 50, 2 * (1 - share))
        loss, _ = loss_and_hits(False)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        step += 1
        if step % 50 == 0:
            with torch.no_grad():
                print(
                    f"step {step} loss {float(loss):.3f} held-out pictures all right {loss_and_hits(True)[1]:.3f}",
                    flush=True,
                )
    if options.save:
        torch.save(model.state_dict(), options.save)
    with torch.no_grad():
        hits = sum(loss_and_hits(True)[1] for _ in range(5)) / 5
    print(
        f"{options.out}: {write(model, options.out):,} bytes after {step} steps; "
        f"held-out pictures all right: {hits:.3f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
