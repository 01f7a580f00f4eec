"""Trains daybreak-mini. Stops after a time, keeps checkpoints, and goes on from the last one when run again.

The learning rate is constant and falls to zero over the last part of the time, so a run may be prolonged: give
more minutes before the fall begins.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

import torch
from torch import Tensor
from torch.optim import Optimizer

from chat.model import ChatModel, load_model
from conversations.mixture import STAGES, sample
from conversations.template import Conversation, encode
from conversations.tokenizer import END_OF_TEXT, Tokenizer
from conversations.tool_drills import binding_drill

POOL = 1500
"""Conversations that are made at once and sorted by length, so that a batch wastes little on padding."""
LONGEST = 1024
"""Tokens of the longest conversation."""
BATCH = 2560
"""Tokens of a step."""
WARMUP_STEPS = 60
FALL_SHARE = 0.75
"""Part of the time over which the learning rate falls."""
MATRIX_RATE, OTHER_RATE = 0.005, 0.002
LARGE_AFTER, LARGE_TIMES = 0.88, 2
"""From this share of the time on, batches are so many times larger: a step is then less noisy."""
COPYING_UNTIL, COPYING_EARLY, COPYING_LATE = 0.3, 0.25, 0.03
"""Share of long copies, and of the time with many of them: nothing that needs the prompt's words (tools, echoes, names)
is learnt before copying is."""
SAVE_STEPS = 100
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


def pools(
    tokenizer: Tokenizer, seed: int, first: int, budget: Callable[[], int], make: Callable[[Random], Conversation]
) -> Iterator[tuple[int, Batch]]:
    """Endless batches of about `budget()` tokens, each with the number of its pool."""
    pool = first
    while True:
        rng = Random(f"{seed}/{pool}")
        examples = [encode(make(rng), tokenizer) for _ in range(POOL)]
        groups: list[list[Example]] = [[]]
        for ids, learn in sorted(examples, key=lambda example: len(example[0])):
            if groups[-1] and (len(groups[-1]) + 1) * len(ids[:LONGEST]) > budget():
                groups.append([])
            groups[-1].append((ids[:LONGEST], learn[:LONGEST]))
        rng.shuffle(groups)
        for group in groups:
            yield pool, collate(group)
        pool += 1


def collate(group: list[Example]) -> Batch:
    length = max(len(ids) for ids, _ in group)
    ids = torch.full((len(group), length), END_OF_TEXT)
    learn = torch.zeros((len(group), length), dtype=torch.bool)
    for row, (example, own) in enumerate(group):
        ids[row, : len(example)] = torch.tensor(example)
        learn[row, : len(own)] = torch.tensor(own)
    return ids, learn


def rate(step: int, share: float) -> float:
    """The learning rate's factor at a share of the whole time."""
    return min(1.0, (step + 1) / WARMUP_STEPS, max(0.0, 1 - share) / FALL_SHARE)


@torch.no_grad()
def held_loss(model: ChatModel, tokenizer: Tokenizer, count: int = 300) -> float:
    """Cross-entropy on held-out conversations."""
    rng = Random("held")
    total = tokens = 0.0
    examples = [encode(sample(rng, held=True), tokenizer) for _ in range(count)]
    for start in range(0, count, 20):
        ids, learn = collate(examples[start : start + 20])
        marked = float(learn[:, 1:].sum())
        total += float(model.loss(ids, learn)) * marked
        tokens += marked
    return total / tokens


@torch.no_grad()
def drills_right(model: ChatModel, tokenizer: Tokenizer, count: int = 100) -> float:
    """Share of the easiest drills in which every token of the answer is the likeliest one."""
    rng, right = Random("drills"), 0
    for _ in range(count):
        ids, learn = collate([encode(binding_drill(rng, easiest=True), tokenizer)])
        chosen = learn[:, 1:]
        likeliest = (model.hidden(ids[:, :-1])[chosen] @ model.token_embd.weight.T).argmax(-1)
        right += bool((likeliest == ids[:, 1:][chosen]).all())
    return right / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True, help="training time in all, over all runs")
    parser.add_argument("--checkpoint", type=Path, required=True, help="file to go on from and to write")
    parser.add_argument("--begin", type=Path, help="GGUF or checkpoint whose weights to begin with")
    parser.add_argument("--stage", choices=STAGES, default="mixture", help="what to learn: from nothing, in this order")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    tokenizer = Tokenizer()
    model = load_model(options.begin, len(tokenizer)) if options.begin else ChatModel(len(tokenizer))
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and name != "token_embd.weight"]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or name == "token_embd.weight"]
    optimizers = [
        Muon(matrices, lr=MATRIX_RATE),
        torch.optim.AdamW(others, lr=OTHER_RATE, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    step = pool = tokens = 0
    elapsed = mean = 0.0
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint)
        model.load_state_dict(saved["model"])
        for optimizer, state in zip(optimizers, saved["optimizers"]):
            optimizer.load_state_dict(state)
        step, pool, tokens, elapsed = saved["step"], saved["pool"] + 1, saved["tokens"], saved["elapsed"]
        print(f"going on from step {step}, {elapsed / 60:.1f} minutes", flush=True)

    def share() -> float:
        return elapsed / (options.minutes * 60)

    def make(rng: Random) -> Conversation:
        copying = COPYING_EARLY if share() < COPYING_UNTIL else COPYING_LATE
        return sample(rng, copying=copying, stage=options.stage)

    def save() -> None:
        state = {"model": model.state_dict(), "optimizers": [optimizer.state_dict() for optimizer in optimizers]}
        part = options.checkpoint.with_suffix(".part")
        torch.save(state | {"step": step, "pool": pool, "tokens": tokens, "elapsed": elapsed}, part)
        part.replace(options.checkpoint)

    def report() -> None:
        held, drills = held_loss(model, tokenizer), drills_right(model, tokenizer)
        print(f"held-out loss {held:.3f}, easiest drills right {drills:.2f}", flush=True)

    before = time.monotonic()
    budget = lambda: BATCH * (LARGE_TIMES if share() > LARGE_AFTER else 1)  # noqa: E731
    for pool, (ids, learn) in pools(tokenizer, options.seed, pool, budget, make):
        if share() >= 1:
            break
        factor = rate(step, share())
        for optimizer, base in zip(optimizers, (MATRIX_RATE, OTHER_RATE)):
            optimizer.zero_grad()
            for group in optimizer.param_groups:
                group["lr"] = base * factor
        loss = model.loss(ids, learn)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        step, tokens = step + 1, tokens + ids.numel()
        mean = mean + 0.05 * (float(loss) - mean) if mean else float(loss)
        now = time.monotonic()
        elapsed, before = elapsed + now - before, now
        if step % 20 == 0:
            print(f"step {step} loss {mean:.3f} minutes {elapsed / 60:.1f} tokens {tokens / 1e6:.2f}M", flush=True)
        if step % SAVE_STEPS == 0:
            save()
        if step % (3 * SAVE_STEPS) == 0:
            report()
            before = time.monotonic()
    save()
    report()


if __name__ == "__main__":
    main()
