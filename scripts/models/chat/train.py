"""Trains daybreak-mini. The learning rate is constant at first and falls to zero over the last part of the time."""

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from random import Random

import torch
from torch import Tensor
from torch.optim import Optimizer

from chat.descent import arguments, descend
from chat.model import ChatModel, read_model, write_model
from conversations.mixture import STAGES, sample
from conversations.template import encode
from conversations.tokenizer import END_OF_TEXT, Tokenizer
from conversations.tool_drills import binding_drill

POOL = 1500
"""Conversations that are made at once and sorted by length, so that a batch wastes little on padding."""
LONGEST, BATCH = 1024, 2560
"""Tokens of the longest conversation, and of a step."""
WARMUP_STEPS, FALL_SHARE = 60, 0.75
"""Steps in which the learning rate rises, and the part of the time over which it falls."""
MATRIX_RATE, OTHER_RATE = 0.005, 0.002
LARGE_AFTER, LARGE_TIMES = 0.88, 2
"""From this share of the time on, batches are so many times larger: a step is then less noisy."""
COPYING_UNTIL, COPYING_EARLY, COPYING_LATE = 0.3, 0.25, 0.03
"""Share of long copies, and of the time with many of them: nothing that needs the prompt's words (tools, echoes, names)
is learned before copying is."""
Example = tuple[list[int], list[bool]]
Batch = tuple[Tensor, Tensor]


class Muon(Optimizer):
    """Momentum whose matrix is made orthogonal by a Newton-Schulz iteration (Jordan et al., 2024): it needs far fewer
    tokens than Adam. For the matrices inside the layers; embeddings and norms go to AdamW."""

    def __init__(self, parameters: Iterable[Tensor], lr: float) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": 0.95, "weight_decay": 0.1})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                momentum = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
                momentum.lerp_(parameter.grad, 1 - group["momentum"])
                update = _orthogonal(parameter.grad.lerp(momentum, group["momentum"]))
                scale = max(1.0, parameter.shape[0] / parameter.shape[1]) ** 0.5
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(update, alpha=-group["lr"] * scale)


def _orthogonal(gradient: Tensor) -> Tensor:
    # The quintic drives singular values towards one quickly.
    a, b, c = 3.4445, -4.7750, 2.0315
    x = gradient / (gradient.norm() + 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for _ in range(5):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if tall else x


def pool(number: int, tokenizer: Tokenizer, stage: str, share: float) -> list[Batch]:
    """The batches of one pool, at a share of the time."""
    rng, budget = Random(f"1/{number}"), BATCH * (LARGE_TIMES if share > LARGE_AFTER else 1)
    copying = COPYING_EARLY if share < COPYING_UNTIL else COPYING_LATE
    examples = [encode(sample(rng, copying=copying, stage=stage), tokenizer) for _ in range(POOL)]
    groups: list[list[Example]] = [[]]
    for ids, learn in sorted(examples, key=lambda example: len(example[0])):
        if groups[-1] and (len(groups[-1]) + 1) * len(ids[:LONGEST]) > budget:
            groups.append([])
        groups[-1].append((ids[:LONGEST], learn[:LONGEST]))
    rng.shuffle(groups)
    return list(map(collate, groups))


def collate(group: list[Example]) -> Batch:
    length = max(len(ids) for ids, _ in group)
    ids = torch.full((len(group), length), END_OF_TEXT)
    learn = torch.zeros((len(group), length), dtype=torch.bool)
    for row, (example, own) in enumerate(group):
        ids[row, : len(example)] = torch.tensor(example)
        learn[row, : len(own)] = torch.tensor(own)
    return ids, learn


@torch.no_grad()
def drills_right(model: ChatModel, tokenizer: Tokenizer, drills: int = 100) -> float:
    """Share of the easiest drills in which every token of the answer is the likeliest one."""
    rng = Random("drills")
    ids, learn = collate([encode(binding_drill(rng, easiest=True), tokenizer) for _ in range(drills)])
    likeliest = (model.hidden(ids[:, :-1]) @ model.token_embd.weight.T).argmax(-1)
    return float(((likeliest == ids[:, 1:]) | ~learn[:, 1:]).all(1).float().mean())


def main() -> None:
    parser = arguments(__doc__, minutes=900)
    parser.add_argument("--begin", type=Path, help="GGUF whose weights to begin with, instead of from nothing")
    parser.add_argument("--stage", choices=STAGES, default="mixture", help="what to learn: from nothing, in this order")
    options = parser.parse_args()
    torch.manual_seed(1)
    tokenizer = Tokenizer()
    model = read_model(options.begin) if options.begin else ChatModel(len(tokenizer))
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and name != "token_embd.weight"]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or name == "token_embd.weight"]
    optimizers = [
        Muon(matrices, lr=MATRIX_RATE),
        torch.optim.AdamW(others, lr=OTHER_RATE, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    batches, numbers = [], count()

    def loss(share: float) -> Tensor:
        if not batches:
            batches.extend(pool(next(numbers), tokenizer, options.stage, share))
        return model.loss(*batches.pop(0))

    def report() -> None:
        write_model(model, options.out)
        print(f"easiest drills right: {drills_right(model, tokenizer):.2f}", flush=True)

    descend(optimizers, options.minutes, loss, WARMUP_STEPS, FALL_SHARE, report)
    report()


if __name__ == "__main__":
    main()
