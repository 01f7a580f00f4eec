"""Writes daybreak-mini-embed as GGUF: BERT architecture, Q8_0 matrices, mean pooling."""

import argparse
from pathlib import Path

import torch

from chat.gguf import FILE_TYPES, write_gguf
from embedding.model import CONTEXT, EPSILON, HEADS, HIDDEN, LAYERS, WIDTH
from embedding.wordpiece import CLS, PAD, SEP, SPECIALS, UNK, WordPiece

POOLING_MEAN = 1
TOKEN_NORMAL, TOKEN_CONTROL = 1, 3


def metadata(tokens: list[str]) -> dict[str, object]:
    return {
        "general.architecture": "bert",
        "general.name": "daybreak-mini-embed",
        "general.license": "mit",
        "general.file_type": FILE_TYPES["Q8_0"],
        "general.quantization_version": 2,
        "bert.context_length": CONTEXT,
        "bert.embedding_length": WIDTH,
        "bert.block_count": LAYERS,
        "bert.feed_forward_length": HIDDEN,
        "bert.attention.head_count": HEADS,
        "bert.attention.layer_norm_epsilon": EPSILON,
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
    parser.add_argument("checkpoint", type=Path, help="from embedding.train")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    weights = {name: tensor.numpy() for name, tensor in torch.load(options.checkpoint)["model"].items()}
    quantized = [name for name in weights if name.startswith(("token_embd.", "blk.")) and weights[name].ndim == 2]
    tensors = {name: (tensor, "Q8_0" if name in quantized else "F32") for name, tensor in weights.items()}
    print(f"{options.out}: {write_gguf(options.out, metadata(WordPiece().tokens), tensors):,} bytes")


if __name__ == "__main__":
    main()
