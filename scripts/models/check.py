"""Checks what the shipped models are made from, in seconds and with the standard library alone: that all data can be
read, that every kind of conversation can be made, that the vocabularies take them, and that nothing held out stands in
training. With --prompts it prints conversations for check-template.ts instead."""

import argparse
import json
from collections.abc import Iterator
from random import Random

from conversations.facts import WRAPPERS, all_held_questions, facts, repeats_held_out
from conversations.mixture import GROUPS, STAGES, generator, sample
from conversations.scenes import CODES
from conversations.small_tasks import copy_long, quote_long
from conversations.talk import TALK
from conversations.template import Conversation, encode, messages_until, segments
from conversations.tokenizer import SPACE, Tokenizer
from conversations.tool_calls import TRAINING_KINDS
from conversations.tool_kinds import ASKED_KINDS, HELD_KINDS, TOOLS, read_kinds
from conversations.words import HELD_WORDS, plain_words, templates, wordings
from embedding.pages import doc_questions, passages, search_questions, table_questions
from embedding.texts import fact_pairs, sentence_pairs, synonym_pair, talk_pairs, task_pair, triple
from embedding.wordpiece import WordPiece

EACH = 30
"""Conversations of each kind and side."""
TRAINING, HELD = 12_000, 2_000
"""Conversations that are drawn to look for what is held out."""


def data_failures() -> Iterator[str]:
    """What cannot be read (that raises by itself) or does not fit together."""
    for kind in ASKED_KINDS:
        held = {plain_words(wish) for wish in templates(kind.asks, True)}
        both = [wish for wish in kind.more if plain_words(wish) in held]
        yield from (f"{kind.names[0]}: held out, but for training too: {wish}" for wish in both)
    more = [phrase for fact in facts() for kind in WRAPPERS for phrase in fact.said[f"{kind}+"]]
    yield from (f"held out, but for training too: {phrase}" for phrase in more if repeats_held_out(phrase))
    evaluated = {kind.names[0] for kind in HELD_KINDS}
    yield from (f"{kind.names[0]} is held out and in training" for kind in TRAINING_KINDS if kind.names[0] in evaluated)
    for file in ("unseen.txt", "unseen-daily.txt"):
        read_kinds(TOOLS / file)
    for line in wordings("evaluated"):
        generator(line.split()[0])
    asked = {plain_words(text) for _, text in search_questions()}
    trained = [*doc_questions()[0], *(query for queries in table_questions().values() for query in queries)]
    yield from (f"question of the evaluation in training: {text}" for text, _ in trained if plain_words(text) in asked)


def encoding_failures(tokenizer: Tokenizer) -> Iterator[str]:
    """Tokens and texts that do not suit the vocabularies."""
    words = {token.removeprefix(SPACE).lower() for token in tokenizer.ids}
    yield from (f"held-out word is a token: {word}" for word in words & HELD_WORDS)
    for words in CODES.values():
        split = [word for word in words.values() if len(tokenizer.encode(f" {word}")) > 1]
        yield from (f"code word of several tokens: {word}" for word in split)
    for conversation in every_kind():
        if not any(encode(conversation, tokenizer)[1]):
            yield f"nothing to learn from {conversation}"
    rng, pieces = Random(1), WordPiece()
    pairs = fact_pairs(rng, 4) + talk_pairs(rng, 4) + sentence_pairs(rng, 42) + [triple(rng)]
    pairs += [task_pair(rng) for _ in range(EACH)] + [synonym_pair(rng) for _ in range(EACH)]
    for text in [text for pair in pairs for text in pair[:2]] + [passage.text for passage in passages()]:
        if len(pieces.encode(text, 256)) < 3:
            yield f"the embedding vocabulary has nothing for {text!r}"


def every_kind() -> Iterator[Conversation]:
    """Some conversations of every generator and stage, of both sides where it has them."""
    makers = [make for group in ("plain", "other", "words", "numbers") for make, _ in GROUPS[group]]
    for make in (*makers, copy_long, quote_long):
        for held in (False, True):
            rng = Random(1)
            yield from (make(rng, held) for _ in range(EACH))
    for stage in STAGES:
        rng = Random(stage)
        yield from (sample(rng, stage=stage) for _ in range(EACH))


def held_out_failures() -> Iterator[str]:
    """Held-out questions that a training draw holds, but for case, punctuation and articles."""
    rng = Random("train")
    seen = {
        (conversation.system, plain_words(turn.content))
        for conversation in (sample(rng) for _ in range(TRAINING))
        for turn in conversation.turns
        if turn.role == "user"
    }
    rng = Random("held")
    drawn = [sample(rng, held=True) for _ in range(HELD)]
    asked = [(one.system, one.turns[0].content) for one in drawn]
    asked += [(None, question) for question, _ in all_held_questions()]
    # Some small talk is held out and in training, but for case and punctuation ("Hi there!").
    may_repeat = {question for topic in TALK for question in topic["questions"]}
    for system, question in asked:
        if question not in may_repeat and (system, plain_words(question)) in seen:
            yield f"held-out question in training: {question}"


def prompts(count: int) -> Iterator[str]:
    """Conversations as requests carry them, each with what training sees of it: a line of JSON."""
    rng = Random(5)
    for _ in range(count):
        conversation = sample(rng)
        for turn in conversation.turns[:-1]:
            turn.thought = None
        rendered = segments(conversation)
        last = max(index for index, (_, own) in enumerate(rendered) if own)
        yield json.dumps(
            {
                "messages": messages_until(conversation, len(conversation.turns) - 1),
                "tools": [tool.schema() for tool in conversation.tools],
                "thinking": conversation.turns[-1].thought is not None,
                "prompt": "".join(text for text, _ in rendered[:last]),
            }
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, help="conversations to print, instead of checking")
    options = parser.parse_args()
    if options.prompts:
        for line in prompts(options.prompts):
            print(line)
        return
    found = [*data_failures(), *encoding_failures(Tokenizer()), *held_out_failures()]
    print("\n".join(found) or "The data of the shipped models fits together, and nothing held out stands in training.")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
