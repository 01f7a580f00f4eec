"""Mixes the weights of a training's beginning into its end. A run that was short for its new data gains by it: what it
had not seen often enough to keep comes back, and more of what it learnt stays than its share would make one expect.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

import torch

from chat_config import ChatConfig
from chat_init import initial_weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--begin", type=Path, required=True, help="GGUF or checkpoint that the training began with")
    parser.add_argument("--end", type=Path, required=True, help="checkpoint that it ended with")
    parser.add_argument("--share", type=float, required=True, help="of the end, from 0 to 1")
    parser.add_argument("--out", type=Path, required=True, help="checkpoint to write, for the export")
    options = parser.parse_args()
    config = ChatConfig()
    begin, end = initial_weights(options.begin, config), initial_weights(options.end, config)
    model = {name: torch.lerp(begin[name], tensor, options.share) for name, tensor in end.items()}
    torch.save({"model": model, "config": asdict(config)}, options.out)


if __name__ == "__main__":
    main()
