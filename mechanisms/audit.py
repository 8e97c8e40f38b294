"""Black-box audit: a lower bound on epsilon from many draws of one token step, to compare with the claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import beta

from mechanisms.accounting import Claim, PrivacyTarget, claim
from mechanisms.errors import UsageError
from mechanisms.noise import Floats, Randomness, SecureRandomness
from mechanisms.privacy_events import ALL, Composed
from mechanisms.sampling import EventOfSteps, SamplingPlan
from mechanisms.steps import TokenDistributions, TokenMechanism, mechanism_class

DELTA = 1e-5
CONFIDENCE = 0.99
"""The confidence of the bound: higher than for estimates, since a bound above the claim means that a mechanism is
wrong."""
_BACKGROUND = 30


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit.

    Attributes:
        lower_bound: a lower bound on epsilon at `delta`, with confidence `CONFIDENCE`.
        claimed: the step's claimed epsilon; infinite for a mechanism that is not private.
    """

    mechanism: str
    lower_bound: float
    claimed: float
    delta: float
    draws: int

    @property
    def holds(self) -> bool:
        """Whether the lower bound does not exceed the claim."""
        return self.lower_bound <= self.claimed


Pair = tuple[TokenDistributions, TokenDistributions]
"""Inputs of a step with and without one unit."""


def worst_case_pair() -> Pair:
    """Neighbours: a unit that is certain of one candidate, among units for which both candidates are equally likely.

    The unit moves a sum of distributions by the whole sensitivity. The agreement of the other units lets AdaDPSyn's
    ball shrink, and their tie between the candidates is the most sensitive case for noisy max.
    """
    rows = np.vstack([np.zeros((_BACKGROUND, 2)), [[-1000.0, 0.0]]])
    with_unit = TokenDistributions(rows, np.ones(len(rows), dtype=np.bool_), np.zeros(2), _BACKGROUND, unit_rows=True)
    return with_unit, replace(with_unit, occupied=np.arange(len(rows)) < _BACKGROUND)


def audit_mechanism(
    name: str,
    epsilon: float,
    draws: int = 100_000,
    randomness: Randomness | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> AuditResult:
    """Audit one-token demonstrations of a registered mechanism, each calibrated to cost `epsilon` at delta `DELTA`.

    All units join; `draws` is the number for each neighbour, and `report` receives the numbers of finished and of all
    draws. Only tests give another randomness than the operating system's. Raises `UsageError` for an unknown mechanism
    or too few draws.
    """
    plan = SamplingPlan(rows_per_token=_BACKGROUND, tokens=1)

    def compose(event: EventOfSteps) -> Composed:
        return Composed("dataset", ((ALL, (event(1, 1.0),)),))

    mechanism = mechanism_class(name)().for_plan(plan).calibrate(compose, PrivacyTarget(epsilon, DELTA))
    unbounded = Claim(math.inf, DELTA, "none", math.inf, "none")
    claimed = unbounded if mechanism.not_private else claim(compose(mechanism.event), DELTA)
    return audit_steps(mechanism, worst_case_pair(), claimed, draws, randomness or SecureRandomness(), report)


def audit_steps(
    mechanism: TokenMechanism,
    pair: Pair,
    claimed: Claim,
    draws: int,
    randomness: Randomness,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> AuditResult:
    """Audit a mechanism's first step on a given pair of neighbours.

    A release counts as a number: its projection on the unit's direction, or the token's index, lower for free tokens.
    """
    if draws < 1000:
        raise UsageError("An audit needs at least 1000 draws.")
    with_unit, without = pair
    direction = (mechanism.aggregate(with_unit) - mechanism.aggregate(without)).astype(np.float64)
    direction /= max(1.0, float(np.linalg.norm(direction)))
    plan = SamplingPlan(rows_per_token=without.expected_rows, unit_rows=without.unit_rows, tokens=1)
    values: list[Floats] = []
    for step in pair:
        found = np.empty(draws)
        for i in range(draws):
            release = mechanism.begin(plan, randomness)(step)
            if release.scores is not None:
                found[i] = release.scores @ direction
            else:
                found[i] = release.index - len(direction) if release.free else release.index
            if (i + 1) % 5000 == 0:
                report(len(values) * draws + i + 1, 2 * draws)
        values.append(found)
    bound = lower_bound(values[0], values[1], claimed.delta)
    return AuditResult(mechanism.name, bound, claimed.epsilon, claimed.delta, draws)


def lower_bound(one: Floats, other: Floats, delta: float) -> float:
    """The lower bound on epsilon at `CONFIDENCE` from two samples of a mechanism's output on neighbours.

    A pilot part of the draws chooses the region that separates the neighbours best, and only the rest tests it, so the
    choice costs no confidence. An (epsilon, delta)-DP mechanism has `P[region] <= e^epsilon P'[region] + delta`
    (Jagielski, Ullman, Oprea 2020).
    """
    pilot = int(0.1 * len(one))
    pilots, tests = (one[:pilot], other[:pilot]), (one[pilot:], other[pilot:])
    thresholds = np.unique(np.quantile(np.concatenate(pilots), np.linspace(0, 1, 401)))
    regions = [(low, swap, at) for low in (False, True) for swap in (False, True) for at in thresholds]

    def bound_on(samples: tuple[Floats, Floats], region: tuple[bool, bool, float], scale: float) -> float:
        low, swap, at = region
        inside = [scale * int(((each <= at) if low else (each > at)).sum()) for each in samples]
        favoured, opposed = reversed(inside) if swap else inside
        total, error = scale * len(samples[0]), (1 - CONFIDENCE) / 2
        # Clopper-Pearson intervals, each with half of the error probability.
        at_least = beta.ppf(error, favoured, total - favoured + 1) if favoured > 0 else 0.0
        at_most = beta.ppf(1 - error, opposed + 1, total - opposed) if opposed < total else 1.0
        return max(0.0, math.log((at_least - delta) / at_most)) if at_least > delta else 0.0

    scale = len(tests[0]) / pilot
    best = max(regions, key=lambda region: bound_on(pilots, region, scale))
    return bound_on(tests, best, 1.0)
