"""Everything public that fixes a session of questions, decided before the data is touched."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from mechanisms.accounting import Claim, PrivacyTarget, calibrate_noise, claim
from mechanisms.accounting.zcdp import largest_rho
from mechanisms.errors import UsageError
from mechanisms.parameters import parameters
from mechanisms.privacy_events import ZCDP, Approximate, Composed, Gaussian, Poisson, PrivacyEvent, Repeat
from mechanisms.queries import QueryMechanism, Retrieval
from mechanisms.records import PromptTemplate
from mechanisms.studio.data.marks import WHETHER_SHOWN
from mechanisms.studio.synthesis.request import FILE_FORMAT, LABEL_SET

WHETHER_RESERVED = "whether the file is the one reserved for"
"""A session stops, or begins anew, where it is another one: that follows from the rows themselves."""
FAILURE_SHARE = 0.5
"""The part of delta that pays for tests that pass wrongly, where the mechanism has one."""

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
        template: how a question is put to the model.
        mechanism: how shards' answers become a release; `calibrated` sets its noise.
        target: what all answers together may cost.
        queries: Q, answers that every unit can take part in; with Poisson samples the answers in all.
        labels: public label set, in order; empty for open answers.
        by_user: the unit is all records of one user.
        retrieval: where a shard's examples come from.
        threshold: similarity from which on a unit takes part, and pays; a question may set its own.
        shards, neighbours: S groups of units, which are asked apart, and the examples that each gets.
        rate: probability that a unit is drawn for a question; with Poisson samples only.
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
        """zCDP of one answer for a unit that takes part; None for Poisson samples, whose cost is not counted in rho."""
        return self.mechanism.rho if self.rate is None else None

    @property
    def event(self) -> Composed:
        """What all answers together cost a unit at most.

        A unit that pays by similarity takes part in Q answers, for each of which only a zCDP bound is used. A sampled
        unit takes part in every answer, each a sampled Gaussian.
        """
        events: tuple[PrivacyEvent, ...] = (ZCDP(self.queries * self.mechanism.rho),)
        if self.rate is not None:
            events = (Repeat(self.queries, Poisson(self.rate, Gaussian(self.mechanism.dominating_noise))),)
        failure = self.queries * self.mechanism.delta
        return Composed("dataset", (("all", events + ((Approximate(failure),) if failure else ())),))

    @property
    def public_inputs(self) -> tuple[str, ...]:
        """What the claim takes as public beyond the parameters, in the words of a demo set's certificate."""
        return (*((LABEL_SET,) if self.labels else ()), FILE_FORMAT, WHETHER_SHOWN, WHETHER_RESERVED)

    def claim(self) -> Claim:
        """The (epsilon, delta) of all answers together."""
        return claim(self.event, self.target.delta)

    def calibrated(self) -> AnswerRequest:
        """The same request with the least noise whose Q answers meet the target."""
        failure = FAILURE_SHARE * self.target.delta if self.mechanism.may_fail else 0.0
        if self.rate is None:
            rho = largest_rho(self.target.epsilon, self.target.delta - failure)
            return self._at(rho, failure)
        noise = calibrate_noise(lambda noise: self._at(self.queries / noise**2, failure).event, self.target)
        return self._at(self.queries / noise**2, failure)

    def _at(self, rho: float, failure: float) -> AnswerRequest:
        """The same request with Q answers that cost `rho` and fail with `failure` in all."""
        return replace(self, mechanism=self.mechanism.calibrate(rho / self.queries, failure / self.queries))

    def terms(self) -> str:
        """What has to stay the same while a reservation lasts, in a fixed form."""
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
