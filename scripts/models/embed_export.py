"""Writes daybreak-mini-embed as GGUF: BERT architecture, Q8_0 matrices, mean pooling."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from embed_model import EmbedConfig
from gguf_writer import FILE_TYPES, GgufWriter
from wordpiece import CLS, PAD, SEP, SPECIALS, UNK

HERE = Path(__file__).parent
POOLING_MEAN = 1
TOKEN_NORMAL, TOKEN_CONTROL = 1, 3
BLOCK_NAMES = {
    "query.weight": "attn_q.weight",
    "key.weight": "attn_k.weight",
    "value.weight": "attn_v.weight",
    "output.weight": "attn_output.weight",
    "attention_norm.weight": "attn_output_norm.weight",
    "attention_norm.bias": "attn_output_norm.bias",
    "up.weight": "ffn_up.weight",
    "down.weight": "ffn_down.weight",
    "output_norm.weight": "layer_output_norm.weight",
    "output_norm.bias": "layer_output_norm.bias",
}


def metadata(config: EmbedConfig, tokens: list[str]) -> dict[str, object]:
    return {
        "general.architecture": "bert",
        "general.name": "daybreak-mini-embed",
        "general.license": "mit",
        "general.file_type": FILE_TYPES["Q8_0"],
        "general.quantization_version": 2,
        "bert.context_length": config.context,
        "bert.embedding_length": config.width,
        "bert.block_count": config.layers,
        "bert.feed_forward_length": config.hidden,
        "bert.attention.head_count": config.heads,
        "bert.attention.layer_norm_epsilon": config.norm_epsilon,
        "bert.attention.causal": False,
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [TOKEN_CONTROL] * len(SPECIALS) + [TOKEN_NORMAL] * (len(tokens) - len(SPECIALS)),
        "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.bos_token_id": CLS,
        "tokenizer.ggml.eos_token_id": SEP,
        "tokenizer.ggml.cls_token_id": CLS,
        # llama.cpp's own spelling.
        "tokenizer.ggml.seperator_token_id": SEP,
        "tokenizer.ggml.unknown_token_id": UNK,
        "tokenizer.ggml.padding_token_id": PAD,
        "tokenizer.ggml.add_bos_token": True,
        "bert.pooling_type": POOLING_MEAN,
        "tokenizer.ggml.add_eos_token": True,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, help="from embed_train.py")
    parser.add_argument("--vocabulary", type=Path, default=HERE / "embed-vocabulary.json")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    saved = torch.load(options.checkpoint, map_location="cpu")
    config = EmbedConfig(**saved["config"])
    weights = {name: tensor.numpy() for name, tensor in saved["model"].items()}
    tokens = json.loads(options.vocabulary.read_text())
    if len(tokens) != (rows := len(weights["embedding.weight"])):
        raise SystemExit(f"{options.vocabulary} has {len(tokens)} tokens, but the weights were trained with {rows}.")
    writer = GgufWriter(metadata(config, tokens))
    writer.add("token_embd.weight", weights["embedding.weight"], "Q8_0")
    writer.add("position_embd.weight", weights["position"])
    writer.add("token_types.weight", np.zeros((2, config.width)))
    writer.add("token_embd_norm.weight", weights["embedding_norm.weight"])
    writer.add("token_embd_norm.bias", weights["embedding_norm.bias"])
    for block in range(config.layers):
        for ours, theirs in BLOCK_NAMES.items():
            tensor = weights[f"blocks.{block}.{ours}"]
            writer.add(f"blk.{block}.{theirs}", tensor, "Q8_0" if tensor.ndim == 2 else "F32")
    print(f"{options.out}: {writer.write(options.out):,} bytes")


if __name__ == "__main__":
    main()
