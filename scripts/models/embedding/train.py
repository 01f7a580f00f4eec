"""Trains daybreak-mini-embed: questions must find their passage among all, and texts others of their meaning.

First the words alone, without the block, against all passages at once. The block begins as nearly nothing, so what is
learned then holds for the whole model, at a twentieth of the price."""

from random import Random

import torch
from torch import Tensor
from torch.nn import functional as F

from chat.descent import arguments, descend
from embedding.model import CONTEXT, EmbedModel, write_model
from embedding.pages import Query, doc_questions, passages, table_questions
from embedding.texts import (
    Pair, cropped, fact_pairs, reworded, sentence_pairs, synonym_pair, talk_pairs, task_pair, thinned,
)

TEMPERATURE = 0.05
WORD_QUERIES, QUERIES = (160, 48, 64), (40, 8, 12)
"""Queries of a step in the two stages: written questions, questions to rows of tables, and parts of passages."""
WORD_RATE, RATE, SETTLING_SHARE = 0.004, 0.0008, 0.2
"""Learning rates of the two stages, and the words' share of the second: there they only settle."""
WARMUP_STEPS, FALL_SHARE = 30, 0.6
KEPT_SHARE = 0.85
"""Words of a passage that a step of the first stage sees."""
INDEX_STEPS = 40
"""Steps between two computations of all passages and their hardest wrong answers."""
HARDEST = 12
QUERY_TOKENS, TEXT_TOKENS, PASSAGE_TOKENS = 48, 64, 96


class Trainer:
    def __init__(self, model: EmbedModel) -> None:
        self.model = model
        self.questions, lost = doc_questions()
        for line in lost:
            print(f"no such place any longer: {line}")
        self.steps = 0
        self.rows = table_questions()
        self.encoded = [model.tokenizer.encode(passage.text, CONTEXT) for passage in passages()]

    def queries(self, rng: Random, counts: tuple[int, int, int]) -> list[Query]:
        asked = rng.sample(self.questions, counts[0])
        asked += [rng.choice(self.rows[page]) for page in rng.choices(sorted(self.rows), k=counts[1])]
        result = [(reworded(rng, text), answers) for text, answers in asked]
        return result + [cropped(rng, index) for index in rng.sample(range(len(passages())), counts[2])]

    def refresh(self) -> None:
        """Computes all passages anew, and for each question those that are nearest to it but hold no answer."""
        self.index = self.model.embed([passage.text for passage in passages()])
        scores = self.model.embed([text for text, _ in self.questions]) @ self.index.T
        self.hardest: dict[tuple[int, ...], list[int]] = {}
        for row, (_, answers) in zip(scores, self.questions):
            row[list(answers)] = -2
            self.hardest[answers] = row.topk(HARDEST).indices.tolist()

    def word_vectors(self, encoded: list[list[int]], kept: float = 1) -> Tensor:
        """What the model would give if its block did nothing."""
        last = self.model.blk[-1].layer_output_norm
        words = last(self.model.token_embd_norm(self.model.token_embd.weight))
        ids = torch.tensor([token for tokens in encoded for token in tokens])
        starts = torch.tensor([0, *map(len, encoded)])[:-1].cumsum(0)
        weights = (torch.rand(len(ids)) < kept).float()
        return F.normalize(F.embedding_bag(ids, words, starts, mode="sum", per_sample_weights=weights), dim=-1)

    def word_loss(self, rng: Random) -> Tensor:
        def vectors(texts: list[str]) -> Tensor:
            return self.word_vectors([self.model.tokenizer.encode(text, CONTEXT) for text in texts])

        queries, pairs = self.queries(rng, WORD_QUERIES), pairs_of(rng)
        scores = vectors([text for text, _ in queries]) @ self.word_vectors(self.encoded, KEPT_SHARE).T
        sides = [vectors([pair[side] for pair in pairs]) for side in (0, 1)]
        return page_loss(scores, queries) + pair_loss(*sides, pairs)

    def whole_loss(self, rng: Random) -> Tensor:
        """Every query against all passages: those that matter here are computed anew, the others are as at refresh."""
        if self.steps % INDEX_STEPS == 0:
            self.refresh()
        self.steps += 1
        queries, pairs = self.queries(rng, QUERIES), pairs_of(rng)
        fresh = {rng.choice(answers) for _, answers in queries}
        fresh |= {rng.choice(self.hardest[answers]) for _, answers in queries if answers in self.hardest}
        rows = sorted(fresh)
        anew = self.model([thinned(rng, passages()[row]) for row in rows], PASSAGE_TOKENS)
        index = self.index.index_copy(0, torch.tensor(rows), anew)
        scores = self.model([text for text, _ in queries], QUERY_TOKENS) @ index.T
        sides = [self.model([pair[side] for pair in pairs], TEXT_TOKENS) for side in (0, 1)]
        return page_loss(scores, queries) + pair_loss(*sides, pairs)


def pairs_of(rng: Random) -> list[Pair]:
    pairs = fact_pairs(rng, 24) + talk_pairs(rng, 4) + [task_pair(rng) for _ in range(6)]
    return pairs + sentence_pairs(rng, 42) + [synonym_pair(rng) for _ in range(8)]


def page_loss(scores: Tensor, queries: list[Query]) -> Tensor:
    """Each query must find one of its passages among all."""
    wrong = torch.ones_like(scores, dtype=torch.bool)
    for row, (_, answers) in enumerate(queries):
        wrong[row, list(answers)] = False
    scores = scores / TEMPERATURE
    return (scores.logsumexp(1) - scores.masked_fill(wrong, float("-inf")).logsumexp(1)).mean()


def pair_loss(first: Tensor, second: Tensor, pairs: list[Pair]) -> Tensor:
    """Each text must find its partner among the others' partners."""
    same = torch.tensor([[one[2] == other[2] for other in pairs] for one in pairs])
    same.fill_diagonal_(False)
    scores = (first @ second.T / TEMPERATURE).masked_fill(same, float("-inf"))
    target = torch.arange(len(pairs))
    return (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2


def main() -> None:
    parser = arguments(__doc__, minutes=0.5)
    parser.add_argument("--words", type=float, default=1, help="minutes of the first stage, without the block")
    options = parser.parse_args()
    torch.manual_seed(1)
    rng, model = Random(1), EmbedModel()
    trainer, norm = Trainer(model), model.token_embd_norm
    print(f"{len(passages())} passages, {len(trainer.questions)} questions")
    words = [model.token_embd.weight, norm.weight, norm.bias]
    optimizer = torch.optim.AdamW(words, lr=WORD_RATE, weight_decay=0.01)
    descend([optimizer], options.words, lambda _: trainer.word_loss(rng))
    rest = [tensor for name, tensor in model.named_parameters() if name != "token_embd.weight"]
    settling = {"params": [model.token_embd.weight], "lr": RATE * SETTLING_SHARE}
    optimizer = torch.optim.AdamW([{"params": rest}, settling], lr=RATE, weight_decay=0.01)
    descend([optimizer], options.minutes, lambda _: trainer.whole_loss(rng), WARMUP_STEPS, FALL_SHARE)
    write_model(model, options.out)


if __name__ == "__main__":
    main()
