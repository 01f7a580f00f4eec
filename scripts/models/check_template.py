"""Checks that the engine renders and tokenises conversations as training did, by counting prompt tokens."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from random import Random

from chat_format import Conversation, segments
from daemon_client import Daemon
from scores import messages_until
from mixture import sample
from spm_tokenizer import Tokenizer

HERE = Path(__file__).parent


def prompt(conversation: Conversation) -> str:
    """What training saw before the last answer."""
    pieces = segments(conversation)
    last = max(index for index, (_, own) in enumerate(pieces) if own)
    return "".join(text for text, _ in pieces[:last])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--model", default="daybreak-mini")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    daemon, tokenizer, rng = (
        Daemon(options.url, options.model),
        Tokenizer.load(HERE / "tokenizer.json"),
        Random(options.seed),
    )
    differing = 0
    for _ in range(options.count):
        conversation = sample(rng)
        for turn in conversation.turns[:-1]:
            turn.thought = None
        wanted = len(tokenizer.encode(prompt(conversation)))
        body = {
            "model": options.model,
            "messages": messages_until(conversation, len(conversation.turns) - 1),
            "tools": [tool.schema() for tool in conversation.tools],
            "think": conversation.turns[-1].thought is not None,
            "max_tokens": 1,
        }
        counted = daemon.post("/api/chat", body)["prompt_tokens"]
        if counted != wanted:
            differing += 1
            print(f"{counted} tokens in the engine, {wanted} in training:\n{prompt(conversation)}\n{json.dumps(body)}")
    print(f"{options.count - differing} of {options.count} prompts have the same number of tokens")
    raise SystemExit(differing > 0)


if __name__ == "__main__":
    main()
