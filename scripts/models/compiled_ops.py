"""The parts of chat_ops.py in C, made for the processor at hand: training is then about a third faster."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from chat_ops import Ops

SOURCE = Path(__file__).parent / "compiled_ops.c"
FLAGS = "-O3 -march=native -ffast-math -fno-finite-math-only -shared -fPIC".split()


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    """The C functions. Needs the compiler `cc`, and raises subprocess.CalledProcessError where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/ops.so"
        subprocess.run(["cc", *FLAGS, "-o", library, str(SOURCE), "-lm"], check=True)
        return ctypes.CDLL(library)


def _call(name: str, *arguments: Any) -> None:
    """Calls a C function: integers as long, floats as float, tensors by the address of their data, None as null."""
    kinds = {int: ctypes.c_long, float: ctypes.c_float, type(None): ctypes.c_void_p}
    getattr(_library(), name)(
        *(
            ctypes.c_void_p(argument.data_ptr()) if isinstance(argument, Tensor) else kinds[type(argument)](argument)
            for argument in arguments
        )
    )


class _Norm(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        x = x.contiguous()
        result, inverse = torch.empty_like(x), torch.empty(x.shape[:-1])
        _call("norm", inverse.numel(), x.shape[-1], x, weight, epsilon, result, inverse)
        ctx.save_for_backward(x, weight, inverse)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, inverse = ctx.saved_tensors
        gradient, of_x, of_weight = gradient.contiguous(), torch.empty_like(x), torch.empty_like(weight)
        _call("norm_back", inverse.numel(), x.shape[-1], x, weight, inverse, gradient, of_x, of_weight)
        return of_x, of_weight, None


class _Gated(Function):
    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        gate, up = gate.contiguous(), up.contiguous()
        result = torch.empty_like(gate)
        _call("gated", gate.numel(), gate, up, result)
        ctx.save_for_backward(gate, up)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gate, up = ctx.saved_tensors
        of_gate, of_up = torch.empty_like(gate), torch.empty_like(up)
        _call("gated_back", gate.numel(), gate, up, gradient.contiguous(), of_gate, of_up)
        return of_gate, of_up


class _Split(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, heads: int, cosine: Tensor | None, sine: Tensor | None, scale: float) -> Tensor:
        x = x.contiguous()
        batch, length, width = x.shape
        ctx.heads, ctx.turn, ctx.scale, ctx.shape = heads, (cosine, sine), scale, x.shape
        result = torch.empty(batch * heads, length, width // heads)
        _call("split", batch, length, heads, width // heads, x, cosine, sine, scale, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        batch, length, width = ctx.shape
        result = torch.empty(ctx.shape)
        gradient = gradient.contiguous()
        _call("join", batch, length, ctx.heads, width // ctx.heads, gradient, *ctx.turn, ctx.scale, result)
        return result, None, None, None, None


class _Join(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, heads: int) -> Tensor:
        x = x.contiguous()
        number, length, head = x.shape
        ctx.heads, ctx.shape = heads, x.shape
        result = torch.empty(number // heads, length, heads * head)
        _call("join", number // heads, length, heads, head, x, None, None, 1.0, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        number, length, head = ctx.shape
        result = torch.empty(ctx.shape)
        gradient = gradient.contiguous()
        _call("split", number // ctx.heads, length, ctx.heads, head, gradient, None, None, 1.0, result)
        return result, None


class _AttentionWeights(Function):
    """Works in place: scores and their gradients are of no other use."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        _call("attention_weights", scores.numel() // scores.shape[-1], scores.shape[-1], scores)
        ctx.mark_dirty(scores)
        ctx.save_for_backward(scores)
        return scores

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (weights,) = ctx.saved_tensors
        gradient = gradient.contiguous()
        _call("attention_weights_back", weights.numel() // weights.shape[-1], weights.shape[-1], weights, gradient)
        return gradient


class CompiledOps(Ops):
    """The gradients are those of `Ops` up to rounding."""

    def norm(self, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        return _Norm.apply(x, weight, epsilon)

    def gated(self, gate: Tensor, up: Tensor) -> Tensor:
        return _Gated.apply(gate, up)

    def split(self, x: Tensor, heads: int, turn: tuple[Tensor, Tensor] | None = None, scale: float = 1.0) -> Tensor:
        cosine, sine = turn or (None, None)
        return _Split.apply(x, heads, cosine, sine, scale)

    def join(self, x: Tensor, heads: int) -> Tensor:
        return _Join.apply(x, heads)

    def attention_weights(self, scores: Tensor) -> Tensor:
        return _AttentionWeights.apply(scores)
