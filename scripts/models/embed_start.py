"""Vectors that daybreak-mini-embed starts from: words of one stem or meaning alike, common words light.

The untrained model is then a search by weighted words, and training has to learn only what words do not tell."""

from __future__ import annotations

import math
import zlib
from collections import Counter

import torch
from torch import Tensor

from embed_data import SYNONYMS
from embed_model import BALLAST
from embed_pages import STOP_WORDS, passages
from wordpiece import PHANTOM, stem, words

STEM_SHARE, WORD_SHARE, MEANING_SHARE = 0.7, 0.5, 0.5
SCALE = 4.0
"""Length of a word's vector: at this one a step of the optimiser turns it a little, not far."""
LEAST_WEIGHT, UNSEEN_WEIGHT, PART_WEIGHT = 0.08, 1.0, 0.3


def _direction(name: str, width: int) -> Tensor:
    """A random vector of length about one, the same for the same name."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return torch.randn(width, generator=generator) / math.sqrt(width)


def _weights(tokens: list[str]) -> list[float]:
    """How much each token tells, 0 to 1: much if few passages hold it."""
    total = len(passages())
    seen = Counter(word for passage in passages() for word in set(words(passage.text)))
    result = []
    for token in tokens:
        word = token.removeprefix(PHANTOM)
        if word in STOP_WORDS or not any(c.isalnum() for c in word):
            result.append(LEAST_WEIGHT)
        elif word in seen:
            result.append(max(LEAST_WEIGHT, min(1.0, math.log(total / seen[word]) / math.log(total))))
        else:
            result.append(UNSEEN_WEIGHT if token.startswith(PHANTOM) else PART_WEIGHT)
    return result


def first_vectors(tokens: list[str], width: int) -> Tensor:
    """One row for each token of the vocabulary."""
    meanings: dict[str, list[str]] = {}
    for group in SYNONYMS:
        for word in group.split():
            meanings.setdefault(stem(word), []).append(group)
    rows = []
    for token, weight in zip(tokens, _weights(tokens)):
        word = token.removeprefix(PHANTOM)
        row = WORD_SHARE * _direction(token, width) + STEM_SHARE * _direction(f"stem {stem(word)}", width)
        groups = meanings.get(stem(word), [])
        for group in groups:
            row += MEANING_SHARE / math.sqrt(len(groups)) * _direction(f"meaning {group}", width)
        row[BALLAST] = 0
        row /= row.norm()
        row[BALLAST] = math.sqrt(1 / weight**2 - 1)
        rows.append(row * SCALE / row.norm())
    return torch.stack(rows)
