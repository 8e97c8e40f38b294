"""The shards' answers: each depends only on the shard's own examples, and batches have a public shape.

An empty shard gives the public answer, which is computed without private rows. If a shard's logits are not finite, it
votes for the public label, or continues with the tokens that have finite logits: a record can stop or change only the
answer of its own shard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from mechanisms.answers.plan import AnswerPlan
from mechanisms.evaluation.classifier import CONTENT_FREE
from mechanisms.inference import LanguageModel, Session, scores_of
from mechanisms.inference.prompts import ShardPrompt, first_tokens
from mechanisms.noise import Floats, Integers
from mechanisms.queries import presence_histogram
from mechanisms.records import Record

_KEYWORD_TOKENS = 256
"""Cap on the released keywords in the prompt for the answer."""

Examples = Sequence[Sequence[Record]]
"""Each shard's examples, nearest first."""


@dataclass(frozen=True, repr=False)
class ShardAnswers:
    """The shards' answers; private except for `zero_shot`.

    Attributes:
        histogram: the sum of their answers, shape (categories,): see `QueryMechanism.release`.
        zero_shot: the public answer as text; empty without a model.
    """

    histogram: Integers
    zero_shot: str


class LabelRespondent:
    """Each shard votes for the label whose probability rises most with the question, given the shard's examples.

    This is contextual calibration (Zhao et al. 2021) for each shard; without it a small model prefers one label for all
    questions. Each shard needs a second row, with a content-free question.
    """

    def __init__(self, model: LanguageModel, plan: AnswerPlan) -> None:
        self._model, self._plan = model, plan
        tokens = max(len(model.encode(" " + label)) for label in plan.labels)
        self.prompt = prompt = _prompt(model, plan, tokens)
        self._labels = [prompt.label(label) for label in plan.labels]
        self._room = max(len(label) for label in self._labels)
        # Checked before any charge. Each shard has two rows.
        model.check(prompt.prefix, 2 * plan.spec.shards, prompt.length, self._room)

    def answer(self, examples: Examples, query: str) -> ShardAnswers:
        labels, prompt = self._plan.labels, self.prompt
        [public] = self._votes([()], query, prompt.public_length, 0)
        votes = self._votes(examples, query, prompt.length, public)
        votes = [vote if shard else public for vote, shard in zip(votes, examples, strict=True)]
        return ShardAnswers(np.bincount(votes, minlength=len(labels)), labels[public])

    def _votes(self, examples: Examples, query: str, length: int, otherwise: int) -> list[int]:
        """The position of each shard's label; `otherwise` if its numbers are not finite."""
        gained = self.gains(examples, query, length)
        return [int(row.argmax()) if np.isfinite(row).all() else otherwise for row in gained]

    def gains(self, examples: Examples, query: str, length: int) -> Floats:
        """The gain in each label's log-probability from a content-free question to this one, shape (shards, labels).

        Args:
            length: the public length of a prompt's row.
        """
        rows = [self.prompt.row(shard[::-1], text) for text in (query, CONTENT_FREE[0]) for shard in examples]
        session = self._model.open(self.prompt.prefix, rows, length, self._room)
        scores = scores_of(session, self._labels)
        with np.errstate(invalid="ignore"):
            return np.asarray(scores[: len(examples)] - scores[len(examples) :])


class NeighbourLabels:
    """The dummy of Koskela et al.: each shard votes for the most common label of its neighbours, without a model.

    The label of the nearest neighbour wins a tie. Empty shards vote for the public labels in turn.
    """

    def __init__(self, plan: AnswerPlan) -> None:
        self._labels = plan.labels

    def answer(self, examples: Examples, query: str) -> ShardAnswers:
        votes = [self._vote(place, shard) for place, shard in enumerate(examples)]
        return ShardAnswers(np.bincount(votes, minlength=len(self._labels)), "")

    def _vote(self, place: int, shard: Sequence[Record]) -> int:
        if not shard:
            return place % len(self._labels)
        [(label, _)] = Counter(record.label for record in shard).most_common(1)
        return self._labels.index(label)


class TextRespondent:
    """Each shard writes an answer of a public number of tokens, of which the distinct tokens are counted."""

    def __init__(self, model: LanguageModel, plan: AnswerPlan) -> None:
        self._model, self._plan = model, plan
        self._prompt = prompt = _prompt(model, plan, plan.spec.answer_tokens)
        # Checked before any charge.
        model.check(prompt.prefix, plan.spec.shards, prompt.length, plan.spec.answer_tokens)
        longest = len(self._given(())) + _KEYWORD_TOKENS + prompt.public_length
        model.check(prompt.prefix, 1, longest, plan.spec.answer_tokens)

    def answer(self, examples: Examples, query: str) -> ShardAnswers:
        prompt, tokens = self._prompt, self._plan.spec.answer_tokens
        public_session = self._model.open(prompt.prefix, [prompt.row((), query)], prompt.public_length, tokens)
        categories = public_session.logits().shape[1]
        [public] = greedy(self._model, public_session, tokens)
        rows = [prompt.row(shard[::-1], query) for shard in examples]
        written = greedy(self._model, self._model.open(prompt.prefix, rows, prompt.length, tokens), tokens)
        answers = [text if shard else public for text, shard in zip(written, examples, strict=True)]
        return ShardAnswers(presence_histogram(answers, categories), self._model.decode(public).strip())

    def _given(self, keywords: Sequence[str]) -> list[int]:
        before, after = "Using the following keywords, answer the question concisely:", ".\n\n"
        words = first_tokens(self._model, ", ".join(keywords), _KEYWORD_TOKENS)
        return [*self._model.encode(before), *words, *self._model.encode(after)]

    def final(self, tokens: Sequence[int], query: str) -> tuple[tuple[str, ...], str]:
        """The released tokens as words, and an answer from these and the question alone, which is post-processing.

        Words are in order of token id; tokens without text are omitted.
        """
        texts = (self._model.decode([token]).strip() for token in tokens)
        keywords = tuple(dict.fromkeys(text for text in texts if text))
        row, room = [*self._given(keywords), *self._prompt.row((), query)], self._plan.spec.answer_tokens
        [text] = greedy(self._model, self._model.open(self._prompt.prefix, [row], len(row), room), room)
        return keywords, self._model.decode(text).strip()


def greedy(model: LanguageModel, session: Session, tokens: int) -> list[list[int]]:
    """The greedy continuation of each row: at most `tokens` tokens, up to its first stop token.

    The first token is never a stop token, with which small models often begin. Finished rows stay in the batch, so that
    neither its shape nor its time reveals their lengths.
    """
    stops = sorted(model.stop_tokens)
    written: list[list[int]] = []
    for step in range(1, tokens + 1):
        logits = session.logits()
        if step == 1:
            written = [[] for _ in logits]
            logits[:, stops] = -np.inf
        chosen = np.where(np.isfinite(logits), logits, -np.inf).argmax(axis=1).tolist()
        for row, token in zip(written, chosen, strict=True):
            row.append(token)
        if step < tokens:
            session.advance(chosen)
    return [list(takewhile(lambda token: token not in model.stop_tokens, row)) for row in written]


def _prompt(model: LanguageModel, plan: AnswerPlan, label_tokens: int) -> ShardPrompt:
    caps = plan.spec.max_record_tokens, label_tokens, plan.spec.max_query_tokens
    return ShardPrompt(model, plan.template, plan.spec.neighbours, *caps)


Respondent = LabelRespondent | NeighbourLabels | TextRespondent
"""Computes all shards' answers to a question from their examples."""
