"""Trains daybreak-mini. Stops after a time, keeps checkpoints, and goes on from the last one when run again.

The learning rate is constant and falls to zero over the last part of the time, so a run may be prolonged: give
more minutes before the fall begins.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor

from chat_config import ChatConfig
from chat_format import Conversation, encode
from chat_init import initial_weights
from chat_model import ChatModel
from chat_workers import LOSS, MARKED, TOKENS, Batch, Workers, add_gradient
from compiled_ops import CompiledOps
from mixture import sample
from muon import Muon
from spm_tokenizer import END_OF_TEXT, IM_END, Tokenizer

HERE = Path(__file__).parent
POOL = 1500
"""Conversations that are made at once and sorted by length, so that a batch wastes little on padding."""
WARMUP_STEPS = 60
FALL_SHARE = 0.75
"""Part of the time over which the learning rate falls."""
LARGE_AFTER, LARGE_TIMES = 0.88, 2
"""From this share of the time on, batches are so many times larger: a step then costs less and is less noisy."""
COPYING_EARLY, COPYING_LATE = 0.25, 0.03
"""Share of long copies: nothing that needs the prompt's words (tools, echoes, names) is learnt before copying is."""
STEP_SHARE = 0.8
"""A step is made once this share of its tokens is there: batches of whole conversations seldom fill it."""
LOOKS = [
    "Hello",
    "How do I load a model?",
    "What is 27 + 35?",
    "Spell garden.",
    "Write in upper case: my dog is happy",
    "Who was Napoleon?",
]


def batches(
    tokenizer: Tokenizer,
    seed: int | str,
    first_pool: int,
    budget: Callable[[], int],
    limit: int,
    copying: Callable[[], float],
) -> Iterator[tuple[int, Batch]]:
    """Endless batches of about `budget()` tokens, each with the number of its pool."""
    pool = first_pool
    while True:
        rng, share = Random(f"{seed}/{pool}"), copying()
        examples = sorted(
            (encode(sample(rng, copying=share), tokenizer) for _ in range(POOL)),
            key=lambda pair: len(pair[0]),
        )
        examples = [(ids[:limit], learn[:limit]) for ids, learn in examples]
        groups: list[list[tuple[list[int], list[bool]]]] = [[]]
        most = budget()
        for example in examples:
            if (len(groups[-1]) + 1) * len(example[0]) > most and groups[-1]:
                groups.append([])
            groups[-1].append(example)
        rng.shuffle(groups)
        for group in groups:
            yield pool, collate(group)
        pool += 1


def collate(group: list[tuple[list[int], list[bool]]]) -> Batch:
    length = max(len(ids) for ids, _ in group)
    ids = torch.full((len(group), length), END_OF_TEXT)
    learn = torch.zeros((len(group), length), dtype=torch.bool)
    for row, (example, own) in enumerate(group):
        ids[row, : len(example)] = torch.tensor(example)
        learn[row, : len(own)] = torch.tensor(own)
    return ids, learn


def worker_batches(
    tokenizer: Path, seed: int, first_pool: int, tokens: int, limit: int, number: int
) -> Iterator[tuple[int, Batch]]:
    """The batches of one of the processes that train along."""
    own_seed = f"{seed}.{number}"
    return batches(Tokenizer.load(tokenizer), own_seed, first_pool, lambda: tokens, limit, lambda: COPYING_LATE)


def rate(step: int, share: float) -> float:
    """The learning rate's factor at a share of the whole time."""
    return min(1.0, (step + 1) / WARMUP_STEPS, max(0.0, 1 - share) / FALL_SHARE)


def look(model: ChatModel, tokenizer: Tokenizer) -> str:
    answers = []
    for question in LOOKS:
        prompt = tokenizer.encode(f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n")
        answers.append(f"  {question} -> {tokenizer.decode(model.generate(prompt, 40, IM_END))!r}")
    return "\n".join(answers)


@torch.no_grad()
def held_loss(model: ChatModel, tokenizer: Tokenizer, count: int = 300) -> float:
    """Cross-entropy on held-out conversations."""
    rng = Random("held")
    total = tokens = 0.0
    examples: list[Conversation] = [sample(rng, held=True) for _ in range(count)]
    for start in range(0, count, 20):
        ids, learn = collate([encode(example, tokenizer) for example in examples[start : start + 20]])
        marked = float(learn[:, 1:].sum())
        total += float(model.loss(ids, learn)) * marked
        tokens += marked
    return total / tokens


def save(path: Path, state: dict[str, Any]) -> None:
    partial = path.with_suffix(".part")
    torch.save(state, partial)
    partial.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True, help="training time in all, over all runs")
    parser.add_argument("--checkpoint", type=Path, required=True, help="file to go on from and to write")
    parser.add_argument("--init-from", type=Path, help="GGUF or checkpoint to begin with; may have fewer layers")
    parser.add_argument("--tokenizer", type=Path, default=HERE / "tokenizer.json")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=2560, help="tokens in a step")
    parser.add_argument("--part", type=int, help="tokens whose gradients are computed at once (default: the batch)")
    parser.add_argument("--workers", type=int, default=0, help="processes that compute gradients beside this one")
    parser.add_argument("--limit", type=int, default=1024, help="tokens of the longest conversation")
    parser.add_argument("--copying-until", type=float, default=0.3, help="share of the time with many long copies")
    parser.add_argument("--matrix-rate", type=float, default=0.01)
    parser.add_argument("--other-rate", type=float, default=0.002)
    parser.add_argument("--compiled", action="store_true", help="compile parts with cc: about a third faster")
    parser.add_argument("--save-every", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    tokenizer = Tokenizer.load(options.tokenizer)
    config = ChatConfig()
    model = ChatModel(config, len(tokenizer), CompiledOps() if options.compiled else None)
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and name != "embedding.weight"]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or name == "embedding.weight"]
    optimisers = [
        Muon(matrices, lr=options.matrix_rate, weight_decay=0.1),
        torch.optim.AdamW(others, lr=options.other_rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    bases = [options.matrix_rate, options.other_rate]
    step = pool = 0
    elapsed = tokens = 0.0
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint)
        model.load_state_dict(saved["model"])
        for optimiser, state in zip(optimisers, saved["optimisers"]):
            optimiser.load_state_dict(state)
        step, pool, elapsed, tokens = saved["step"], saved["pool"] + 1, saved["elapsed"], saved["tokens"]
        print(f"going on from step {step}, {elapsed / 60:.1f} minutes", flush=True)
    elif options.init_from:
        model.load_state_dict(initial_weights(options.init_from, config))
        print(f"beginning with {options.init_from}: held-out loss {held_loss(model, tokenizer):.3f}", flush=True)

    def checkpoint() -> None:
        state = {
            "model": model.state_dict(),
            "optimisers": [o.state_dict() for o in optimisers],
            "config": asdict(config),
        }
        save(options.checkpoint, state | {"step": step, "pool": pool, "elapsed": elapsed, "tokens": tokens})

    # A request to end is obeyed between two steps, and the work is kept.
    ended: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: ended.append(received))

    def copying() -> float:
        return COPYING_EARLY if elapsed < options.copying_until * options.minutes * 60 else COPYING_LATE

    def budget() -> int:
        late = elapsed > LARGE_AFTER * options.minutes * 60
        return options.batch * LARGE_TIMES if late else options.batch

    part = options.part or options.batch
    make = partial(worker_batches, options.tokenizer, options.seed, pool, part, options.limit)
    workers = Workers(options.workers, model, make)
    totals = torch.zeros(3, dtype=torch.float64)
    mean, before = 0.0, time.monotonic()
    for pool, (ids, learn) in batches(tokenizer, options.seed, pool, lambda: part, options.limit, copying):
        share = elapsed / (options.minutes * 60)
        if share >= 1 or ended:
            break
        totals += add_gradient(model, ids, learn)
        if totals[TOKENS] + workers.tokens() < STEP_SHARE * budget():
            continue
        totals += workers.take()
        for parameter in model.parameters():
            parameter.grad /= totals[MARKED]
        for optimiser, base in zip(optimisers, bases):
            for group in optimiser.param_groups:
                group["lr"] = base * rate(step, share)
            optimiser.step()
            optimiser.zero_grad()
        workers.publish()
        step += 1
        tokens += int(totals[TOKENS])
        loss = float(totals[LOSS] / totals[MARKED])
        totals.zero_()
        mean = mean + 0.05 * (loss - mean) if mean else loss
        now = time.monotonic()
        elapsed, before = elapsed + now - before, now
        if step % 20 == 0:
            print(
                f"step {step} loss {mean:.3f} minutes {elapsed / 60:.1f} "
                f"tokens {tokens / 1e6:.2f}M rate {rate(step, share):.2f}",
                flush=True,
            )
        if step % options.save_every == 0:
            checkpoint()
        if step % (3 * options.save_every) == 0:
            print(f"held-out loss {held_loss(model, tokenizer):.3f}\n{look(model, tokenizer)}", flush=True)
    workers.stop()
    checkpoint()
    print(f"done: held-out loss {held_loss(model, tokenizer):.3f}\n{look(model, tokenizer)}", flush=True)


if __name__ == "__main__":
    main()
