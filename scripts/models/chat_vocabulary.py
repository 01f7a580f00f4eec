"""Carries a trained chat model over to a new vocabulary: a new token begins as the mean of the tokens it was."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from chat_config import ChatConfig
from chat_init import initial_weights
from spm_tokenizer import SPACE, Tokenizer


def ancestors(token: str, old: Tokenizer) -> list[int]:
    """The old tokens whose mean a learnt token begins with: itself, or what its text was."""
    return [old.ids[token]] if token in old.ids else old.encode(token.replace(SPACE, " "))


def carried_over(embedding: Tensor, old: Tokenizer, new: Tokenizer) -> Tensor:
    """Rows for the new vocabulary; special tokens and bytes keep theirs."""
    rows = [
        embedding[ancestors(token, old)].mean(0) if token in new.ids else embedding[index]
        for index, token in enumerate(new.tokens)
    ]
    return torch.stack(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, help="from chat_train.py, or a GGUF")
    parser.add_argument("--old", type=Path, required=True, help="the tokenizer.json that it was trained with")
    parser.add_argument("--new", type=Path, default=Path(__file__).parent / "tokenizer.json")
    parser.add_argument("--out", type=Path, required=True, help="for chat_train.py --init-from")
    options = parser.parse_args()
    config = ChatConfig()
    weights = initial_weights(options.checkpoint, config)
    weights["embedding.weight"] = carried_over(
        weights["embedding.weight"], Tokenizer.load(options.old), Tokenizer.load(options.new)
    )
    torch.save({"model": weights, "config": asdict(config)}, options.out)


if __name__ == "__main__":
    main()
