"""Says, without a daemon, how a checkpoint does on held-out conversations of each kind: loss, and answers all right.

An answer is right when every one of its tokens is the likeliest after the tokens before it: then greedy generation
gives exactly this answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import torch
from torch.nn import functional as F

from chat_config import ChatConfig
from chat_format import Conversation, encode
from chat_init import initial_weights
from chat_model import ChatModel
from chat_train import HERE, collate
from gen_facts import fact_question
from gen_numbers import GENERATORS as NUMBERS
from gen_picture import picture_in_words
from gen_system import named_model, one_word
from gen_talk import named_user, small_knowledge, small_talk, unknown
from gen_tools import tool_call, two_calls, unused_tools
from gen_words import GENERATORS as WORDS
from spm_tokenizer import IM_END, Tokenizer

Generator = Callable[[Random, bool], Conversation]
KINDS: dict[str, Generator] = {
    "facts": fact_question,
    "unknown": unknown,
    "talk": small_talk,
    "knowledge": small_knowledge,
    "tool_call": tool_call,
    "two_calls": two_calls,
    "unused_tools": lambda rng, held: unused_tools(rng, held, fact_question(rng, held)),
    "memory": named_user,
    "named_model": named_model,
    "one_word": one_word,
    "picture": picture_in_words,
} | {make.__name__: make for make, _ in WORDS + NUMBERS}


@dataclass
class Score:
    loss: float = 0.0
    tokens: int = 0
    right: int = 0
    answers: int = 0
    failures: list[str] = field(default_factory=list)


def load(path: Path, tokenizer: Tokenizer) -> ChatModel:
    """A model from a checkpoint or from a GGUF."""
    if path.suffix == ".gguf":
        model = ChatModel(ChatConfig(), len(tokenizer))
        model.load_state_dict(initial_weights(path, ChatConfig()))
        return model
    saved = torch.load(path)
    model = ChatModel(ChatConfig(**saved["config"]), len(tokenizer))
    model.load_state_dict(saved["model"])
    return model


def _runs(learn: list[bool]) -> list[tuple[int, int]]:
    """Where the model's own turns begin and end."""
    borders = [at for at in range(1, len(learn)) if learn[at] != learn[at - 1]] + ([len(learn)] if learn[-1] else [])
    return list(zip(borders[::2], borders[1::2]))


@torch.no_grad()
def score(model: ChatModel, tokenizer: Tokenizer, make: Generator, held: bool, count: int) -> Score:
    result, rng = Score(), Random("scores")
    for _ in range(count):
        conversation = make(rng, held)
        for turn in conversation.turns:
            turn.thought = None
        ids, learn = encode(conversation, tokenizer)
        batch, marks = collate([(ids, learn)])
        logits = model.hidden(model.embedding(batch[:, :-1])) @ model.embedding.weight.T
        chosen = marks[:, 1:]
        result.loss += float(F.cross_entropy(logits[chosen], batch[:, 1:][chosen], reduction="sum"))
        result.tokens += int(chosen.sum())
        likeliest = [-1, *logits[0].argmax(-1).tolist()]
        for begin, end in _runs(learn):
            wrong = [at for at in range(begin, end) if likeliest[at] != ids[at]]
            result.answers += 1
            result.right += not wrong
            if wrong:
                before = tokenizer.decode(ids[max(0, begin - 40) : begin]).split("<|im_start|>")[-2:]
                said = tokenizer.decode(ids[begin : wrong[0]]) + "[" + tokenizer.decode([likeliest[wrong[0]]]) + "]"
                wanted = tokenizer.decode([token for token in ids[begin:end] if token != IM_END])
                result.failures.append(f"{before[0]!r} -> {said!r}, wanted {wanted!r}")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="checkpoint or GGUF")
    parser.add_argument("--count", type=int, default=60, help="conversations of each kind")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--train", action="store_true", help="draw from the training side instead")
    parser.add_argument("--failures", type=int, default=0, help="failures to show for each kind")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = Tokenizer.load(HERE / "tokenizer.json")
    model = load(options.model, tokenizer)
    for name in options.kinds:
        got = score(model, tokenizer, KINDS[name], not options.train, options.count)
        share = 100 * got.right / got.answers
        print(
            f"{name:16} loss {got.loss / got.tokens:.3f}  right {got.right:4} of {got.answers:4} {share:5.1f} %",
            flush=True,
        )
        for failure in got.failures[: options.failures]:
            print(f"  {failure}")


if __name__ == "__main__":
    main()
