"""Writes GGUF files: metadata, then tensors as F32, F16 or Q8_0.

The layout is that of the GGUF specification, version 3 (little endian): magic, version, counts, key/value
pairs, tensor descriptions, padding to the alignment, tensor data each padded to the alignment.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

ALIGNMENT = 32
QUANT_BLOCK = 32
"""Weights that share one scale in Q8_0."""

TYPE_U32, TYPE_I32, TYPE_F32, TYPE_BOOL, TYPE_STRING, TYPE_ARRAY = 4, 5, 6, 7, 8, 9
GGML_F32, GGML_F16, GGML_Q8_0 = 0, 1, 8
FILE_TYPES = {"F32": 0, "F16": 1, "Q8_0": 7}
"""Values of general.file_type."""


def quantise_q8_0(rows: np.ndarray) -> bytes:
    """Blocks of 32 weights: an f16 scale, then 32 signed bytes."""
    blocks = rows.astype(np.float32).reshape(-1, QUANT_BLOCK)
    scale = np.abs(blocks).max(axis=1, keepdims=True) / 127.0
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    # Half away from zero, as llama.cpp rounds.
    scaled = blocks * inverse
    quants = (np.sign(scaled) * np.floor(np.abs(scaled) + 0.5)).astype(np.int8)
    packed = np.empty((len(blocks), 2 + QUANT_BLOCK), dtype=np.uint8)
    packed[:, :2] = scale.astype("<f2").view(np.uint8)
    packed[:, 2:] = quants.view(np.uint8)
    return packed.tobytes()


def _string(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(data)) + data


def _scalar(value: Any) -> tuple[int, bytes]:
    if isinstance(value, bool):
        return TYPE_BOOL, struct.pack("<B", value)
    if isinstance(value, int):
        return (TYPE_U32, struct.pack("<I", value)) if value >= 0 else (TYPE_I32, struct.pack("<i", value))
    if isinstance(value, float):
        return TYPE_F32, struct.pack("<f", value)
    return TYPE_STRING, _string(value)


def _value(value: Any) -> bytes:
    """A typed value; lists of numbers become I32 or F32 arrays, as llama.cpp reads token types and scores."""
    if not isinstance(value, (list, tuple)):
        kind, data = _scalar(value)
        return struct.pack("<I", kind) + data
    head = struct.pack("<I", TYPE_ARRAY)
    if isinstance(value[0], str):
        kind, data = TYPE_STRING, b"".join(_string(item) for item in value)
    elif isinstance(value[0], float):
        kind, data = TYPE_F32, np.asarray(value, dtype="<f4").tobytes()
    else:
        kind, data = TYPE_I32, np.asarray(value, dtype="<i4").tobytes()
    return head + struct.pack("<IQ", kind, len(value)) + data


class GgufWriter:
    """Collects metadata and tensors in order and writes them at once."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        self.metadata = dict(metadata)
        self._tensors: list[tuple[str, tuple[int, ...], int, bytes]] = []

    def add(self, name: str, tensor: np.ndarray, kind: str = "F32") -> None:
        """Adds a tensor in PyTorch's shape (rows first). Q8_0 needs rows of a multiple of 32."""
        data = np.ascontiguousarray(tensor, dtype=np.float32)
        if kind == "Q8_0":
            if data.shape[-1] % QUANT_BLOCK:
                raise ValueError(f"{name}: rows of {data.shape[-1]} cannot be Q8_0")
            self._tensors.append((name, data.shape, GGML_Q8_0, quantise_q8_0(data)))
        elif kind == "F16":
            self._tensors.append((name, data.shape, GGML_F16, data.astype("<f2").tobytes()))
        else:
            self._tensors.append((name, data.shape, GGML_F32, data.astype("<f4").tobytes()))

    def write(self, path: Path) -> int:
        """Writes the file and gives its size in bytes."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            out.write(b"GGUF" + struct.pack("<IQQ", 3, len(self._tensors), len(self.metadata)))
            for key, value in self.metadata.items():
                out.write(_string(key) + _value(value))
            self._describe_tensors(out)
            for _, _, _, data in self._tensors:
                _pad(out)
                out.write(data)
            _pad(out)
            return out.tell()

    def _describe_tensors(self, out: BinaryIO) -> None:
        offset = 0
        for name, shape, kind, data in self._tensors:
            out.write(_string(name) + struct.pack("<I", len(shape)))
            # GGML counts dimensions from the fastest one.
            out.write(struct.pack(f"<{len(shape)}Q", *reversed(shape)))
            out.write(struct.pack("<IQ", kind, offset))
            offset += -(-len(data) // ALIGNMENT) * ALIGNMENT


def _pad(out: BinaryIO) -> None:
    out.write(b"\0" * (-out.tell() % ALIGNMENT))
