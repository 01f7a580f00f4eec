"""Evaluates daybreak-mini through the daemon's HTTP API, on held-out data, and prints a table in Markdown."""

import json
from random import Random

from conversations.facts import all_held_questions
from conversations.mixture import generator
from conversations.talk import TALK
from conversations.template import Conversation, Turn
from conversations.tool_calls import Instance, offer, tool_call, two_calls
from conversations.tool_kinds import TOOLS, read_kinds
from conversations.words import wordings
from evaluate.daemon import Daemon, Row, options, report

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


def task_row(daemon: Daemon, asked: int, line: str) -> Row:
    """Held-out questions of one generator; of several turns, the last is asked."""
    how, name = line.split(": ")
    maker, check = how.split()
    rng, right = Random(f"evaluate {name}"), []
    for _ in range(asked):
        conversation = generator(maker)(rng, True)
        answer = daemon.ask(conversation, len(conversation.turns) - 1)
        right.append(CHECKS[check](conversation, answer["content"].strip()))
    return name, "90 %" if check == "refused" else "", right


def fact_row(daemon: Daemon, asked: int) -> Row:
    every, right = list(all_held_questions()), []
    Random("facts").shuffle(every)
    for question, fact in every[:asked]:
        answer = daemon.chat([{"role": "user", "content": question}])
        right.append(answer["content"].strip() in fact.answers)
    return "questions about Daybreak, in words not trained on", "90 %", right


def calls_rightly(daemon: Daemon, conversation: Conversation) -> bool:
    """Whether the calls of the first turn come, in their order."""
    calls = [call["function"] for call in daemon.ask(conversation, 1).get("tool_calls") or []]
    try:
        given = [(call["name"], json.loads(call["arguments"])) for call in calls]
    except json.JSONDecodeError:
        return False
    return given == [(call.name, call.arguments) for call in conversation.turns[1].calls]


def tool_rows(daemon: Daemon, asked: int, seed: str) -> list[Row]:
    one, two, rng = [], [], Random(seed)
    for index in range(asked):
        conversation = (two_calls if index % 4 == 3 else tool_call)(rng, True)
        (one if len(conversation.turns[1].calls) == 1 else two).append(calls_rightly(daemon, conversation))
    kinds = {"": one + two, ", one call": one, ", two at once": two}
    return [(f"tool calls exactly right{kind}", "95 %", right) for kind, right in kinds.items()]


def unseen_row(daemon: Daemon, name: str, file: str, seed: str) -> Row:
    """Every wish for every tool of a file whose wishes were written for the evaluation alone."""
    rng, kinds, right = Random(seed), read_kinds(TOOLS / file), []
    for kind in kinds:
        others = rng.sample([other for other in kinds if other is not kind], OTHERS)
        for wish in kind.asks:
            instances = [Instance(rng, each, True) for each in (kind, *others)]
            values, wanted = instances[0].call(rng, True)
            conversation = Conversation([Turn("user", wish.format(**values)), Turn("assistant", calls=[wanted])])
            conversation.tools = offer(rng, instances)
            right.append(calls_rightly(daemon, conversation))
    return name, "", right


def main() -> None:
    parser = options(__doc__, 40)
    parser.add_argument("--wide", action="store_true", help=f"ask for {WIDE_COUNT} other calls of tools alone")
    chosen = parser.parse_args()
    daemon, asked = Daemon(chosen.url, "daybreak-mini"), chosen.count
    if chosen.wide:
        report(tool_rows(daemon, WIDE_COUNT, "wide evaluate tools"))
        return
    written = "one call, all tools and wordings written for the evaluation alone"
    daily = "one call, tools of daily life in somebody else's words"
    rows = [fact_row(daemon, 3 * asked), *tool_rows(daemon, 2 * asked, "evaluate tools")]
    rows.append(unseen_row(daemon, written, "unseen.txt", "evaluate unseen"))
    rows.append(unseen_row(daemon, daily, "unseen-daily.txt", "evaluate unseen daily"))
    report(rows + [task_row(daemon, asked, line) for line in wordings("evaluated")])


if __name__ == "__main__":
    main()
