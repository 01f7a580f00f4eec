"""Checks that the compiled parts of a training step give the loss and the gradients that PyTorch gives (needs `cc`)."""

from __future__ import annotations

import argparse
from random import Random

import torch

from chat_config import ChatConfig
from chat_format import encode
from chat_init import initial_weights
from chat_model import ChatModel
from chat_ops import Ops
from chat_train import HERE, collate
from chat_workers import add_gradient
from compiled_ops import CompiledOps
from mixture import sample
from spm_tokenizer import Tokenizer

MODEL = HERE.parent.parent / "models" / "daybreak-mini.gguf"
CONVERSATIONS = 12
MOST = 1e-4
"""Largest difference that rounding explains, as a share of the largest gradient of a parameter."""


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    tokenizer, rng = Tokenizer.load(HERE / "tokenizer.json"), Random("check")
    ids, learn = collate([encode(sample(rng), tokenizer) for _ in range(CONVERSATIONS)])
    config, ops = ChatConfig(), [Ops(), CompiledOps()]
    plain, compiled = (ChatModel(config, len(tokenizer), each) for each in ops)
    # With fresh weights many gradients would be nought.
    for model in (plain, compiled):
        model.load_state_dict(initial_weights(MODEL, config))
    losses = [float(add_gradient(model, ids, learn)[-1]) for model in (plain, compiled)]
    worst = max(
        (float((p.grad - q.grad).abs().max() / p.grad.abs().max()), name)
        for (name, p), q in zip(plain.named_parameters(), compiled.parameters())
    )
    print(f"losses {losses[0]:.4f} and {losses[1]:.4f}; largest difference of a gradient {worst[0]:.1e} ({worst[1]})")
    if worst[0] > MOST or abs(losses[0] / losses[1] - 1) > MOST:
        raise SystemExit("They differ by more than rounding does.")


if __name__ == "__main__":
    main()
