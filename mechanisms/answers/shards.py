"""What the shards answer: each from its own examples alone, in batches whose shape is public.

An empty shard gives the public answer, which is made apart from the private rows. Where a shard's numbers are not
finite it votes for the public label, or writes on with the tokens whose numbers are: nothing that a record does can
stop or alter more than its own shard's answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mechanisms.answers.request import AnswerRequest
from mechanisms.evaluation.classify import CONTENT_FREE
from mechanisms.evaluation.responder import greedy
from mechanisms.inference import LanguageModel, scores_of
from mechanisms.inference.prompts import first_tokens
from mechanisms.inference.shard_prompt import ShardPrompt
from mechanisms.noise import Integers
from mechanisms.queries import presence_histogram, whole_vote
from mechanisms.records import Record

_KEYWORD_TOKENS = 256
"""Cap on the released keywords in the prompt for the answer."""

Examples = Sequence[Sequence[Record]]
"""Each shard's examples, nearest first; one entry for every shard."""


@dataclass(frozen=True, repr=False)
class ShardAnswers:
    """What the shards say; private but for `zero_shot`.

    Attributes:
        histogram: their answers added up, shape (categories,): see `QueryMechanism.release`.
        zero_shot: the public answer as text; empty where no model was asked.
    """

    histogram: Integers
    zero_shot: str


class Respondent(Protocol):
    """Lets all shards answer a question."""

    def answer(self, examples: Examples, query: str) -> ShardAnswers:
        """The shards' answers from their examples."""
        ...


class LabelRespondent:
    """Each shard votes for the label that its examples and the question make likelier than the examples alone do.

    Contextual calibration (Zhao et al. 2021), shard by shard: a small model otherwise prefers one label whatever it is
    asked. It takes a second row a shard, with a question without content.
    """

    def __init__(self, model: LanguageModel, request: AnswerRequest) -> None:
        self._model, self._request = model, request
        tokens = max(len(model.encode(" " + label)) for label in request.labels)
        self._prompt = prompt = _prompt(model, request, tokens)
        self._labels = [prompt.label(label) for label in request.labels]
        self._room = max(len(label) for label in self._labels)
        # Before anybody has paid. A shard has two rows.
        model.check(prompt.prefix, 2 * request.shards, prompt.length, self._room)

    def answer(self, examples: Examples, query: str) -> ShardAnswers:
        """See `Respondent.answer`."""
        labels, mechanism, prompt = self._request.labels, self._request.mechanism, self._prompt
        [public] = self._votes([()], query, prompt.public_length, whole_vote(0, len(labels), mechanism.parts))
        votes = self._votes(examples, query, prompt.length, public)
        votes = [vote if shard else public for vote, shard in zip(votes, examples, strict=True)]
        return ShardAnswers(np.sum(votes, axis=0), labels[int(public.argmax())])

    def _votes(self, examples: Examples, query: str, length: int, otherwise: Integers) -> list[Integers]:
        prompt, mechanism = self._prompt, self._request.mechanism
        rows = [prompt.row(shard[::-1], asked) for asked in (query, CONTENT_FREE[0]) for shard in examples]
        session = self._model.open(prompt.prefix, rows, length, self._room)
        scores = scores_of(session, self._labels)
        with np.errstate(invalid="ignore"):
            gained = scores[: len(examples)] - scores[len(examples) :]
        return [mechanism.vote(row) if np.isfinite(row).all() else otherwise for row in gained]


class NeighbourLabels:
    """The dummy of Koskela et al.: each shard votes for the commonest label of its neighbours, without any model.

    Votes are whole. Ties go to the nearest neighbour's. An empty shard votes for a public label of its own, the labels
    taken in turn.
    """

    def __init__(self, request: AnswerRequest) -> None:
        self._labels, self._parts = request.labels, request.mechanism.parts

    def answer(self, examples: Examples, query: str) -> ShardAnswers:
        """See `Respondent.answer`."""
        chosen = (self._vote(place, shard) for place, shard in enumerate(examples))
        votes = [whole_vote(label, len(self._labels), self._parts) for label in chosen]
        return ShardAnswers(np.sum(votes, axis=0), "")

    def _vote(self, place: int, shard: Sequence[Record]) -> int:
        if not shard:
            return place % len(self._labels)
        [(label, _)] = Counter(record.label for record in shard).most_common(1)
        return self._labels.index(label)


class TextRespondent:
    """Each shard writes an answer of a public number of tokens, of which the tokens that occur are kept."""

    def __init__(self, model: LanguageModel, request: AnswerRequest) -> None:
        self._model, self._request = model, request
        self._prompt = prompt = _prompt(model, request, request.answer_tokens)
        # Before anybody has paid.
        model.check(prompt.prefix, request.shards, prompt.length, request.answer_tokens)
        longest = len(self._given(())) + _KEYWORD_TOKENS + prompt.public_length
        model.check(prompt.prefix, 1, longest, request.answer_tokens)

    def answer(self, examples: Examples, query: str) -> ShardAnswers:
        """See `Respondent.answer`."""
        prompt, tokens = self._prompt, self._request.answer_tokens
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

    def final(self, keywords: Sequence[str], query: str) -> str:
        """The answer from released keywords and the question alone: post-processing."""
        row = [*self._given(keywords), *self._prompt.row((), query)]
        tokens = self._request.answer_tokens
        [text] = greedy(self._model, self._model.open(self._prompt.prefix, [row], len(row), tokens), tokens)
        return self._model.decode(text).strip()


def keyword_texts(model: LanguageModel, tokens: Sequence[int]) -> tuple[str, ...]:
    """Released tokens as words, in order of token id; those that are no text are left out."""
    texts = (model.decode([token]).strip() for token in tokens)
    return tuple(dict.fromkeys(text for text in texts if text))


def _prompt(model: LanguageModel, request: AnswerRequest, label_tokens: int) -> ShardPrompt:
    return ShardPrompt(
        model,
        request.template,
        request.neighbours,
        request.max_record_tokens,
        label_tokens,
        request.max_query_tokens,
    )
