"""The weights that training begins with: those of a finished daybreak-mini, from its GGUF or a checkpoint."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from chat_config import ChatConfig
from chat_export import LAYER_NAMES
from gguf_writer import ALIGNMENT, GGML_F16, GGML_F32, GGML_Q8_0, QUANT_BLOCK, TYPE_ARRAY, TYPE_STRING

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""struct's letters for GGUF's scalar types."""


def _unpack(file: BinaryIO, letter: str) -> Any:
    return struct.unpack(f"<{letter}", file.read(struct.calcsize(f"<{letter}")))[0]


def _string(file: BinaryIO) -> str:
    return file.read(_unpack(file, "Q")).decode()


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == TYPE_STRING:
        return _string(file)
    if kind == TYPE_ARRAY:
        inner, count = _unpack(file, "I"), _unpack(file, "Q")
        return [_value(file, inner) for _ in range(count)]
    return _unpack(file, SCALARS[kind])


def _tensor(data: bytes, shape: tuple[int, ...], kind: int) -> np.ndarray:
    count = int(np.prod(shape))
    if kind == GGML_F32:
        return np.frombuffer(data, "<f4", count).reshape(shape)
    if kind == GGML_F16:
        return np.frombuffer(data, "<f2", count).astype(np.float32).reshape(shape)
    if kind != GGML_Q8_0:
        raise ValueError(f"only F32, F16 and Q8_0 can be read, not type {kind}")
    blocks = np.frombuffer(data, np.uint8, count // QUANT_BLOCK * (2 + QUANT_BLOCK)).reshape(-1, 2 + QUANT_BLOCK)
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
    return (blocks[:, 2:].copy().view(np.int8) * scale).reshape(shape).astype(np.float32)


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Every tensor of a GGUF by its name, as float32, rows first."""
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError(f"{path} is no GGUF file")
        _unpack(file, "I")
        tensors, keys = _unpack(file, "Q"), _unpack(file, "Q")
        for _ in range(keys):
            _string(file)
            _value(file, _unpack(file, "I"))
        told = []
        for _ in range(tensors):
            name, dimensions = _string(file), _unpack(file, "I")
            shape = tuple(reversed([_unpack(file, "Q") for _ in range(dimensions)]))
            told.append((name, shape, _unpack(file, "I"), _unpack(file, "Q")))
        file.seek(-(-file.tell() // ALIGNMENT) * ALIGNMENT)
        data = file.read()
    return {name: _tensor(data[offset:], shape, kind) for name, shape, kind, offset in told}


def _halves(rows: np.ndarray, head: int) -> np.ndarray:
    """Undoes the export's order of query and key rows: pairs become halves of a head again."""
    return rows.reshape(-1, head // 2, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def initial_weights(path: Path, config: ChatConfig) -> dict[str, Tensor]:
    """The model's state from a GGUF or a checkpoint, for a config of the same width. A wider choice of key heads gets
    copies of the file's, and more layers are put between its own: the grown model computes what the file's does.
    """
    state = _from_gguf(path, config) if path.suffix == ".gguf" else torch.load(path)["model"]
    return _deeper(state, config.layers)


def _from_gguf(path: Path, config: ChatConfig) -> dict[str, Tensor]:
    read = read_tensors(path)
    state = {"embedding.weight": read["token_embd.weight"], "norm.weight": read["output_norm.weight"]}
    for layer in range(sum(name.endswith(".attn_q.weight") for name in read)):
        for ours, theirs in LAYER_NAMES.items():
            tensor = read[f"blk.{layer}.{theirs}.weight"]
            if ours in ("query", "key"):
                tensor = _halves(tensor, config.head_width)
            if ours in ("key", "value"):
                heads = tensor.reshape(-1, config.head_width, config.width)
                tensor = heads.repeat(config.kv_heads // len(heads), axis=0).reshape(-1, config.width)
            state[f"layers.{layer}.{ours}.weight"] = tensor
    return {name: torch.from_numpy(np.array(tensor)) for name, tensor in state.items()}


def _deeper(state: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """The state with its layers spread over more. Each new one copies the layer below it, but adds nothing at first:
    what it attends to and its gates are of use at once, and only its two output matrices begin at zero.
    """
    own = sum(name.endswith(".query.weight") for name in state)
    if own > layers:
        raise ValueError(f"the weights have {own} layers, more than {layers}")
    places = [round(layer * (layers - 1) / (own - 1)) for layer in range(own)]
    result = {name: tensor for name, tensor in state.items() if not name.startswith("layers.")}
    for layer in range(layers):
        below = max(index for index, place in enumerate(places) if place <= layer)
        for part in LAYER_NAMES:
            tensor = state[f"layers.{below}.{part}.weight"].clone()
            if layer not in places and part in ("output", "down"):
                tensor.zero_()
            result[f"layers.{layer}.{part}.weight"] = tensor
    return result
