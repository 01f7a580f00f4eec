"""Writes and reads GGUF files: metadata, then tensors as F32, F16 or Q8_0.

The layout is that of the GGUF specification, version 3 (little endian): magic, version, counts, key/value pairs, tensor
descriptions, padding to the alignment, tensor data each padded to the alignment."""

import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

ALIGNMENT = 32
QUANT_BLOCK = 32
"""Weights that share one scale in Q8_0."""
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""struct's letters for GGUF's scalar types."""
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
TENSOR_TYPES = {"F32": 0, "F16": 1, "Q8_0": 8}


def quantize_q8_0(rows: np.ndarray) -> bytes:
    """Blocks of 32 weights: an f16 scale, then 32 signed bytes."""
    blocks = rows.reshape(-1, QUANT_BLOCK)
    scale = np.abs(blocks).max(axis=1, keepdims=True) / 127.0
    scaled = blocks * np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    packed = np.empty((len(blocks), 2 + QUANT_BLOCK), dtype=np.uint8)
    packed[:, :2] = scale.astype("<f2").view(np.uint8)
    # Half away from zero, as llama.cpp rounds.
    packed[:, 2:] = (np.sign(scaled) * np.floor(np.abs(scaled) + 0.5)).astype(np.int8).view(np.uint8)
    return packed.tobytes()


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _typed(value: Any) -> tuple[int, bytes]:
    """A value's type and bytes; lists of numbers are I32 or F32, as llama.cpp reads token types and scores."""
    if isinstance(value, (list, tuple)):
        kind = {str: STRING, float: F32}.get(type(value[0]), I32)
        data = b"".join(map(_string, value)) if kind == STRING else np.asarray(value, f"<{SCALARS[kind]}4").tobytes()
        return ARRAY, struct.pack("<IQ", kind, len(value)) + data
    if isinstance(value, str):
        return STRING, _string(value)
    kind = {bool: BOOL, float: F32}.get(type(value), U32)
    return kind, struct.pack(f"<{SCALARS[kind]}", value)


def write_gguf(path: Path, metadata: dict[str, Any], tensors: dict[str, tuple[np.ndarray, str]]) -> None:
    """Writes tensors: rows first, each with F32, F16 or Q8_0 as its type."""
    encoded: list[bytes] = []
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
        for key, value in metadata.items():
            kind, data = _typed(value)
            out.write(_string(key) + struct.pack("<I", kind) + data)
        offset = 0
        for name, (tensor, form) in tensors.items():
            rows = np.ascontiguousarray(tensor, dtype=np.float32)
            plain = {"F32": "<f4", "F16": "<f2"}
            encoded.append(quantize_q8_0(rows) if form == "Q8_0" else rows.astype(plain[form]).tobytes())
            # GGML counts dimensions from the fastest one.
            out.write(_string(name) + struct.pack(f"<I{rows.ndim}Q", rows.ndim, *reversed(rows.shape)))
            out.write(struct.pack("<IQ", TENSOR_TYPES[form], offset))
            offset += -(-len(encoded[-1]) // ALIGNMENT) * ALIGNMENT
        for data in (b"", *encoded):
            out.write(data)
            out.write(b"\0" * (-out.tell() % ALIGNMENT))
        print(f"{path}: {out.tell():,} bytes", flush=True)
    part.replace(path)


def _unpack(file: BinaryIO, letter: str) -> Any:
    return struct.unpack(f"<{letter}", file.read(struct.calcsize(f"<{letter}")))[0]


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == STRING:
        return file.read(_unpack(file, "Q")).decode()
    if kind == ARRAY:
        inner, count = _unpack(file, "I"), _unpack(file, "Q")
        return [_value(file, inner) for _ in range(count)]
    return _unpack(file, SCALARS[kind])


def _tensor(data: bytes, shape: tuple[int, ...], kind: int) -> np.ndarray:
    count = int(np.prod(shape))
    if kind == TENSOR_TYPES["F32"]:
        return np.frombuffer(data, "<f4", count).reshape(shape)
    blocks = np.frombuffer(data, np.uint8, count // QUANT_BLOCK * (2 + QUANT_BLOCK)).reshape(-1, 2 + QUANT_BLOCK)
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
    return (blocks[:, 2:].copy().view(np.int8) * scale).reshape(shape).astype(np.float32)


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Every tensor (of F32 or Q8_0) by its name, as float32, rows first. Raises ValueError where it is not GGUF."""
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError(f"{path} is not a GGUF file")
        _unpack(file, "I")
        tensors, keys = _unpack(file, "Q"), _unpack(file, "Q")
        for _ in range(keys):
            _value(file, STRING), _value(file, _unpack(file, "I"))
        told = []
        for _ in range(tensors):
            name, dimensions = _value(file, STRING), _unpack(file, "I")
            shape = tuple(reversed([_unpack(file, "Q") for _ in range(dimensions)]))
            told.append((name, shape, _unpack(file, "I"), _unpack(file, "Q")))
        file.seek(-(-file.tell() // ALIGNMENT) * ALIGNMENT)
        data = file.read()
    return {name: _tensor(data[offset:], shape, kind) for name, shape, kind, offset in told}
