"""Conversations as the chat template renders them, with a mark on the tokens that the model is to learn.

This is template.jinja in Python; check-template.ts compares the two.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conversations.tokenizer import Tokenizer

TEMPLATE = Path(__file__).parent / "template.jinja"


@dataclass
class Tool:
    """A function that the model may call. `parameters` maps a name to a type, or to a list of allowed values."""

    name: str
    description: str
    parameters: dict[str, str | list[str]]
    optional: tuple[str, ...] = ()

    def signature(self) -> str:
        parts = []
        for name, kind in self.parameters.items():
            mark = "?" if name in self.optional else ""
            parts.append(f"{name}{mark}: {kind if isinstance(kind, str) else '|'.join(kind)}")
        call = f"{self.name}({', '.join(parts)})"
        return f"{self.description}: {call}" if self.description else call

    def schema(self) -> dict[str, Any]:
        """The tool as requests of the chat-completions API carry it."""
        properties = {
            name: {"type": kind} if isinstance(kind, str) else {"type": "string", "enum": kind}
            for name, kind in self.parameters.items()
        }
        required = [name for name in self.parameters if name not in self.optional]
        parameters = {"type": "object", "properties": properties, "required": required}
        told = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": told}


@dataclass
class Call:
    name: str
    arguments: dict[str, Any]

    def text(self) -> str:
        body = f'{{"name": "{self.name}", "arguments": {json.dumps(self.arguments, ensure_ascii=False)}}}'
        return f"<tool_call>\n{body}\n</tool_call>"


@dataclass
class Turn:
    """One message. `results` are the tool messages of a turn of role tool."""

    role: str
    content: str = ""
    calls: list[Call] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    thought: str | None = None


@dataclass
class Conversation:
    """Turns after an optional system prompt."""

    turns: list[Turn]
    system: str | None = None
    tools: list[Tool] = field(default_factory=list)

    @staticmethod
    def single(question: str, answer: str, thought: str | None = None) -> "Conversation":
        return Conversation([Turn("user", question), Turn("assistant", answer, thought=thought)])


def segments(conversation: Conversation) -> list[tuple[str, bool]]:
    """Pieces of the rendered text; True marks what the model writes itself.

    The tools stand behind the user's last message, each with its description first: so the tokens of a name have
    read the wish and what the tool does, and whether they match is found where the name is. Earlier turns then show
    no tools, so nothing is learned from them where there are some.

    A turn with a thought is rendered as with enable_thinking, earlier thoughts are left out: so a conversation
    holds at most one thought, in its last assistant turn, or in those after the last user's.
    """
    result: list[tuple[str, bool]] = []
    if conversation.system is not None:
        result.append((f"<|im_start|>system\n{conversation.system}<|im_end|>\n", False))
    last_user = max(index for index, turn in enumerate(conversation.turns) if turn.role == "user")
    for index, turn in enumerate(conversation.turns):
        if turn.role == "user":
            tools = "".join("\n" + tool.signature() for tool in conversation.tools)
            offered = f"<|im_start|>system\n# Tools{tools}<|im_end|>\n" if tools and index == last_user else ""
            result.append((f"<|im_start|>user\n{turn.content}<|im_end|>\n{offered}", False))
        elif turn.role == "tool":
            body = "".join(f"\n<tool_response>\n{text}\n</tool_response>" for text in turn.results)
            result.append((f"<|im_start|>user{body}<|im_end|>\n", False))
        else:
            result.append(("<|im_start|>assistant\n", False))
            said = turn.content
            for call in turn.calls:
                said += ("\n" if said else "") + call.text()
            if turn.thought is not None and index > last_user:
                result.append(("<think>\n", False))
                said = f"{turn.thought}\n</think>\n\n{said}"
            result.append((said + "<|im_end|>", index > last_user or not conversation.tools))
            result.append(("\n", False))
    return result


def encode(conversation: Conversation, tokenizer: Tokenizer) -> tuple[list[int], list[bool]]:
    """Token ids, and for each whether the model is to learn to write it."""
    ids: list[int] = []
    learn: list[bool] = []
    for text, own in segments(conversation):
        piece = tokenizer.encode(text)
        ids += piece
        learn += [own] * len(piece)
    return ids, learn


def messages_until(conversation: Conversation, turn: int) -> list[dict[str, object]]:
    """The messages before a turn, as the chat-completions API carries them."""
    result: list[dict[str, object]] = []
    if conversation.system:
        result.append({"role": "system", "content": conversation.system})
    for index, said in enumerate(conversation.turns[:turn]):
        if said.role == "tool":
            told = [{"content": text, "tool_call_id": f"call_{index}_{at}"} for at, text in enumerate(said.results)]
            result += [{"role": "tool", **each} for each in told]
            continue
        result.append({"role": said.role, "content": said.content})
        if said.calls:
            calls = [{"name": call.name, "arguments": json.dumps(call.arguments)} for call in said.calls]
            result[-1]["tool_calls"] = [
                {"id": f"call_{index + 1}_{at}", "type": "function", "function": call} for at, call in enumerate(calls)
            ]
    return result
