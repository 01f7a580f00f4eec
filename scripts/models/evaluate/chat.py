"""Evaluates daybreak-mini through the daemon's HTTP API, on held-out data, and prints a table in Markdown."""

import json
from random import Random
from typing import Any

from conversations.facts import all_held_questions
from conversations.mixture import generator
from conversations.talk import TALK
from conversations.template import Conversation, Turn
from conversations.tool_calls import Instance, offer, tool_call, two_calls
from conversations.tool_kinds import TOOLS, read_kinds
from conversations.words import wordings
from evaluate.daemon import Daemon, Score, options, report

OTHERS = 2
"""Further tools on offer beside one that was written for the evaluation alone."""
WIDE_COUNT = 800


def same_text(conversation: Conversation, said: str) -> bool:
    return said == conversation.turns[-1].content.strip()


def same_result(conversation: Conversation, said: str) -> bool:
    """For sums: the number after the last equals sign."""
    return said.split("=")[-1].strip() == conversation.turns[-1].content.split("=")[-1].strip()


def refused(_: Conversation, said: str) -> bool:
    return said.startswith(("I do not know", "Sorry, I do not know"))


def talked(conversation: Conversation, said: str) -> bool:
    asked = conversation.turns[0].content
    return any(said in topic["answers"] for topic in TALK if asked in topic["questions"])


CHECKS = {"text": same_text, "result": same_result, "refused": refused, "talked": talked}


def generated(daemon: Daemon, asked: int) -> list[Score]:
    """Held-out questions of every kind; of several turns, the last is asked."""
    scores = []
    for line in wordings("evaluated"):
        how, name = line.split(": ")
        maker, check = how.split()
        score, rng = Score(name, "90 %" if check == "refused" else ""), Random(f"evaluate {name}")
        for _ in range(asked):
            conversation = generator(maker)(rng, True)
            answer = daemon.ask(conversation, len(conversation.turns) - 1)
            score.add(CHECKS[check](conversation, answer["content"].strip()))
        scores.append(score)
    return scores


def fact_score(daemon: Daemon, asked: int) -> Score:
    score = Score("questions about Daybreak, in words not trained on", "90 %")
    every = list(all_held_questions())
    Random("facts").shuffle(every)
    for question, fact in every[:asked]:
        answer = daemon.chat([{"role": "user", "content": question}])
        score.add(answer["content"].strip() in fact.answers)
    return score


def add_call(score: Score, daemon: Daemon, conversation: Conversation) -> None:
    """Asks for the first turn's calls, and adds whether they come, in their order."""
    wanted = [(call.name, call.arguments) for call in conversation.turns[1].calls]
    score.add(called(daemon.ask(conversation, 1)) == wanted)


def called(answer: dict[str, Any]) -> list[tuple[str, object]]:
    """Names and arguments of the calls in an answer; none where the arguments are no JSON."""
    calls = [call["function"] for call in answer.get("tool_calls") or []]
    try:
        return [(call["name"], json.loads(call["arguments"])) for call in calls]
    except json.JSONDecodeError:
        return []


def tool_scores(daemon: Daemon, asked: int, seed: str) -> list[Score]:
    one = Score("tool calls exactly right, one call", "95 %")
    two = Score("tool calls exactly right, two at once", "95 %")
    rng = Random(seed)
    for index in range(asked):
        conversation = (two_calls if index % 4 == 3 else tool_call)(rng, True)
        add_call(one if len(conversation.turns[1].calls) == 1 else two, daemon, conversation)
    return [Score("tool calls exactly right", "95 %", one.right + two.right, one.total + two.total), one, two]


def unseen_score(daemon: Daemon, name: str, file: str, seed: str) -> Score:
    """Every wish for every tool of a file whose wishes were written for the evaluation alone."""
    score, rng, kinds = Score(name), Random(seed), read_kinds(TOOLS / file)
    for kind in kinds:
        others = rng.sample([other for other in kinds if other is not kind], OTHERS)
        for wish in kind.asks:
            instances = [Instance(rng, each, True) for each in (kind, *others)]
            values, wanted = instances[0].call(rng, True)
            conversation = Conversation([Turn("user", wish.format(**values)), Turn("assistant", calls=[wanted])])
            conversation.tools = offer(rng, instances)
            add_call(score, daemon, conversation)
    return score


def main() -> None:
    parser = options(__doc__, 40)
    parser.add_argument("--wide", action="store_true", help=f"ask for {WIDE_COUNT} other calls of tools alone")
    chosen = parser.parse_args()
    daemon, asked = Daemon(chosen.url, "daybreak-mini"), chosen.count
    if chosen.wide:
        report(tool_scores(daemon, WIDE_COUNT, "wide evaluate tools"))
        return
    written = "one call, all tools and wordings written for the evaluation alone"
    daily = "one call, tools of daily life in somebody else's words"
    report(
        [
            fact_score(daemon, 3 * asked),
            *tool_scores(daemon, 2 * asked, "evaluate tools"),
            unseen_score(daemon, written, "unseen.txt", "evaluate unseen"),
            unseen_score(daemon, daily, "unseen-daily.txt", "evaluate unseen daily"),
            *generated(daemon, asked),
        ]
    )


if __name__ == "__main__":
    main()
