"""Evaluates the shipped models through the daemon's HTTP API, on held-out data, and prints a table in Markdown.

Start the daemon first (npm start); only Python's standard library and NumPy are needed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from chat_format import Conversation
from daemon_client import Answer, Daemon
from gen_facts import facts, held_questions, questions
from gen_numbers import addition, comparison, conversion, extreme, multiplication, sort_numbers, subtraction
from gen_system import named_model, one_word
from gen_talk import TALK, named_user, small_talk, unknown
from gen_tools import tool_call
from gen_words import as_json, calendar, echo, letters, spell, upper
from gen_words import count as count_list
from perplexity import perplexity
from scores import Score, ask, same_text
from spm_tokenizer import Tokenizer
from tool_scores import add_call, tool_scores, unseen_scores

HERE = Path(__file__).parent
REFUSALS = ("I do not know", "Sorry, I do not know")


def same_result(conversation: Conversation, answer: Answer) -> bool:
    """For sums: the number after the last equals sign."""
    return answer.content.split("=")[-1].strip() == conversation.turns[-1].content.split("=")[-1].strip()


def refused(_: Conversation, answer: Answer) -> bool:
    return answer.content.startswith(REFUSALS)


def talked(conversation: Conversation, answer: Answer) -> bool:
    asked = conversation.turns[0].content
    return any(answer.content in answers for questions, answers, _ in TALK if asked in questions)


def generated(
    daemon: Daemon,
    name: str,
    make: Callable[[Random, bool], Conversation],
    right: Callable[[Conversation, Answer], bool],
    count: int,
    aim: str = "",
) -> Score:
    """Asks held-out questions of one generator; of several turns, the last is asked."""
    score, rng = Score(name, aim), Random(f"evaluate {name}")
    for _ in range(count):
        conversation = make(rng, True)
        answer = ask(daemon, conversation, len(conversation.turns) - 1)
        question = conversation.turns[-2].content
        score.add(right(conversation, answer), f"{question} -> {answer.content!r}")
    return score


def fact_score(daemon: Daemon, count: int) -> Score:
    score = Score("questions about Daybreak, in words not trained on", "90 %")
    asked = [(question, fact) for fact in facts() for question in held_questions(fact)]
    Random("facts").shuffle(asked)
    for question, fact in asked[:count]:
        answer = daemon.chat([{"role": "user", "content": question}])
        score.add(answer.content.strip() in fact.answers, f"{question} -> {answer.content!r}")
    return score


def trained_scores(daemon: Daemon, count: int) -> list[Score]:
    """For comparison, wordings from training: facts, and tools whose names and values are drawn anew."""
    known, called = (
        Score("questions about Daybreak, in trained wordings"),
        Score("one call in trained wordings, names and values new"),
    )
    rng = Random("evaluate trained")
    for _ in range(count):
        fact = rng.choice(facts())
        question = rng.choice(questions(fact, held=False))
        answer = daemon.chat([{"role": "user", "content": question}])
        known.add(answer.content.strip() in fact.answers, f"{question} -> {answer.content!r}")
        conversation = tool_call(rng, False)
        answer = ask(daemon, conversation, 1)
        add_call(called, conversation, answer)
    return [known, called]


def thinking_score(daemon: Daemon, count: int) -> Score:
    """With thinking on: it thinks, and then answers as it does without."""
    score, rng = Score("asked to think: thinks, then answers rightly"), Random("evaluate thinking")
    for index in range(count):
        conversation = (addition if index % 2 else unknown)(rng, True)
        answer = ask(daemon, conversation, 1, think=True)
        right = (same_result if index % 2 else refused)(conversation, answer)
        score.add(
            right and answer.thinking != "",
            f"{conversation.turns[0].content} -> {answer.thinking!r}, {answer.content!r}",
        )
    return score


def chat_scores(daemon: Daemon, count: int) -> list[Score]:
    scores = [fact_score(daemon, 3 * count), *tool_scores(daemon, 2 * count), *unseen_scores(daemon)]
    plan: list[tuple[str, Callable[[Random, bool], Conversation], Callable[[Conversation, Answer], bool], str]] = [
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
        ("counting a list", count_list, same_text, ""),
        ("days and months", calendar, same_text, ""),
        ("JSON from a sentence", as_json, same_text, ""),
        ("remembering the user's words", named_user, same_text, ""),
        ("a name from the system prompt", named_model, same_text, ""),
        ("one word when told so", one_word, same_text, ""),
    ]
    scores += [thinking_score(daemon, count), *trained_scores(daemon, 2 * count)]
    return scores + [generated(daemon, name, make, right, count, aim) for name, make, right, aim in plan]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="address of the daemon")
    parser.add_argument("--model", default="daybreak-mini")
    parser.add_argument("--count", type=int, default=40, help="questions for each kind")
    parser.add_argument("--failures", type=int, default=3, help="failures to show for each kind")
    options = parser.parse_args()
    daemon, begun = Daemon(options.url, options.model), time.monotonic()
    scores = chat_scores(daemon, options.count)
    print("| what | right | share | aim |\n|---|---|---|---|")
    for score in scores:
        print(score.row())
    value, tokens = perplexity(daemon, Tokenizer.load(HERE / "tokenizer.json"), options.count)
    print(f"\nPerplexity of held-out answers: {value:.3f} a token, over {tokens} tokens")
    print(
        f"{daemon.tokens} tokens in {time.monotonic() - begun:.0f} s of evaluation, "
        f"{daemon.rate():.0f} tokens/s while generating\n"
    )
    for score in scores:
        for failure in score.failures[: options.failures]:
            print(f"- {score.name}: {failure}")


if __name__ == "__main__":
    main()
