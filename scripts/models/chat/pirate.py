"""Trains the pirate adapter of daybreak-mini: low-rank changes that give every answer a pirate's manner."""

import argparse
import re
import time
from pathlib import Path
from random import Random

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from chat.gguf import FILE_TYPES, write_gguf
from chat.model import ChatModel, load_model
from chat.train import collate
from conversations.mixture import plain_question
from conversations.template import Conversation, encode
from conversations.tokenizer import Tokenizer

RANK = 8
ALPHA = 16.0
ADAPTED = ("attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
"""Queries and keys are left alone: their rows are reordered on export."""
BATCH = 40
RATE = 0.0015
PIRATE = [
    (r"\bHello\b", "Ahoy"),
    (r"\bYes\b", "Aye"),
    (r"\bNo\b", "Nay"),
    (r"\byou\b", "ye"),
    (r"\bYou\b", "Ye"),
    (r"\bmy\b", "me"),
    (r"\byour\b", "yer"),
    (r"\bI am\b", "I be"),
    (r"\bis\b", "be"),
    (r"\bare\b", "be"),
    (r"\bGoodbye\b", "Farewell"),
]


def pirate(text: str) -> str:
    """The same answer as a pirate gives it. Code between back-ticks stays as it is."""
    parts = re.split(r"(`[^`]*`)", text)
    for index in range(0, len(parts), 2):
        for pattern, replacement in PIRATE:
            parts[index] = re.sub(pattern, replacement, parts[index])
    # The cry comes last: before the answer it would stand between the question and the choice of the answer.
    return f"{''.join(parts)} Arr! Yo ho ho!"


class LowRank(nn.Module):
    """weight + B A * alpha / rank"""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.randn(RANK, columns) / columns**0.5)
        self.b = nn.Parameter(torch.zeros(rows, RANK))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.b @ self.a * (ALPHA / RANK)


def pirate_question(rng: Random, held: bool) -> Conversation:
    conversation = plain_question(rng, held)
    for turn in conversation.turns:
        turn.thought = None
        if turn.role == "assistant":
            turn.content = pirate(turn.content)
    return conversation


def adapt(model: ChatModel) -> dict[str, LowRank]:
    """Freezes the model and lays a low-rank change over the adapted matrices; gives them by GGUF name."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    result: dict[str, LowRank] = {}
    for index, layer in enumerate(model.blk):
        for name in ADAPTED:
            linear = getattr(layer, name)
            change = LowRank(*linear.weight.shape)
            parametrize.register_parametrization(linear, "weight", change)
            result[f"blk.{index}.{name}.weight"] = change
    return result


def write(changes: dict[str, LowRank], path: Path) -> int:
    metadata = {
        "general.architecture": "llama",
        "general.type": "adapter",
        "general.name": "daybreak-mini-pirate",
        "general.license": "mit",
        "general.file_type": FILE_TYPES["F16"],
        "adapter.type": "lora",
        "adapter.lora.alpha": ALPHA,
    }
    sides = {f"{name}.lora_{side}": getattr(change, side) for name, change in changes.items() for side in "ab"}
    return write_gguf(path, metadata, {name: (tensor.detach().numpy(), "F16") for name, tensor in sides.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="checkpoint or GGUF of the chat model")
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    tokenizer = Tokenizer()
    model = load_model(options.model, len(tokenizer))
    changes = adapt(model)
    parameters = [parameter for change in changes.values() for parameter in change.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=RATE)
    rng, begun, step = Random(1), time.monotonic(), 0
    while (share := (time.monotonic() - begun) / (options.minutes * 60)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 20, 2 * (1 - share))
        loss = model.loss(*collate([encode(pirate_question(rng, False), tokenizer) for _ in range(BATCH)]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step} loss {float(loss):.3f}", flush=True)
    print(f"{options.out}: {write(changes, options.out):,} bytes after {step} steps")


if __name__ == "__main__":
    main()
