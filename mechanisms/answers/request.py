"""The public configuration of a session of questions, fixed before any row is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from mechanisms.accounting import Claim, PrivacyTarget, calibrate_noise, claim
from mechanisms.accounting.rdp import largest_rho
from mechanisms.data.sizes import WHETHER_SHOWN
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.files import keyed_digest, secret_key
from mechanisms.inference import Embedder
from mechanisms.noise import Integers
from mechanisms.privacy_events import ZCDP, Approximate, Composed, Gaussian, Poisson, PrivacyEvent, Repeat
from mechanisms.queries import QueryMechanism, Retrieval
from mechanisms.queries.retrieval import similarities
from mechanisms.records import Dataset, PromptTemplate, Record
from mechanisms.runs.plan import FILE_FORMAT, LABEL_SET
from mechanisms.sampling import copy_numbers

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
        template: the prompt template of questions.
        mechanism: turns the shards' answers into a release; `calibrated` sets its noise.
        target: epsilon and delta of all answers together.
        queries: Q, answers that every unit can take part in; with Poisson samples the answers in all.
        labels: public label set, in order; empty for open answers.
        by_user: the unit is all records of one user.
        retrieval: how a shard's examples are found.
        threshold: the least similarity with which a unit takes part, and pays; a question may set its own.
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
        """The claim for all answers together."""
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


# How often a clear majority of the shards wins in spite of the noise: a closed form of public values.

GOOD = 0.9
"""The probability with which a clear majority should win."""
_SHARE = Fraction(7, 10)
"""The share of shards that agree in a clear majority."""
_REACH, _POINTS = 9.0, 2001
"""Integration range in standard deviations to either side, and number of points; errors stay below 1e-9."""


def clear_majority(shards: int) -> tuple[int, int]:
    """The votes of two labels where about 7 of 10 shards vote for the first one, and all others for the second."""
    leading = max(shards // 2 + 1, round(_SHARE * shards))
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


# Searchable units: their ids, their shards, and their similarities to a question.


class SearchableUnits:
    """The units that can answer and their vectors, in the order of their keyed digests; private."""

    def __init__(self, dataset: Dataset, request: AnswerRequest, embedder: Embedder) -> None:
        records = [record for record in dataset.records if not request.labels or record.label in request.labels]
        units = _by_digest(records, dataset.by_user)
        self.digests = tuple(sorted(units))
        self.shard = np.array([int(digest[:16], 16) % request.shards for digest in self.digests], dtype=np.int64)
        self._records = [record for digest in self.digests for record in units[digest]]
        sizes = [len(units[digest]) for digest in self.digests]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        searched = bool(self._records) and request.retrieval is not Retrieval.POISSON
        self._vectors = embedder.embed([record.text for record in self._records]) if searched else None

    def __len__(self) -> int:
        return len(self.digests)

    def similarities(self, query: NDArray[Any]) -> UnitSimilarities:
        """Every unit's similarity to a question's vector."""
        if self._vectors is None:
            return UnitSimilarities(np.empty(0, dtype=np.float32), np.empty(0, dtype=np.float32), self._starts)
        by_record = similarities(self._vectors, query)
        return UnitSimilarities(np.maximum.reduceat(by_record, self._starts[:-1]), by_record, self._starts)

    def first_record(self, unit: int) -> Record:
        """The unit's first record."""
        return self._records[int(self._starts[unit])]

    def examples(self, units: Iterable[int], similarities: UnitSimilarities) -> list[Record]:
        """The record of each unit nearest to the question."""
        return [self._records[similarities.best_record(unit)] for unit in units]


class UnitSimilarities:
    """Every unit's similarity to one question: that of its nearest record."""

    def __init__(self, by_unit: NDArray[np.float32], by_record: NDArray[np.float32], starts: Integers) -> None:
        self.by_unit, self._by_record, self._starts = by_unit, by_record, starts

    def best_record(self, unit: int) -> int:
        """The index of the unit's nearest record among all records."""
        first, end = self._starts[unit], self._starts[unit + 1]
        return int(first + self._by_record[first:end].argmax())


def _by_digest(records: Sequence[Record], by_user: bool) -> dict[str, list[Record]]:
    """The units by a keyed digest of their identity: the user id, or the row's content and its copy number."""
    key = secret_key()
    units: dict[str, list[Record]] = {}
    copies = copy_numbers((record.text, record.label) for record in records)
    for record, copy in zip(records, copies, strict=True):
        identity = ("user", record.unit or "") if by_user else ("record", record.text, record.label, str(copy))
        units.setdefault(keyed_digest(("answer", *identity), key), []).append(record)
    return units
