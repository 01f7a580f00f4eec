"""Talks to the daemon's own API with the standard library alone, and counts what is right."""

import argparse
import json
import urllib.error
import urllib.request
from typing import Any

from conversations.template import Conversation, messages_until

TIMEOUT_S = 120
LONGEST_ANSWER = 160
"""In tokens."""
Row = tuple[str, str, list[bool]]
"""What was asked for, the share to aim at, and whether each answer was right."""


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


def report(rows: list[Row]) -> None:
    """Prints a table in Markdown."""
    print("| what | right | share | aim |\n|---|---|---|---|")
    for name, aim, answers in rows:
        right, total = sum(answers), len(answers)
        print(f"| {name} | {right} of {total} | {100 * right / max(1, total):.1f} % | {aim} |")


def options(description: str | None, count: int) -> argparse.ArgumentParser:
    """The options that every evaluation has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="address of the daemon")
    parser.add_argument("--count", type=int, default=count, help="questions of each kind")
    return parser
