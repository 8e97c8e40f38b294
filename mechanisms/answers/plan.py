"""A calibrated session of questions: the cost of one answer and of all, and how often a clear majority wins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.special import log_ndtr

from mechanisms.accounting import Claim, PrivacyTarget, calibrate_noise, claim
from mechanisms.accounting.rdp import largest_rho
from mechanisms.answers.spec import AnswerSpec
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.privacy_events import ALL, ZCDP, Approximate, Composed, Gaussian, Poisson, PrivacyEvent, Repeat
from mechanisms.public_inputs import FILE_FORMAT, LABEL_SET, WHETHER_RESERVED, WHETHER_SHOWN
from mechanisms.queries import QueryMechanism, Retrieval
from mechanisms.records import PromptTemplate

_TOO_SELDOM = "Fewer questions, a larger epsilon or more groups raise that; demonstrations are charged only once."
_FAILURE_SHARE = 0.5
"""The part of delta for tests that pass wrongly, for mechanisms with a test."""


@dataclass(frozen=True)
class AnswerPlan:
    """The public values of a session of questions, fixed before any row is read.

    Attributes:
        mechanism: the mechanism with its noise.
        labels: the public label set, in order; empty for open answers.
        by_user: whether the unit is all rows of a user.
    """

    spec: AnswerSpec
    mechanism: QueryMechanism
    labels: tuple[str, ...] = ()
    by_user: bool = False

    def __post_init__(self) -> None:
        if self.mechanism.open_answers and (self.labels or self.spec.retrieval is Retrieval.LABELS_ONLY):
            raise UsageError(f"'{self.mechanism.name}' writes open answers: leave out labels and labels-only.")
        if not self.mechanism.open_answers and len(self.labels) < 2:
            raise UsageError(f"'{self.mechanism.name}' answers with a label: give at least two public labels.")

    @property
    def template(self) -> PromptTemplate:
        return self.spec.template(self.labels)

    @property
    def rate(self) -> float | None:
        """The probability that a unit is drawn for a question; None without Poisson samples."""
        return self.spec.sampling_rate

    @property
    def rho(self) -> float | None:
        """The zCDP cost of one answer to a unit that takes part; None for Poisson samples, whose cost is not in rho."""
        return self.mechanism.rho if self.rate is None else None

    @property
    def event(self) -> Composed:
        """The largest cost of all answers to a unit.

        With a threshold a unit takes part in at most Q answers, each with a zCDP bound. With Poisson samples it takes
        part in all Q answers, each a sampled Gaussian.
        """
        events: tuple[PrivacyEvent, ...] = (ZCDP(self.spec.queries * self.mechanism.rho),)
        if self.rate is not None:
            events = (Repeat(self.spec.queries, Poisson(self.rate, Gaussian(self.mechanism.dominating_noise))),)
        failure = self.spec.queries * self.mechanism.delta
        return Composed("dataset", ((ALL, events + ((Approximate(failure),) if failure else ())),))

    @property
    def public_inputs(self) -> tuple[str, ...]:
        """Further public inputs of the claim besides the parameters, in the words of a certificate."""
        return (*((LABEL_SET,) if self.labels else ()), FILE_FORMAT, WHETHER_SHOWN, WHETHER_RESERVED)

    def claim(self) -> Claim:
        return claim(self.event, self.spec.delta)

    def terms(self) -> str:
        """The terms of a reservation as canonical text, which must not change while it is continued."""
        spec = self.spec
        terms = {
            "mechanism": self.mechanism.name,
            **{each.flag: getattr(self.mechanism, each.name) for each in parameters(self.mechanism)},
            "epsilon": spec.epsilon,
            "delta": spec.delta,
            "queries": spec.queries,
            "labels": self.labels,
            "retrieval": spec.retrieval.value,
            "shards": spec.shards,
            "neighbours": spec.neighbours,
            "rate": self.rate,
            "event": self.event.to_json(),
        }
        return json.dumps(terms, sort_keys=True)


def plan_answers(spec: AnswerSpec, labels: tuple[str, ...] = (), by_user: bool = False) -> AnswerPlan:
    """The plan with the least noise that meets the spec's epsilon and delta.

    Raises:
        UsageError: labels and mechanism are incompatible.
        AccountingError: no noise meets epsilon and delta.
    """
    plan = AnswerPlan(spec, spec.made_mechanism, labels, by_user)
    target = PrivacyTarget(spec.epsilon, spec.delta)
    failure = _FAILURE_SHARE * spec.delta if plan.mechanism.may_fail else 0.0

    def at(rho: float) -> AnswerPlan:
        """The plan with noise such that Q answers together cost `rho` and fail with probability `failure`."""
        return replace(plan, mechanism=plan.mechanism.calibrate(rho / spec.queries, failure / spec.queries))

    if plan.rate is None:
        return at(largest_rho(spec.epsilon, spec.delta - failure))
    return at(spec.queries / calibrate_noise(lambda noise: at(spec.queries / noise**2).event, target) ** 2)


GOOD = 0.9
"""The desired probability that a clear majority wins."""
_REACH, _POINTS = 9.0, 2001
"""Integration range in standard deviations to either side, and number of points; errors stay below 1e-9."""


def clear_majority(shards: int) -> tuple[int, int]:
    """The votes of two labels if about 7 of 10 shards vote for the first one, and all others for the second."""
    leading = max(shards // 2 + 1, round(Fraction(7, 10) * shards))
    return leading, shards - leading


def chance_of_first(votes: Sequence[float], noise: float) -> float:
    """Probability that the first entry is the largest after independent Gaussian noise of deviation `noise` on each."""
    at = np.linspace(-_REACH, _REACH, _POINTS)
    margins = (votes[0] - np.asarray(votes[1:], dtype=float)) / noise
    below = np.exp(log_ndtr(at[:, None] + margins).sum(axis=1))
    weights = np.exp(-(at**2) / 2)
    return float((weights * below).sum() / weights.sum())


def odds_in_words(plan: AnswerPlan) -> str:
    """How often a clear majority wins under a plan, with advice if that is seldom.

    Empty for open answers.
    """
    if plan.mechanism.open_answers:
        return ""
    leading, other = clear_majority(plan.spec.shards)
    chance = chance_of_first([leading, other, *[0] * (len(plan.labels) - 2)], plan.mechanism.deviation)
    agreed = f"{leading} of {plan.spec.shards} groups vote for one label{f' and {other} for another' if other else ''}"
    said = (
        f"If {agreed}, the noise lets that label win in {int(100 * chance)} of 100 questions (a guess among "
        f"{len(plan.labels)} labels: {100 / len(plan.labels):.0f})."
    )
    return said if chance >= GOOD else f"{said} {_TOO_SELDOM}"
