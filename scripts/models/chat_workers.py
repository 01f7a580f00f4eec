"""Processes that compute gradients beside the one that trains.

Each reads the weights of the moment, adds the gradient of one batch to a common sum, and begins again; the training
process takes the sum with its own gradients whenever it makes a step. Nobody waits for anybody, so a slow processor
only adds less, and a gradient may be one step late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, multiprocessing

from chat_config import ChatConfig
from chat_model import ChatModel
from chat_ops import Ops

Batch = tuple[Tensor, Tensor]
MARKED, TOKENS, LOSS = 0, 1, 2
"""Places of the totals: marked tokens, all tokens, and the sum of the marked tokens' losses."""


def add_gradient(model: ChatModel, ids: Tensor, learn: Tensor) -> Tensor:
    """Adds the gradient of the summed loss, and returns the totals of the batch."""
    loss, marked = model.loss(ids, learn), int(learn[:, 1:].sum())
    (loss * marked).backward()
    return torch.tensor([marked, ids.numel(), float(loss) * marked], dtype=torch.float64)


def _work(
    make: Callable[[int], Iterator[tuple[int, Batch]]],
    number: int,
    config: ChatConfig,
    ops: Ops,
    weights: list[Tensor],
    sums: list[Tensor],
    totals: Tensor,
    lock: Any,
) -> None:
    torch.set_num_threads(1)
    model = ChatModel(config, weights[0].shape[0], ops)
    own = list(model.parameters())
    for _, (ids, learn) in make(number):
        with torch.no_grad():
            for mine, current in zip(own, weights):
                mine.copy_(current)
        added = add_gradient(model, ids, learn)
        with lock:
            for total, mine in zip(sums, own):
                total += mine.grad
            totals += added
        model.zero_grad()


class Workers:
    """`count` processes that train with this one. `make(number)` yields the batches of a process, numbered from 1."""

    def __init__(self, count: int, model: ChatModel, make: Callable[[int], Iterator[tuple[int, Batch]]]) -> None:
        context = multiprocessing.get_context("spawn")
        self.parameters = list(model.parameters())
        self.weights = [p.detach().clone().share_memory_() for p in self.parameters]
        self.sums = [torch.zeros_like(p).share_memory_() for p in self.weights]
        self.totals = torch.zeros(3, dtype=torch.float64).share_memory_()
        self.lock = context.Lock()
        self.processes = [
            context.Process(
                target=_work,
                args=(make, number, model.config, model.norm.ops, self.weights, self.sums, self.totals, self.lock),
                daemon=True,
            )
            for number in range(1, count + 1)
        ]
        for process in self.processes:
            process.start()

    def tokens(self) -> int:
        """Tokens whose gradients wait to be taken."""
        return int(self.totals[TOKENS])

    def take(self) -> Tensor:
        """Adds the waiting gradients to the model's, and returns their totals."""
        with self.lock:
            taken = self.totals.clone()
            if taken[TOKENS]:
                for parameter, waiting in zip(self.parameters, self.sums):
                    parameter.grad += waiting
                    waiting.zero_()
                self.totals.zero_()
        return taken

    @torch.no_grad()
    def publish(self) -> None:
        """Gives the model's weights to the workers."""
        if self.processes:
            for shared, parameter in zip(self.weights, self.parameters):
                shared.copy_(parameter)

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
