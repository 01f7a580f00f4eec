"""The loop that every training shares: steps down the gradient until the time is over."""

import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

from torch import Tensor
from torch.optim import Optimizer

PRINT_STEPS, REPORT_STEPS = 50, 300


def arguments(description: str | None, minutes: float) -> ArgumentParser:
    """The options that every training has."""
    parser = ArgumentParser(description=description)
    parser.add_argument("--minutes", type=float, default=minutes, help="training time, of one core")
    parser.add_argument("--out", type=Path, required=True, help="GGUF file to write")
    return parser


def descend(
    optimizers: list[Optimizer],
    minutes: float,
    loss: Callable[[float], Tensor],
    warmup_steps: int = 1,
    fall_share: float = 0.5,
    report: Callable[[], None] | None = None,
) -> None:
    """Takes steps for some minutes of computing, without the waiting for the processor. `loss` makes a batch at a share
    of that time. The learning rates rise in the first steps, and fall to zero over the last share of the time."""
    groups = [(group, group["lr"]) for optimizer in optimizers for group in optimizer.param_groups]
    begun, step, mean = time.process_time(), 0, 0.0
    while (share := (time.process_time() - begun) / (minutes * 60)) < 1:
        for group, rate in groups:
            group["lr"] = rate * min(1.0, (step + 1) / warmup_steps, (1 - share) / fall_share)
        value = loss(share)
        for optimizer in optimizers:
            optimizer.zero_grad()
        value.backward()
        for optimizer in optimizers:
            optimizer.step()
        step += 1
        mean += (float(value) - mean) / min(step, PRINT_STEPS)
        if step % PRINT_STEPS == 0:
            print(f"step {step} loss {mean:.3f} minutes {share * minutes:.1f}", flush=True)
        if report and step % REPORT_STEPS == 0:
            report()
