"""Trains the pirate adapter of daybreak-mini: low-rank changes that give every answer a pirate's manner."""

import re
from pathlib import Path
from random import Random

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from chat.descent import arguments, descend
from chat.gguf import write_gguf
from chat.model import ChatModel, read_model
from chat.train import collate
from conversations.mixture import plain_question
from conversations.template import Conversation, encode
from conversations.tokenizer import Tokenizer
from conversations.words import source, wordings

METADATA = source("gguf-metadata")["daybreak-mini-pirate"]
RANK, ALPHA = 8, METADATA["adapter.lora.alpha"]
ADAPTED = ("attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
"""Queries and keys are left alone: their rows are reordered on export."""
BATCH, RATE = 40, 0.0015
MANNER = [pair.split(" > ") for pair in wordings("pirate")["words"]]


def pirate(text: str) -> str:
    """The same answer as a pirate gives it. Code between back-ticks stays as it is."""
    parts = re.split(r"(`[^`]*`)", text)
    for index in range(0, len(parts), 2):
        for plain, rough in MANNER:
            parts[index] = re.sub(rf"\b{plain}\b", rough, parts[index])
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


def pirate_question(rng: Random) -> Conversation:
    conversation = plain_question(rng, False)
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


def main() -> None:
    parser = arguments(__doc__, minutes=4)
    parser.add_argument("model", type=Path, help="GGUF of the chat model")
    options = parser.parse_args()
    torch.manual_seed(1)
    rng, tokenizer, model = Random(1), Tokenizer(), read_model(options.model)
    changes = adapt(model)
    optimizer = torch.optim.Adam([part for change in changes.values() for part in change.parameters()], lr=RATE)

    def loss(_: float) -> Tensor:
        return model.loss(*collate([encode(pirate_question(rng), tokenizer) for _ in range(BATCH)]))

    descend([optimizer], options.minutes, loss, warmup_steps=20)
    sides = {f"{name}.lora_{side}": getattr(change, side) for name, change in changes.items() for side in "ab"}
    write_gguf(options.out, METADATA, {name: (side.detach().numpy(), "F16") for name, side in sides.items()})


if __name__ == "__main__":
    main()
