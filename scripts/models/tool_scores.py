"""How many calls of tools are right: for held-out wordings and kinds, and for tools of the evaluation alone.

Run by itself, it draws held-out wishes that evaluate.py does not: by those, former weights were judged and improved.
"""

from __future__ import annotations

import argparse
import json
import re
from random import Random

from chat_format import Conversation, Turn
from daemon_client import Answer, Daemon
from gen_tools import tool_call, two_calls
from scores import Score, ask, same_text
from tool_instances import Instance, offer
from tool_kind import ToolKind
from tools_held_out import HELD_KINDS
from tools_unseen import UNSEEN_KINDS
from tools_unseen_daily import UNSEEN_DAILY_KINDS

OTHERS = 2
"""Further tools on offer beside one that was written for the evaluation alone."""


def told(conversation: Conversation, answer: Answer) -> bool:
    """For results of tools: the trained sentence, or any that says every value of the results."""
    if same_text(conversation, answer):
        return True
    results = [turn for turn in conversation.turns if turn.role == "tool"][-1].results
    values = [value for text in results for value in result_values(text) if value != "ok"]
    return bool(values) and all(value in answer.content for value in values)


def result_values(text: str) -> list[str]:
    """The values of one result, in JSON or as "key: value" pairs."""
    if text.startswith("{"):
        return [str(value) for value in json.loads(text).values()]
    return [pair.split(": ", 1)[1] for pair in re.split(r", (?=\w+: )", text)]


def has_own_words(conversation: Conversation) -> bool:
    """Whether a tool that training never saw gives no more than "ok": how its use is then told, nobody can know."""
    unseen = {name for kind in HELD_KINDS for name in kind.names}
    results = [value for turn in conversation.turns for text in turn.results for value in result_values(text)]
    return "ok" in results and any(call.name in unseen for call in conversation.turns[1].calls)


def tool_scores(daemon: Daemon, count: int, seed: str = "evaluate tools") -> list[Score]:
    every, one, two, used = (
        Score("tool calls exactly right", "95 %"),
        Score("tool calls exactly right, one call", "95 %"),
        Score("tool calls exactly right, two at once", "95 %"),
        Score("answers that tell the tools' results"),
    )
    rng = Random(seed)
    for index in range(count):
        conversation = (two_calls if index % 4 == 3 else tool_call)(rng, True)
        wanted = conversation.turns[1].calls
        answer = ask(daemon, conversation, 1)
        add_call(one if len(wanted) == 1 else two, conversation, answer)
        if len(conversation.turns) == 4 and not has_own_words(conversation):
            final = ask(daemon, conversation, 3)
            used.add(
                told(conversation, final),
                f"{conversation.turns[2].results} -> {final.content!r}, wanted {conversation.turns[3].content!r}",
            )
    every.total, every.right = one.total + two.total, one.right + two.right
    return [every, one, two, used]


def add_call(score: Score, conversation: Conversation, answer: Answer) -> None:
    """Adds whether the answer's calls are those of the conversation, in their order."""
    right = [(call.name, call.arguments) for call in conversation.turns[1].calls] == answer.calls
    signatures = "; ".join(tool.signature() for tool in conversation.tools)
    score.add(right, f"[{signatures}] {conversation.turns[0].content} -> {answer.calls or answer.content!r}")


def unseen_scores(daemon: Daemon) -> list[Score]:
    """Every wish for every tool of those whose wishes were written for the evaluation alone."""
    return [
        _all_wishes(
            daemon,
            Score("one call, all tools and wordings written for the evaluation alone", secret=True),
            UNSEEN_KINDS,
            Random("evaluate unseen"),
        ),
        _all_wishes(
            daemon,
            Score("one call, tools of daily life in somebody else's words", secret=True),
            UNSEEN_DAILY_KINDS,
            Random("evaluate unseen daily"),
        ),
    ]


def _all_wishes(daemon: Daemon, score: Score, kinds: list[ToolKind], rng: Random) -> Score:
    for kind in kinds:
        others = rng.sample([other for other in kinds if other is not kind], OTHERS)
        for wish in kind.asks:
            instances = [Instance(rng, each, True) for each in (kind, *others)]
            values, wanted = instances[0].call(rng, True)
            conversation = Conversation([Turn("user", wish.format(**values)), Turn("assistant", calls=[wanted])])
            conversation.tools = offer(rng, instances)
            add_call(score, conversation, ask(daemon, conversation, 1))
    return score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="address of the daemon")
    parser.add_argument("--model", default="daybreak-mini")
    parser.add_argument("--count", type=int, default=800, help="wishes")
    parser.add_argument("--seed", default="wide evaluate tools")
    options = parser.parse_args()
    for score in tool_scores(Daemon(options.url, options.model), options.count, options.seed):
        print(score.row())


if __name__ == "__main__":
    main()
