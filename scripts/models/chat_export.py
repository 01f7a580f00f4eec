"""Writes the chat model as GGUF: Llama architecture, Q8_0 matrices, F32 norms, tokenizer and chat template."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from chat_config import ChatConfig
from gguf_writer import FILE_TYPES, GgufWriter
from spm_tokenizer import END_OF_TEXT, FIRST_BYTE, IM_END, UNK, Tokenizer

HERE = Path(__file__).parent
TEMPLATE = HERE / "chat_template.jinja"
QUANTISATION_VERSION = 2
LAYER_NAMES = {
    "attention_norm": "attn_norm",
    "query": "attn_q",
    "key": "attn_k",
    "value": "attn_v",
    "output": "attn_output",
    "mlp_norm": "ffn_norm",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}
"""Names of a layer's parameters in training and in GGUF."""


def metadata(config: ChatConfig, tokenizer: Tokenizer, kind: str, description: str) -> dict[str, object]:
    """The keys that llama.cpp reads for a Llama model with a SentencePiece vocabulary."""
    return {
        "general.architecture": "llama",
        "general.name": "daybreak-mini",
        "general.description": description,
        "general.license": "mit",
        "general.file_type": FILE_TYPES[kind],
        "general.quantization_version": QUANTISATION_VERSION,
        "llama.context_length": config.context,
        "llama.embedding_length": config.width,
        "llama.block_count": config.layers,
        "llama.feed_forward_length": config.hidden,
        "llama.attention.head_count": config.heads,
        "llama.attention.head_count_kv": config.kv_heads,
        "llama.attention.layer_norm_rms_epsilon": config.norm_epsilon,
        "llama.rope.dimension_count": config.head_width,
        "llama.rope.freq_base": config.rope_base,
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


def export(
    weights: dict[str, np.ndarray],
    config: ChatConfig,
    tokenizer: Tokenizer,
    path: Path,
    kind: str,
    description: str,
) -> int:
    """Writes the model; matrices as `kind`, vectors as F32. Gives the file's size."""
    writer = GgufWriter(metadata(config, tokenizer, kind, description))
    writer.add("token_embd.weight", weights["embedding.weight"], kind)
    for layer in range(config.layers):
        for ours, theirs in LAYER_NAMES.items():
            tensor = weights[f"layers.{layer}.{ours}.weight"]
            writer.add(f"blk.{layer}.{theirs}.weight", tensor, kind if tensor.ndim == 2 else "F32")
    writer.add("output_norm.weight", weights["norm.weight"])
    return writer.write(path)


def random_weights(config: ChatConfig, vocabulary: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Weights of the right shapes that mean nothing, to try an architecture in an engine before training."""
    generator = np.random.default_rng(seed)
    result: dict[str, np.ndarray] = {}
    for name, shape in config.shapes(vocabulary).items():
        result[name] = np.ones(shape) if len(shape) == 1 else generator.normal(0, 0.02, shape)
    # One shared direction makes printable tokens likely, so that the text is valid UTF-8 and ends some day.
    embedding = result["embedding.weight"]
    embedding[:, 0] = 1.0
    embedding[: FIRST_BYTE + 256, 0] = -1.0
    embedding[IM_END, 0] = 1.2
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, help="from chat_train.py; absent: random weights")
    parser.add_argument("--tokenizer", type=Path, default=HERE / "tokenizer.json")
    parser.add_argument("--kind", choices=sorted(FILE_TYPES), default="Q8_0", help="type of the matrices")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    tokenizer = Tokenizer.load(options.tokenizer)
    if options.checkpoint:
        # Only here, so that a machine without PyTorch can write a model of random weights.
        import torch

        from chat_model import ChatModel, exported

        saved = torch.load(options.checkpoint, map_location="cpu")
        config = ChatConfig(**saved["config"])
        model = ChatModel(config, len(tokenizer))
        model.load_state_dict(saved["model"])
        weights = exported(model)
        description = "A very small demonstration model that ships with Daybreak."
    else:
        config = ChatConfig()
        weights = random_weights(config, len(tokenizer))
        description = "Provisional: random weights. Its text means nothing."
    size = export(weights, config, tokenizer, options.out, options.kind, description)
    parameters = sum(tensor.size for tensor in weights.values())
    print(f"{options.out}: {parameters:,} parameters, {size:,} bytes")


if __name__ == "__main__":
    main()
