"""Trains the pirate adapter of daybreak-mini: low-rank changes that give every answer a pirate's manner."""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from random import Random

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from chat_config import ChatConfig
from chat_export import LAYER_NAMES
from chat_format import Conversation, encode
from chat_model import ChatModel
from chat_train import collate, look
from gguf_writer import FILE_TYPES, GgufWriter
from mixture import plain_question
from spm_tokenizer import Tokenizer

HERE = Path(__file__).parent
RANK = 8
ALPHA = 16.0
ADAPTED = ("value", "output", "gate", "up", "down")
"""Queries and keys are left alone: their rows are reordered on export."""
BATCH = 40
STEP_LIMIT_S = 8.0
"""A step that takes longer was stopped meanwhile: that time is not training."""
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
    for index, layer in enumerate(model.layers):
        for name in ADAPTED:
            linear = getattr(layer, name)
            change = LowRank(*linear.weight.shape)
            parametrize.register_parametrization(linear, "weight", change)
            result[f"blk.{index}.{LAYER_NAMES[name]}.weight"] = change
    return result


def write(changes: dict[str, LowRank], path: Path) -> int:
    writer = GgufWriter(
        {
            "general.architecture": "llama",
            "general.type": "adapter",
            "general.name": "daybreak-mini-pirate",
            "general.license": "mit",
            "general.file_type": FILE_TYPES["F16"],
            "adapter.type": "lora",
            "adapter.lora.alpha": ALPHA,
        }
    )
    for name, change in changes.items():
        writer.add(f"{name}.lora_a", change.a.detach().numpy(), "F16")
        writer.add(f"{name}.lora_b", change.b.detach().numpy(), "F16")
    return writer.write(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True, help="of the chat model")
    parser.add_argument("--tokenizer", type=Path, default=HERE / "tokenizer.json")
    parser.add_argument("--rate", type=float, default=0.0015)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    tokenizer = Tokenizer.load(options.tokenizer)
    saved = torch.load(options.checkpoint)
    model = ChatModel(ChatConfig(**saved["config"]), len(tokenizer))
    model.load_state_dict(saved["model"])
    changes = adapt(model)
    parameters = [parameter for change in changes.values() for parameter in change.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=options.rate)
    rng, elapsed, before, step = Random(options.seed), 0.0, time.monotonic(), 0
    while (share := elapsed / (options.minutes * 60)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = options.rate * min(1.0, (step + 1) / 20, 2 * (1 - share))
        loss = model.loss(*collate([encode(pirate_question(rng, False), tokenizer) for _ in range(BATCH)]))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        step += 1
        now = time.monotonic()
        elapsed, before = elapsed + min(now - before, STEP_LIMIT_S), now
        if step % 50 == 0:
            print(f"step {step} loss {float(loss):.3f}", flush=True)
    print(
        f"{look(model, tokenizer)}\n{options.out}: {write(changes, options.out):,} bytes after {step} steps",
        flush=True,
    )


if __name__ == "__main__":
    main()
