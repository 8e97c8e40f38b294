"""Private answers to single questions: near units are charged first, the shards answer, and noise is added.

An `AnswerRequest` is fixed before any row is read; `open_session` reserves what all questions may cost.
"""

from __future__ import annotations

import json
import operator
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from mechanisms.accounting import (
    Claim,
    IndividualFilter,
    PrivacyLedger,
    PrivacyTarget,
    Reservation,
    calibrate_noise,
    claim,
    fingerprint,
    reserve,
)
from mechanisms.accounting.rdp import largest_rho
from mechanisms.data.sizes import SEEDED, WHETHER_SHOWN
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import Accuracy
from mechanisms.evaluation.reader import CONTENT_FREE
from mechanisms.files import keyed_digest, secret_key
from mechanisms.inference import Embedder, LanguageModel, Session, scores_of
from mechanisms.inference.prompts import ShardPrompt, first_tokens
from mechanisms.noise import Floats, Integers, Randomness, SecureRandomness
from mechanisms.privacy_events import ZCDP, Approximate, Composed, Gaussian, Poisson, PrivacyEvent, Repeat
from mechanisms.queries import QueryMechanism, Retrieval, nearest_by_shard, presence_histogram
from mechanisms.queries.retrieval import similarities
from mechanisms.records import Dataset, PromptTemplate, Record, person
from mechanisms.rounding import rounded_up
from mechanisms.runs.terms import FILE_FORMAT, LABEL_SET
from mechanisms.sampling import copy_numbers, seat_in_subsets

WHETHER_RESERVED = "whether the file is the one reserved for"
"""Whether a reservation can be continued depends on the rows, so that it is named among the public inputs."""
_TOO_SELDOM = "Fewer questions, a larger epsilon or more groups raise that; demonstrations are charged only once."
_FAILURE_SHARE = 0.5
"""The part of delta that covers tests that pass wrongly, for mechanisms with a test."""

_RANGES = (
    ("queries", 1, 1_000_000),
    ("shards", 1, 1000),
    ("neighbours", 1, 64),
    ("max_record_tokens", 1, 1024),
    ("max_query_tokens", 1, 1024),
    ("answer_tokens", 1, 256),
)


@dataclass(frozen=True)
class AnswerRequest:
    """Public configuration of a session of questions.

    Attributes:
        mechanism: turns the shards' answers into a release; `calibrated` sets its noise.
        target: epsilon and delta of all answers together.
        queries: Q, answers that every unit can take part in; with Poisson samples the answers in all.
        labels: public label set, in order; empty for open answers.
        threshold: the least similarity with which a unit takes part, and pays; a later session may choose another.
        shards, neighbours: S groups of units, which answer separately, and the number of examples of each.
        rate: probability that a unit is drawn for a question; for Poisson samples only.
        max_record_tokens, max_query_tokens, answer_tokens: public caps on an example's text, on its open answer and the
            answer to write, and on the question.
    """

    template: PromptTemplate
    mechanism: QueryMechanism
    target: PrivacyTarget
    queries: int
    labels: tuple[str, ...] = ()
    by_user: bool = False
    retrieval: Retrieval = Retrieval.THRESHOLD
    threshold: float = 0.3
    shards: int = 10
    neighbours: int = 4
    rate: float | None = None
    max_record_tokens: int = 64
    max_query_tokens: int = 96
    answer_tokens: int = 16

    def __post_init__(self) -> None:
        for name, low, high in _RANGES:
            if not low <= getattr(self, name) <= high:
                raise UsageError(f"{name.replace('_', ' ')} must lie between {low} and {high}.")
        if not -1 <= self.threshold <= 1:
            raise UsageError("The threshold is a cosine similarity: choose one between -1 and 1.")
        if self.mechanism.open_answers and (self.labels or self.retrieval is Retrieval.LABELS_ONLY):
            raise UsageError(f"'{self.mechanism.name}' writes open answers: leave out labels and labels-only.")
        if not self.mechanism.open_answers and len(self.labels) < 2:
            raise UsageError(f"'{self.mechanism.name}' answers with a label: give at least two public labels.")
        if (self.retrieval is Retrieval.POISSON) != (self.rate is not None):
            raise UsageError("Poisson samples need a public rate, and nothing else does.")
        if self.rate is not None and not 0 < self.rate <= 1:
            raise UsageError("The rate must lie in (0, 1].")

    @property
    def rho(self) -> float | None:
        """zCDP of one answer for a unit that takes part; None for Poisson samples, whose cost is not given in rho."""
        return self.mechanism.rho if self.rate is None else None

    @property
    def event(self) -> Composed:
        """The largest cost of all answers to a unit.

        With a threshold a unit takes part in at most Q answers, each with a zCDP bound. With Poisson samples it takes
        part in every answer, a sampled Gaussian.
        """
        events: tuple[PrivacyEvent, ...] = (ZCDP(self.queries * self.mechanism.rho),)
        if self.rate is not None:
            events = (Repeat(self.queries, Poisson(self.rate, Gaussian(self.mechanism.dominating_noise))),)
        failure = self.queries * self.mechanism.delta
        return Composed("dataset", (("all", events + ((Approximate(failure),) if failure else ())),))

    @property
    def public_inputs(self) -> tuple[str, ...]:
        """Further public inputs of the claim besides the parameters, in the words of a certificate."""
        return (*((LABEL_SET,) if self.labels else ()), FILE_FORMAT, WHETHER_SHOWN, WHETHER_RESERVED)

    def claim(self) -> Claim:
        return claim(self.event, self.target.delta)

    def calibrated(self) -> AnswerRequest:
        """The request with the least noise that meets the target."""
        failure = _FAILURE_SHARE * self.target.delta if self.mechanism.may_fail else 0.0
        if self.rate is None:
            rho = largest_rho(self.target.epsilon, self.target.delta - failure)
            return self._at(rho, failure)
        noise = calibrate_noise(lambda noise: self._at(self.queries / noise**2, failure).event, self.target)
        return self._at(self.queries / noise**2, failure)

    def _at(self, rho: float, failure: float) -> AnswerRequest:
        """The request with noise such that Q answers cost `rho` and fail with probability `failure` together."""
        return replace(self, mechanism=self.mechanism.calibrate(rho / self.queries, failure / self.queries))

    def terms(self) -> str:
        """The terms of a reservation as canonical text, which must not change while it is continued."""
        terms = {
            "mechanism": self.mechanism.name,
            **{each.flag: getattr(self.mechanism, each.name) for each in parameters(self.mechanism)},
            "epsilon": self.target.epsilon,
            "delta": self.target.delta,
            "queries": self.queries,
            "labels": self.labels,
            "retrieval": self.retrieval.value,
            "shards": self.shards,
            "neighbours": self.neighbours,
            "rate": self.rate,
            "event": self.event.to_json(),
        }
        return json.dumps(terms, sort_keys=True)


GOOD = 0.9
"""The probability with which a clear majority should win."""
_REACH, _POINTS = 9.0, 2001
"""Integration range in standard deviations to either side, and number of points; errors stay below 1e-9."""


def clear_majority(shards: int) -> tuple[int, int]:
    """The votes of two labels where about 7 of 10 shards vote for the first one, and all others for the second."""
    leading = max(shards // 2 + 1, round(Fraction(7, 10) * shards))
    return leading, shards - leading


def chance_of_first(votes: Sequence[float], noise: float) -> float:
    """Probability that the first entry is the largest after independent Gaussian noise of deviation `noise` on each."""
    at = np.linspace(-_REACH, _REACH, _POINTS)
    margins = (votes[0] - np.asarray(votes[1:], dtype=float)) / noise
    below = np.exp(log_ndtr(at[:, None] + margins).sum(axis=1))
    weights = np.exp(-(at**2) / 2)
    return float((weights * below).sum() / weights.sum())


def odds_in_words(request: AnswerRequest) -> str:
    """How often a clear majority wins under a calibrated request, and what to change where that is seldom.

    Empty for open answers.
    """
    if request.mechanism.open_answers:
        return ""
    leading, other = clear_majority(request.shards)
    chance = chance_of_first([leading, other, *[0] * (len(request.labels) - 2)], request.mechanism.deviation)
    agreed = f"{leading} of {request.shards} groups vote for one label{f' and {other} for another' if other else ''}"
    said = (
        f"If {agreed}, the noise lets that label win in {int(100 * chance)} of 100 questions (a guess among "
        f"{len(request.labels)} labels: {100 / len(request.labels):.0f})."
    )
    return said if chance >= GOOD else f"{said} {_TOO_SELDOM}"


class SearchableUnits:
    """The units that can answer and their vectors, in the order of their keyed digests; private.

    A digest is of a unit's identity: the user id, or the row's content and its copy number.
    """

    def __init__(self, dataset: Dataset, request: AnswerRequest, embedder: Embedder) -> None:
        records = [record for record in dataset.records if not request.labels or record.label in request.labels]
        key, units = secret_key(), dict[str, list[Record]]()
        copies = copy_numbers((record.text, record.label) for record in records)
        for record, copy in zip(records, copies, strict=True):
            by_row = ("record", record.text, record.label, str(copy))
            identity = ("user", record.unit or "") if dataset.by_user else by_row
            units.setdefault(keyed_digest(("answer", *identity), key), []).append(record)
        self.digests = tuple(sorted(units))
        self.shard = np.array([int(digest[:16], 16) % request.shards for digest in self.digests], dtype=np.int64)
        self._records = [record for digest in self.digests for record in units[digest]]
        sizes = [len(units[digest]) for digest in self.digests]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        searched = bool(self._records) and request.retrieval is not Retrieval.POISSON
        self._vectors = embedder.embed([record.text for record in self._records]) if searched else None

    def __len__(self) -> int:
        return len(self.digests)

    def similarities(self, query: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Similarities to a question's vector: of every unit (its nearest record's), and of every record."""
        if self._vectors is None:
            return np.empty(0, dtype=np.float32), np.empty(0, dtype=np.float32)
        by_record = similarities(self._vectors, query)
        return np.maximum.reduceat(by_record, self._starts[:-1]), by_record

    def first_record(self, unit: int) -> Record:
        return self._records[int(self._starts[unit])]

    def examples(self, units: Iterable[int], by_record: NDArray[np.float32]) -> list[Record]:
        """The record of each unit nearest to the question."""
        bounds = [(int(self._starts[unit]), int(self._starts[unit + 1])) for unit in units]
        return [self._records[first + int(by_record[first:end].argmax())] for first, end in bounds]


@dataclass(frozen=True)
class AnswersOpened:
    """A session is open: the cost of all its questions is in the ledger. All of it may be released.

    Attributes:
        asked: answers given under this reservation before.
        continued: whether an earlier reservation is used, without a new charge.
        private: False with a test seed.
        notes: warnings for the data owner, one line each.
        disclosures: why values of the data set without noise count as known, so that threshold, shards and the like may
            depend on it.
    """

    name: str
    unit: str
    request: AnswerRequest
    claim: Claim
    asked: int
    continued: bool
    private: bool
    notes: tuple[str, ...]
    disclosures: tuple[str, ...]


@dataclass(frozen=True)
class AnswerReleased:
    """The answer to one question; all of it may be released.

    Attributes:
        zero_shot: the model's answer without any data; empty without a model.
        labels, votes: the public label set and the noisy histogram, in votes of shards; nothing for open answers.
        keywords: released tokens as text, in order of token id; empty for labels, or if nothing was released.
        abstained: why `answer` is `zero_shot`, in one line; None for an answer from the data.
        threshold: the least similarity of units that took part and paid; None for Poisson samples.
        rho, delta: the answer's cost to each unit that took part; rho is None for Poisson samples.
        queries: answers that every unit can pay for, of which `asked` were given under this reservation.
    """

    answer: str
    zero_shot: str
    labels: tuple[str, ...]
    votes: tuple[float, ...] | None
    keywords: tuple[str, ...]
    abstained: str | None
    threshold: float | None
    rho: float | None
    delta: float
    asked: int
    queries: int

    @property
    def sure_left(self) -> int:
        """The number of further answers that every unit can pay for; public.

        With a threshold more can be asked: units that have paid for all their answers take no further part, and their
        number is private.
        """
        return max(0, self.queries - self.asked)


def reservation_in_words(opened: AnswersOpened) -> str:
    price = f"epsilon {rounded_up(opened.claim.epsilon, 4)} at delta {opened.claim.delta:g}"
    charged = (
        f"continues the reservation of {price}: nothing new is charged to the ledger of '{opened.name}'"
        if opened.continued
        else f"reserves {price} in the ledger of '{opened.name}', once for all questions under these terms"
    )
    return f"This session {charged}. {opened.asked} of {opened.request.queries} answers given so far."


def answer_in_words(opened: AnswersOpened, released: AnswerReleased) -> str:
    unit = person(opened.unit)
    if released.threshold is None:
        left = f"{released.sure_left} of {released.queries} answers are left; then a new reservation is needed."
        return f"Every {unit} paid for this answer, drawn or not. {left}"
    paid = f"Every {unit} at least {released.threshold:g} similar paid 1 of its {released.queries} answers."
    if released.sure_left:
        return f"{paid} Every {unit} can pay for {released.sure_left} more, or more if it was not always near."
    return f"{paid} From here on some {unit}s may have paid all they can, and be silent; how many is private."


# The shards' answers: each from its own examples alone, in batches of public shape.
#
# An empty shard gives the public answer, which is computed without private rows. If a shard's logits are not finite, it
# votes for the public label, or writes on with the tokens whose logits are finite: a record can stop or change no more
# than the answer of its own shard.

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
    """Each shard votes for the label whose probability the question raises most, given the shard's examples.

    This is contextual calibration (Zhao et al. 2021) for each shard, without which a small model prefers one label for
    all questions. It takes a second row for each shard, with a question without content.
    """

    def __init__(self, model: LanguageModel, request: AnswerRequest) -> None:
        self._model, self._request = model, request
        tokens = max(len(model.encode(" " + label)) for label in request.labels)
        self.prompt = prompt = _prompt(model, request, tokens)
        self._labels = [prompt.label(label) for label in request.labels]
        self._room = max(len(label) for label in self._labels)
        # Checked before any charge. A shard has two rows.
        model.check(prompt.prefix, 2 * request.shards, prompt.length, self._room)

    def answer(self, examples: Examples, query: str) -> ShardAnswers:
        labels, prompt = self._request.labels, self.prompt
        [public] = self._votes([()], query, prompt.public_length, 0)
        votes = self._votes(examples, query, prompt.length, public)
        votes = [vote if shard else public for vote, shard in zip(votes, examples, strict=True)]
        return ShardAnswers(np.bincount(votes, minlength=len(labels)), labels[public])

    def _votes(self, examples: Examples, query: str, length: int, otherwise: int) -> list[int]:
        """The position of each shard's label, `otherwise` where its numbers are not finite."""
        gained = self.gains(examples, query, length)
        return [int(row.argmax()) if np.isfinite(row).all() else otherwise for row in gained]

    def gains(self, examples: Examples, query: str, length: int) -> Floats:
        """What the question adds to each label's log-probability over one without content, shape (shards, labels).

        Args:
            length: public length of a prompt's row.
        """
        rows = [self.prompt.row(shard[::-1], asked) for asked in (query, CONTENT_FREE[0]) for shard in examples]
        session = self._model.open(self.prompt.prefix, rows, length, self._room)
        scores = scores_of(session, self._labels)
        with np.errstate(invalid="ignore"):
            return np.asarray(scores[: len(examples)] - scores[len(examples) :])


class NeighbourLabels:
    """The dummy of Koskela et al.: each shard votes for the commonest label of its neighbours, without a model.

    Ties go to the label of the nearest neighbour. An empty shard votes for a public label: the labels in turn.
    """

    def __init__(self, request: AnswerRequest) -> None:
        self._labels = request.labels

    def answer(self, examples: Examples, query: str) -> ShardAnswers:
        votes = [self._vote(place, shard) for place, shard in enumerate(examples)]
        return ShardAnswers(np.bincount(votes, minlength=len(self._labels)), "")

    def _vote(self, place: int, shard: Sequence[Record]) -> int:
        if not shard:
            return place % len(self._labels)
        [(label, _)] = Counter(record.label for record in shard).most_common(1)
        return self._labels.index(label)


class TextRespondent:
    """Each shard writes an answer of a public number of tokens; its set of distinct tokens is counted."""

    def __init__(self, model: LanguageModel, request: AnswerRequest) -> None:
        self._model, self._request = model, request
        self._prompt = prompt = _prompt(model, request, request.answer_tokens)
        # Checked before any charge.
        model.check(prompt.prefix, request.shards, prompt.length, request.answer_tokens)
        longest = len(self._given(())) + _KEYWORD_TOKENS + prompt.public_length
        model.check(prompt.prefix, 1, longest, request.answer_tokens)

    def answer(self, examples: Examples, query: str) -> ShardAnswers:
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

    def final(self, tokens: Sequence[int], query: str) -> tuple[tuple[str, ...], str]:
        """Released tokens as words, and an answer from these and the question alone, which is post-processing.

        Words stand in order of token id; tokens without text are left out.
        """
        texts = (self._model.decode([token]).strip() for token in tokens)
        keywords = tuple(dict.fromkeys(text for text in texts if text))
        row, room = [*self._given(keywords), *self._prompt.row((), query)], self._request.answer_tokens
        [text] = greedy(self._model, self._model.open(self._prompt.prefix, [row], len(row), room), room)
        return keywords, self._model.decode(text).strip()


def greedy(model: LanguageModel, session: Session, tokens: int) -> list[list[int]]:
    """The likeliest continuation of each row: at most `tokens` tokens, up to its first stop token.

    The first token is never a stop token, with which small models often begin. Rows that have ended stay in the batch,
    so that their lengths show neither in its shape nor in its time.
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


def _prompt(model: LanguageModel, request: AnswerRequest, label_tokens: int) -> ShardPrompt:
    caps = request.max_record_tokens, label_tokens, request.max_query_tokens
    return ShardPrompt(model, request.template, request.neighbours, *caps)


Respondent = LabelRespondent | NeighbourLabels | TextRespondent
"""Computes all shards' answers to a question from their examples."""


def open_session(
    dataset: Dataset,
    request: AnswerRequest,
    embedder: Embedder,
    model: LanguageModel | None,
    ledger: PrivacyLedger,
    randomness: Randomness | None = None,
    anew: bool = False,
) -> AnswerSession:
    """Reserve a session of questions in the ledger, or continue the reservation of this file with these terms.

    The request is public and calibrated, the model None with `Retrieval.LABELS_ONLY`; `anew` charges a new reservation
    if the data set has one for another file or other terms.

    Raises:
        BudgetRefused: the data set's cap does not allow the reservation.
        ReservedOtherwise: the data set's reservation is for another file or other terms, and `anew` is not set.
        UsageError: the model or the device is too small for the questions.
    """
    if dataset.by_user != request.by_user or (request.labels and dataset.labels != request.labels):
        raise UsageError("The data set and the request must agree on the labels and on the privacy unit.")
    randomness = randomness or SecureRandomness()
    if request.retrieval is Retrieval.LABELS_ONLY:
        respondent: Respondent = NeighbourLabels(request)
    elif model is None:
        raise UsageError("This retrieval needs a language model: give one, or choose labels-only.")
    else:
        respondent = (
            TextRespondent(model, request) if request.mechanism.open_answers else LabelRespondent(model, request)
        )
    marked = "" if randomness.private else " with a test seed"
    wanted = Reservation(
        data=fingerprint(dataset),
        mechanism=f"answers by {request.mechanism.name}{marked}",
        event=request.event,
        claim=request.claim(),
        terms=request.terms() + marked,
        queries=request.queries,
    )
    notes = (*ledger.rows.recognise(wanted.data), *filter(None, [request.mechanism.caution(request.shards)]))
    paid = reserve(ledger, wanted, anew)
    # Embedding a large file takes minutes: refuse before it. The reservation survives an interruption.
    units = SearchableUnits(dataset, request, embedder)
    if not randomness.private:
        ledger.rows.mark(wanted.data, SEEDED)
    disclosures = ledger.rows.disclosures(wanted.data)
    if disclosures:
        notes += (
            f"Values of these rows are known without noise ({'; '.join(disclosures)}): threshold, shards and questions "
            "per row count as public only if they were chosen independently of these values.",
        )
    opened = AnswersOpened(
        name=dataset.name,
        unit=dataset.unit,
        request=request,
        claim=wanted.claim,
        asked=paid.asked,
        continued=paid.continued,
        private=randomness.private,
        notes=notes,
        disclosures=disclosures,
    )
    return AnswerSession(opened, units, embedder, respondent, paid, randomness)


@dataclass(frozen=True, repr=False)
class AnswerSession:
    """Answers questions inside one reservation; for one thread at a time, though several sessions may share it."""

    opened: AnswersOpened
    _units: SearchableUnits
    _embedder: Embedder
    _respondent: Respondent
    _paid: IndividualFilter
    _randomness: Randomness

    def ask(self, text: str) -> AnswerReleased:
        """Answer one public question. Every unit that takes part is charged, on disk, before the shards answer.

        A UsageError where the question is empty; with Poisson samples a BudgetRefused once all answers are given.
        """
        request = self.opened.request
        if not text.strip():
            raise UsageError("The question is empty: write one.")
        sampled = request.retrieval is Retrieval.POISSON
        examples = self._sampled() if sampled else self._nearest(text)
        shards = self._respondent.answer(examples, text)
        release = request.mechanism.release(shards.histogram, self._randomness)
        answer, abstained = shards.zero_shot, None
        keywords: tuple[str, ...] = ()
        if release.chosen is None:
            abstained = (
                "The shards' answers do not agree on enough words for a private answer: this is the model's own "
                "answer, without any data."
            )
        elif isinstance(self._respondent, TextRespondent):
            keywords, answer = self._respondent.final(release.chosen, text)
        else:
            answer = request.labels[release.chosen[0]]
        return AnswerReleased(
            answer=answer,
            zero_shot=shards.zero_shot,
            labels=request.labels,
            votes=None if release.scores is None else tuple(release.scores.tolist()),
            keywords=keywords,
            abstained=abstained,
            threshold=None if sampled else request.threshold,
            rho=request.rho,
            delta=request.mechanism.delta,
            asked=self._paid.asked,
            queries=request.queries,
        )

    def _nearest(self, text: str) -> list[list[Record]]:
        """Charge every active unit at or above the threshold; each shard's nearest records among these units."""
        units, request = self._units, self.opened.request
        [query] = self._embedder.embed([text])
        by_unit, by_record = units.similarities(query)
        near = np.nonzero(by_unit >= request.threshold)[0]
        payers = near[self._paid.charge(units.digests[unit] for unit in near)]
        rows = nearest_by_shard(by_unit, units.shard, payers, request.shards, request.neighbours)
        return [units.examples(row, by_record) for row in rows]

    def _sampled(self) -> list[list[Record]]:
        """Charge every unit, then draw the units that join, and a shard for each."""
        request, units = self.opened.request, self._units
        self._paid.charge_everybody()
        sampled = self._randomness.poisson_sample(len(units), request.rate or 0.0)
        rows = seat_in_subsets(sampled, request.shards, self._randomness).rows
        return [[units.first_record(unit) for unit in row[: request.neighbours]] for row in rows]


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def exact_match(answer: str, reference: str) -> bool:
    """Whether two texts are equal but for case, punctuation, articles and spaces (Rajpurkar et al. 2016)."""
    one, other = (
        " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()) for text in (answer, reference)
    )
    return one == other


@dataclass(frozen=True)
class AnswersScored:
    """Scores of the answers to a labelled test file.

    Attributes:
        private, zero_shot: of the private answers, and of the model's without any data; None without a model. Open
            answers are right where `exact_match` says so.
        abstained: the number of questions with the model's own answer.
    """

    private: Accuracy
    zero_shot: Accuracy | None
    abstained: int


def ask_all(session: AnswerSession, test: Sequence[Record]) -> Iterator[AnswerReleased | AnswersScored]:
    """Ask every test question, then score the answers against the rows' labels."""
    released: list[AnswerReleased] = []
    for record in test:
        released.append(session.ask(record.text))
        yield released[-1]
    alike = operator.eq if session.opened.request.labels else exact_match

    def accuracy(answers: list[str]) -> Accuracy:
        right = sum(alike(answer, row.label) for answer, row in zip(answers, test, strict=True))
        return Accuracy(right, len(test))

    zero_shot = [answer.zero_shot for answer in released]
    yield AnswersScored(
        private=accuracy([answer.answer for answer in released]),
        zero_shot=accuracy(zero_shot) if any(zero_shot) else None,
        abstained=sum(answer.abstained is not None for answer in released),
    )
