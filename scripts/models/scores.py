"""What the evaluation's scripts share: a line of the table, and how a conversation is put to the daemon."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from chat_format import Conversation
from daemon_client import Answer, Daemon


@dataclass
class Score:
    """One line of the table."""

    name: str
    aim: str = ""
    right: int = 0
    total: int = 0
    failures: list[str] = field(default_factory=list)
    secret: bool = False
    """Whether failures are not kept, so that nobody can shape weights after them."""

    def add(self, right: bool, failure: str) -> None:
        self.total += 1
        self.right += right
        if not right and not self.secret:
            self.failures.append(failure)

    def row(self) -> str:
        share = 100 * self.right / max(1, self.total)
        return f"| {self.name} | {self.right} of {self.total} | {share:.1f} % | {self.aim} |"


def messages_until(conversation: Conversation, turn: int) -> list[dict[str, object]]:
    """The messages before a turn, as the API carries them."""
    result: list[dict[str, object]] = []
    if conversation.system:
        result.append({"role": "system", "content": conversation.system})
    for index, said in enumerate(conversation.turns[:turn]):
        if said.role == "tool":
            result += [
                {"role": "tool", "content": text, "tool_call_id": f"call_{index}_{at}"}
                for at, text in enumerate(said.results)
            ]
        else:
            message: dict[str, object] = {"role": said.role, "content": said.content}
            if said.calls:
                message["tool_calls"] = [
                    {
                        "id": f"call_{index + 1}_{at}",
                        "type": "function",
                        "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
                    }
                    for at, call in enumerate(said.calls)
                ]
            result.append(message)
    return result


def ask(daemon: Daemon, conversation: Conversation, turn: int, think: bool = False) -> Answer:
    tools = [tool.schema() for tool in conversation.tools]
    return daemon.chat(messages_until(conversation, turn), tools=tools, think=think)


def same_text(conversation: Conversation, answer: Answer) -> bool:
    return answer.content.strip() == conversation.turns[-1].content.strip()
