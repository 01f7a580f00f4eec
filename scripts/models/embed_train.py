"""Trains daybreak-mini-embed on pairs of one meaning: each text must find its partner among the batch's others."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from random import Random

import torch
from torch import Tensor
from torch.nn import functional as F

import embed_data
from chat_format import segments
from embed_data import (
    Pair,
    fact_pairs,
    page_pairs,
    sentence_pair,
    synonym_pair,
    talk_pairs,
    task_pair,
    triple,
)
from embed_model import EmbedConfig, EmbedModel
from gen_facts import facts, questions
from mixture import sample
from wordpiece import PAD, WordPiece, train
from words import ANIMALS, CITIES, COLOURS, COUNTRIES, DAYS, FIELDS, LANGUAGES, MONTHS, NAMES, WORDS

HERE = Path(__file__).parent
TEMPERATURE = 0.05
VOCABULARY = 7000
WARMUP_STEPS = 40
PAGE_PAIRS = 20
SHORT, LONG = 64, 128
"""Tokens to which texts are cut in training."""


def vocabulary(seed: int) -> list[str]:
    """Words of our own texts and lists."""
    rng = Random(seed)
    texts = [text for _ in range(4000) for text, _ in segments(sample(rng))]
    texts += [text for fact in facts() for text in questions(fact, False) + fact.answers]
    prose = list(embed_data.pages().values())
    lists = NAMES + CITIES + COUNTRIES + FIELDS + LANGUAGES + DAYS + MONTHS + COLOURS + WORDS + ANIMALS
    frames = [form for frame in embed_data.FRAMES for form in frame] + embed_data.SYNONYMS
    answers = [text for fact in facts() for text in fact.answers + fact.how + fact.what + fact.ask]
    return train(texts + prose * 3, lists + frames + answers + prose, VOCABULARY)


def batch(rng: Random) -> list[Pair]:
    """About 160 pairs, no two of one meaning but by rare chance."""
    pairs = fact_pairs(rng, 56) + talk_pairs(rng, 8) + [task_pair(rng) for _ in range(12)]
    pairs += [sentence_pair(rng, False) for _ in range(60)] + [synonym_pair(rng) for _ in range(6)]
    return pairs + page_pairs(rng, PAGE_PAIRS)


def tensors(texts: list[str], tokenizer: WordPiece, limit: int) -> tuple[Tensor, Tensor]:
    encoded = [tokenizer.encode(text, limit) for text in texts]
    ids = torch.full((len(texts), max(map(len, encoded))), PAD)
    for row, tokens in enumerate(encoded):
        ids[row, : len(tokens)] = torch.tensor(tokens)
    real = torch.arange(ids.shape[1])[None] < torch.tensor([[len(tokens)] for tokens in encoded])
    return ids, real


@torch.no_grad()
def embed(model: EmbedModel, tokenizer: WordPiece, texts: list[str]) -> Tensor:
    return torch.cat(
        [model(*tensors(texts[i : i + 64], tokenizer, model.config.context)) for i in range(0, len(texts), 64)]
    )


def held_score(model: EmbedModel, tokenizer: WordPiece, count: int = 400) -> float:
    """Share of held-out triples that are ordered rightly."""
    rng = Random("triples")
    anchors, rights, wrongs = (list(column) for column in zip(*(triple(rng) for _ in range(count))))
    vectors = [embed(model, tokenizer, texts) for texts in (anchors, rights, wrongs)]
    return float(((vectors[0] * vectors[1]).sum(1) > (vectors[0] * vectors[2]).sum(1)).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--vocabulary", type=Path, default=HERE / "embed-vocabulary.json")
    parser.add_argument("--new-vocabulary", action="store_true", help="learn the vocabulary anew first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.002)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    if options.new_vocabulary:
        options.vocabulary.write_text(json.dumps(vocabulary(options.seed), ensure_ascii=False, indent=0) + "\n")
    tokenizer = WordPiece(json.loads(options.vocabulary.read_text()))
    config = EmbedConfig()
    model = EmbedModel(config, len(tokenizer.tokens))
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.rate, weight_decay=0.01)
    rng = Random(options.seed)
    print(
        f"{len(tokenizer.tokens)} tokens; untrained: {held_score(model, tokenizer):.3f} of triples right",
        flush=True,
    )
    begun, step = time.monotonic(), 0
    while (share := (time.monotonic() - begun) / (options.minutes * 60)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = options.rate * min((step + 1) / WARMUP_STEPS, 1, 2 * (1 - share))
        pairs = batch(rng)
        first = model(*tensors([pair[0] for pair in pairs], tokenizer, SHORT))
        # Sections of pages are ten times longer than the rest: apart, so that the rest is not padded to their length.
        second = torch.cat(
            [
                model(*tensors([pair[1] for pair in pairs[:-PAGE_PAIRS]], tokenizer, SHORT)),
                model(*tensors([pair[1] for pair in pairs[-PAGE_PAIRS:]], tokenizer, LONG)),
            ]
        )
        likeness = first @ second.T / TEMPERATURE
        target = torch.arange(len(pairs))
        loss = (F.cross_entropy(likeness, target) + F.cross_entropy(likeness.T, target)) / 2
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step} loss {float(loss):.3f} triples {held_score(model, tokenizer):.3f}", flush=True)
    torch.save({"model": model.state_dict(), "config": asdict(config)}, options.checkpoint)
    print(f"done after {step} steps: {held_score(model, tokenizer):.3f} of held-out triples right", flush=True)


if __name__ == "__main__":
    main()
