"""Writes daybreak-mini-rerank as GGUF: BERT architecture with the head that llama.cpp takes for a score."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from embed_export import add_encoder, metadata
from embed_model import EmbedConfig
from embed_vocabulary import VOCABULARY
from gguf_writer import GgufWriter

POOLING_RANK = 4
HEAD_NAMES = {
    "dense.weight": "cls.weight",
    "dense.bias": "cls.bias",
    "score.weight": "cls.output.weight",
    "score.bias": "cls.output.bias",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, help="from rerank_train.py")
    parser.add_argument("--vocabulary", type=Path, default=VOCABULARY)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    saved = torch.load(options.checkpoint, map_location="cpu")
    config = EmbedConfig(**saved["config"])
    weights = {name: tensor.numpy() for name, tensor in saved["model"].items()}
    tokens = json.loads(options.vocabulary.read_text())
    extra = {
        "bert.pooling_type": POOLING_RANK,
        # Question and passage are parted by one [SEP]; nothing stands behind them.
        "tokenizer.ggml.add_sep_token": True,
        "tokenizer.ggml.add_eos_token": False,
    }
    writer = GgufWriter(metadata("daybreak-mini-rerank", config, tokens) | extra)
    add_encoder(writer, weights, config)
    for ours, theirs in HEAD_NAMES.items():
        writer.add(theirs, weights[ours])
    print(f"{options.out}: {writer.write(options.out):,} bytes")


if __name__ == "__main__":
    main()
