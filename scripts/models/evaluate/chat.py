"""Evaluates daybreak-mini through the daemon's HTTP API, on held-out data, and prints a table in Markdown."""

import json
import re
from collections.abc import Callable
from random import Random

from conversations.facts import facts, held_questions, questions
from conversations.mixture import Generator
from conversations.number_tasks import (
    addition, comparison, conversion, extreme, multiplication, sort_numbers, subtraction,
)
from conversations.system_prompts import named_model, one_word
from conversations.talk import TALK, named_user, small_talk, unknown
from conversations.template import Conversation, Turn
from conversations.tool_calls import tool_call, two_calls
from conversations.tool_kinds import HELD_KINDS, TOOLS, read_kinds
from conversations.tool_offers import Instance, offer
from conversations.word_tasks import as_json, calendar, count, echo, letters, spell, upper
from evaluate.daemon import Answer, Daemon, Score, options, report

OTHERS = 2
"""Further tools on offer beside one that was written for the evaluation alone."""
WIDE_COUNT = 800


def same_text(conversation: Conversation, answer: Answer) -> bool:
    return answer.content.strip() == conversation.turns[-1].content.strip()


def same_result(conversation: Conversation, answer: Answer) -> bool:
    """For sums: the number after the last equals sign."""
    return answer.content.split("=")[-1].strip() == conversation.turns[-1].content.split("=")[-1].strip()


def refused(_: Conversation, answer: Answer) -> bool:
    return answer.content.startswith(("I do not know", "Sorry, I do not know"))


def talked(conversation: Conversation, answer: Answer) -> bool:
    asked = conversation.turns[0].content
    return any(answer.content in answers for questions, answers, _ in TALK if asked in questions)


KINDS: list[tuple[str, Generator, Callable[[Conversation, Answer], bool], str]] = [
    ("unknown questions refused", unknown, refused, "90 %"),
    ("small talk", small_talk, talked, ""),
    ("addition", addition, same_result, ""),
    ("subtraction", subtraction, same_result, ""),
    ("multiplication table", multiplication, same_result, ""),
    ("comparing numbers", comparison, same_text, ""),
    ("unit conversion", conversion, same_result, ""),
    ("sorting numbers", sort_numbers, same_text, ""),
    ("largest or smallest", extreme, same_text, ""),
    ("spelling", spell, same_text, ""),
    ("counting letters", letters, same_text, ""),
    ("upper case", upper, same_text, ""),
    ("echo", echo, same_text, ""),
    ("counting a list", count, same_text, ""),
    ("days and months", calendar, same_text, ""),
    ("JSON from a sentence", as_json, same_text, ""),
    ("remembering the user's words", named_user, same_text, ""),
    ("a name from the system prompt", named_model, same_text, ""),
    ("one word when told so", one_word, same_text, ""),
]


def generated(daemon: Daemon, asked: int) -> list[Score]:
    """Held-out questions of every kind; of several turns, the last is asked."""
    scores = []
    for name, make, right, aim in KINDS:
        score, rng = Score(name, aim), Random(f"evaluate {name}")
        for _ in range(asked):
            conversation = make(rng, True)
            answer = daemon.ask(conversation, len(conversation.turns) - 1)
            score.add(right(conversation, answer), f"{conversation.turns[-2].content} -> {answer.content!r}")
        scores.append(score)
    return scores


def fact_score(daemon: Daemon, asked: int) -> Score:
    score = Score("questions about Daybreak, in words not trained on", "90 %")
    every = [(question, fact) for fact in facts() for question in held_questions(fact)]
    Random("facts").shuffle(every)
    for question, fact in every[:asked]:
        answer = daemon.chat([{"role": "user", "content": question}])
        score.add(answer.content.strip() in fact.answers, f"{question} -> {answer.content!r}")
    return score


def trained_scores(daemon: Daemon, asked: int) -> list[Score]:
    """For comparison, wordings from training: facts, and tools whose names and values are drawn anew."""
    known = Score("questions about Daybreak, in trained wordings")
    called = Score("one call in trained wordings, names and values new")
    rng = Random("evaluate trained")
    for _ in range(asked):
        fact = rng.choice(facts())
        question = rng.choice(questions(fact, held=False))
        answer = daemon.chat([{"role": "user", "content": question}])
        known.add(answer.content.strip() in fact.answers, f"{question} -> {answer.content!r}")
        add_call(called, daemon, tool_call(rng, False))
    return [known, called]


def thinking_score(daemon: Daemon, asked: int) -> Score:
    """With thinking on: it thinks, and then answers as it does without."""
    score, rng = Score("asked to think: thinks, then answers rightly"), Random("evaluate thinking")
    for index in range(asked):
        make, right = (addition, same_result) if index % 2 else (unknown, refused)
        conversation = make(rng, True)
        answer = daemon.ask(conversation, 1, think=True)
        told = f"{conversation.turns[0].content} -> {answer.thinking!r}, {answer.content!r}"
        score.add(right(conversation, answer) and answer.thinking != "", told)
    return score


def add_call(score: Score, daemon: Daemon, conversation: Conversation) -> None:
    """Asks for the first turn's calls, and adds whether they come, in their order."""
    answer = daemon.ask(conversation, 1)
    right = [(call.name, call.arguments) for call in conversation.turns[1].calls] == answer.calls
    signatures = "; ".join(tool.signature() for tool in conversation.tools)
    score.add(right, f"[{signatures}] {conversation.turns[0].content} -> {answer.calls or answer.content!r}")


def tool_scores(daemon: Daemon, asked: int, seed: str) -> list[Score]:
    one = Score("tool calls exactly right, one call", "95 %")
    two = Score("tool calls exactly right, two at once", "95 %")
    used = Score("answers that tell the tools' results")
    rng = Random(seed)
    for index in range(asked):
        conversation = (two_calls if index % 4 == 3 else tool_call)(rng, True)
        add_call(one if len(conversation.turns[1].calls) == 1 else two, daemon, conversation)
        if len(conversation.turns) == 4 and not has_own_words(conversation):
            answer, wanted = daemon.ask(conversation, 3), conversation.turns[3].content
            failure = f"{conversation.turns[2].results} -> {answer.content!r}, wanted {wanted!r}"
            used.add(told(conversation, answer), failure)
    every = Score("tool calls exactly right", "95 %", right=one.right + two.right, total=one.total + two.total)
    return [every, one, two, used]


def result_values(conversation: Conversation) -> list[str]:
    """The values of the tools' results, which are JSON or "key: value" pairs."""
    values = []
    for text in (text for turn in conversation.turns for text in turn.results):
        if text.startswith("{"):
            values += [str(value) for value in json.loads(text).values()]
        else:
            values += [pair.split(": ", 1)[1] for pair in re.split(r", (?=\w+: )", text)]
    return values


def told(conversation: Conversation, answer: Answer) -> bool:
    """The trained sentence, or any that says every value of the results."""
    values = [value for value in result_values(conversation) if value != "ok"]
    return same_text(conversation, answer) or bool(values) and all(value in answer.content for value in values)


def has_own_words(conversation: Conversation) -> bool:
    """Whether a tool that training never saw gives no more than "ok": how its use is then told, nobody can know."""
    unseen = {name for kind in HELD_KINDS for name in kind.names}
    return "ok" in result_values(conversation) and any(call.name in unseen for call in conversation.turns[1].calls)


def unseen_score(daemon: Daemon, name: str, file: str, seed: str) -> Score:
    """Every wish for every tool of a file whose wishes were written for the evaluation alone."""
    score, rng, kinds = Score(name, secret=True), Random(seed), read_kinds(TOOLS / file)
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
    parser = options(__doc__, "daybreak-mini", 40)
    parser.add_argument("--wide", action="store_true", help=f"ask for {WIDE_COUNT} other calls of tools alone")
    chosen = parser.parse_args()
    daemon, asked = Daemon(chosen.url, chosen.model), chosen.count
    if chosen.wide:
        scores = tool_scores(daemon, WIDE_COUNT, "wide evaluate tools")
    else:
        written = "one call, all tools and wordings written for the evaluation alone"
        daily = "one call, tools of daily life in somebody else's words"
        scores = [
            fact_score(daemon, 3 * asked),
            *tool_scores(daemon, 2 * asked, "evaluate tools"),
            unseen_score(daemon, written, "unseen.txt", "evaluate unseen"),
            unseen_score(daemon, daily, "unseen-daily.txt", "evaluate unseen daily"),
            thinking_score(daemon, asked),
            *trained_scores(daemon, 2 * asked),
            *generated(daemon, asked),
        ]
    report(scores, chosen.failures)


if __name__ == "__main__":
    main()
