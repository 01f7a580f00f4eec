"""Writes the chat model as GGUF: Llama architecture, Q8_0 matrices, F32 norms, tokenizer and chat template."""

import argparse
from pathlib import Path

from chat.gguf import FILE_TYPES, write_gguf
from chat.model import CONTEXT, EPSILON, HEAD, HEADS, HIDDEN, LAYERS, ROPE_BASE, WIDTH, gguf_tensors, load_model
from conversations.template import TEMPLATE
from conversations.tokenizer import END_OF_TEXT, IM_END, UNK, Tokenizer


def metadata(tokenizer: Tokenizer) -> dict[str, object]:
    """The keys that llama.cpp reads for a Llama model with a SentencePiece vocabulary."""
    return {
        "general.architecture": "llama",
        "general.name": "daybreak-mini",
        "general.description": "A very small demonstration model that ships with Daybreak.",
        "general.license": "mit",
        "general.file_type": FILE_TYPES["Q8_0"],
        "general.quantization_version": 2,
        "llama.context_length": CONTEXT,
        "llama.embedding_length": WIDTH,
        "llama.block_count": LAYERS,
        "llama.feed_forward_length": HIDDEN,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": HEADS,
        "llama.attention.layer_norm_rms_epsilon": EPSILON,
        "llama.rope.dimension_count": HEAD,
        "llama.rope.freq_base": ROPE_BASE,
        "llama.vocab_size": len(tokenizer),
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": tokenizer.tokens,
        "tokenizer.ggml.scores": tokenizer.scores,
        "tokenizer.ggml.token_type": tokenizer.types,
        "tokenizer.ggml.bos_token_id": END_OF_TEXT,
        "tokenizer.ggml.eos_token_id": IM_END,
        "tokenizer.ggml.unknown_token_id": UNK,
        "tokenizer.ggml.padding_token_id": END_OF_TEXT,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_eos_token": False,
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.chat_template": TEMPLATE.read_text(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="checkpoint of chat.train")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    tokenizer = Tokenizer()
    tensors = gguf_tensors(load_model(options.model, len(tokenizer)))
    typed = {name: (tensor, "Q8_0" if tensor.ndim == 2 else "F32") for name, tensor in tensors.items()}
    print(f"{options.out}: {write_gguf(options.out, metadata(tokenizer), typed):,} bytes")


if __name__ == "__main__":
    main()
