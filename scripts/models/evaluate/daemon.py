"""Talks to the daemon's own API with the standard library alone, and counts what is right."""

import argparse
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from conversations.template import Conversation, messages_until

TIMEOUT_S = 120
LONGEST_ANSWER = 160
"""In tokens."""


class Daemon:
    """One model of one daemon, asked without randomness."""

    def __init__(self, url: str, model: str) -> None:
        self.url, self.model = url.rstrip("/"), model

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        data = json.dumps({"model": self.model, **body}).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{path} answered {error.code}: {error.read().decode(errors='replace')}") from None
        except urllib.error.URLError as error:
            raise SystemExit(f"No daemon answers at {self.url} ({error.reason}): start one with `npm start`.") from None

    def chat(self, messages: list[dict[str, object]], **more: object) -> dict[str, Any]:
        """The message that is answered."""
        body = {"messages": messages, "temperature": 0, "max_tokens": LONGEST_ANSWER, **more}
        return self.post("/api/chat", body)["message"]

    def ask(self, conversation: Conversation, turn: int) -> dict[str, Any]:
        """What the model says in place of a turn of the conversation."""
        tools = [tool.schema() for tool in conversation.tools]
        return self.chat(messages_until(conversation, turn), think=False, **({"tools": tools} if tools else {}))


@dataclass
class Score:
    """One line of the table."""

    name: str
    aim: str = ""
    right: int = 0
    total: int = 0

    def add(self, right: bool) -> None:
        self.total += 1
        self.right += right


def report(scores: list[Score]) -> None:
    """Prints a table in Markdown."""
    print("| what | right | share | aim |\n|---|---|---|---|")
    for score in scores:
        share = 100 * score.right / max(1, score.total)
        print(f"| {score.name} | {score.right} of {score.total} | {share:.1f} % | {score.aim} |")


def options(description: str | None, count: int) -> argparse.ArgumentParser:
    """The options that every evaluation has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="address of the daemon")
    parser.add_argument("--count", type=int, default=count, help="questions of each kind")
    return parser
