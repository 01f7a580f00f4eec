"""Talks to the daemon's own API with the standard library alone."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

TIMEOUT_S = 120


@dataclass
class Answer:
    content: str
    thinking: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)


class Daemon:
    """One model of one daemon, asked without randomness."""

    def __init__(self, url: str, model: str) -> None:
        self.url, self.model = url.rstrip("/"), model
        self.tokens = 0
        self._seconds = 0.0

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{path} answered {error.code}: {error.read().decode(errors='replace')}") from None
        except urllib.error.URLError as error:
            raise SystemExit(f"No daemon answers at {self.url} ({error.reason}): start one with `npm start`.") from None

    def chat(
        self,
        messages: list[dict[str, object]],
        tools: list[dict[str, Any]] | None = None,
        think: bool = False,
        images: list[str] | None = None,
        limit: int = 160,
    ) -> Answer:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": messages,
            "temperature": 0,
            "max_tokens": limit,
            "think": think,
        }
        if tools:
            body["tools"] = tools
        if images:
            body["images"] = images
        answer = self.post("/api/chat", body)
        self.tokens += answer["completion_tokens"]
        if answer.get("tokens_per_second"):
            self._seconds += answer["completion_tokens"] / answer["tokens_per_second"]
        message = answer["message"]
        calls = []
        for call in message.get("tool_calls") or []:
            try:
                arguments = json.loads(call["function"]["arguments"])
            except json.JSONDecodeError:
                arguments = call["function"]["arguments"]
            calls.append((call["function"]["name"], arguments))
        return Answer(message["content"], message.get("thinking", ""), calls)

    def embed(self, texts: list[str]) -> list[list[float]]:
        return self.post("/api/embeddings", {"model": self.model, "input": texts})["embeddings"]

    def rate(self) -> float:
        """Tokens for each second of generating."""
        return self.tokens / self._seconds if self._seconds else 0.0
