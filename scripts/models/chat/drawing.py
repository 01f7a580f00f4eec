"""Draws scenes as pictures, with the small differences that a projector must not mind, and writes PNG."""

import struct
import zlib
from functools import lru_cache
from random import Random

import numpy as np

from conversations.scenes import SOURCE, Scene

SIZE = 64
"""Pixels on a side, as the projector takes them."""
SHADES, CENTERS = SOURCE["shades"], SOURCE["centers"]
"""Red, green and blue of each color; middle of a single shape, x then y, as shares of the side."""
GRID = [(0.27, 0.27), (0.73, 0.27), (0.27, 0.73), (0.73, 0.73)]
SHIFT = 0.045
"""How far a shape may lie from its place."""
SUPERSAMPLE = 2


def _inside(shape: str, x: np.ndarray, y: np.ndarray, radius: float) -> np.ndarray:
    """Which points belong to a shape around the origin."""
    if shape == "circle":
        return x**2 + y**2 <= radius**2
    if shape == "square":
        return np.maximum(abs(x), abs(y)) <= radius * 0.88
    if shape == "triangle":
        return (y <= radius * 0.8) & (y >= -radius + 1.9 * abs(x))
    arm = radius * 0.34
    return (np.minimum(abs(x), abs(y)) <= arm) & (np.maximum(abs(x), abs(y)) <= radius)


def _shade(rng: Random, colour: str) -> np.ndarray:
    return np.clip(np.array(SHADES[colour]) + [rng.uniform(-14, 14) for _ in range(3)], 0, 255)


@lru_cache(maxsize=4)
def _grid(side: int) -> np.ndarray:
    """Rows and columns of a square, as shares of its side."""
    return (np.mgrid[0:side, 0:side] + 0.5) / side


def draw(rng: Random, scene: Scene, size: int = SIZE) -> np.ndarray:
    """The picture as [size, size, 3] bytes."""
    rows, columns = _grid(size * SUPERSAMPLE)
    ground, colour = _shade(rng, scene.background), _shade(rng, scene.colour)
    centers = [CENTERS[scene.place]] if scene.place else rng.sample(GRID, scene.count)
    radius = rng.uniform(0.14, 0.19)
    covered = np.zeros(rows.shape, dtype=bool)
    for x, y in centers:
        middle_x, middle_y = x + rng.uniform(-SHIFT, SHIFT), y + rng.uniform(-SHIFT, SHIFT)
        covered |= _inside(scene.shape, columns - middle_x, rows - middle_y, radius)
    share = covered.reshape(size, SUPERSAMPLE, size, SUPERSAMPLE).mean((1, 3))[:, :, None]
    picture = ground + share * (colour - ground)
    noise = np.random.default_rng(rng.getrandbits(32)).normal(0, rng.uniform(0, 5), picture.shape)
    return np.clip(picture + noise, 0, 255).astype(np.uint8)


def png(picture: np.ndarray) -> bytes:
    """A PNG file of an RGB picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = picture.shape
    lines = b"".join(b"\0" + row.tobytes() for row in picture)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
