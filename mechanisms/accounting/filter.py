"""The privacy filter: whether a cap holds over runs that are chosen adaptively."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mechanisms.accounting import rdp
from mechanisms.accounting.claims import PrivacyTarget
from mechanisms.accounting.normal_form import normal_form
from mechanisms.privacy_events import PrivacyEvent

# Runs are chosen in view of the releases of earlier runs. Numerical composition is not a valid filter for adaptively
# chosen events. Two kinds of bound are valid: adding (epsilon, delta) claims, and adding Renyi divergences at a fixed
# order (Rogers et al. 2016; Feldman and Zrnic 2021). A release is allowed while any of them stays within its limit.
# Each bound has its own part of the cap's delta, fixed beforehand, and the paths that end within the first fitting
# bound partition all paths, so the whole is (cap.epsilon, cap.delta)-DP.

Cap = PrivacyTarget

ORDERS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)
_BASIC_SHARE, _RENYI_SHARE, _FAILURE_SHARE = 0.8, 0.1, 0.1
_ROUNDING = 1e-9
MOST_REPEATS = 100


@dataclass(frozen=True)
class Spend:
    """An upper bound on the cost of one run.

    Attributes:
        epsilon, delta: the claim over all event lists.
        lists: for each event list its charged events.
    """

    epsilon: float
    delta: float
    lists: Mapping[str, tuple[PrivacyEvent, ...]]


@dataclass(frozen=True)
class Usage:
    """The part of a cap that runs use.

    Attributes:
        epsilon, delta: the smallest valid bound.
        bound: the name of that bound.
        allowed: True if the cap holds.
    """

    epsilon: float
    delta: float
    bound: str
    allowed: bool


@dataclass(frozen=True)
class _Total:
    """Sums over runs: their claims, their Renyi divergences at each of `ORDERS`, and their failure probabilities."""

    epsilon: float = 0.0
    delta: float = 0.0
    failure: float = 0.0
    divergences: tuple[float, ...] = (0.0,) * len(ORDERS)

    def plus(self, spend: Spend) -> _Total:
        """The total with one more run, whose lists compose in parallel."""
        forms = [normal_form(events) for events in spend.lists.values()]
        more = (max((rdp.renyi(form, order) for form in forms), default=0.0) for order in ORDERS)
        return _Total(
            self.epsilon + spend.epsilon,
            self.delta + spend.delta,
            self.failure + max((form.failure for form in forms), default=0.0),
            tuple(a + b for a, b in zip(self.divergences, more, strict=True)),
        )

    def under(self, cap: Cap) -> Usage:
        """The smallest bound within a cap; if none is, the sums of the claims, which may exceed it."""
        most_delta = cap.delta * _BASIC_SHARE * (1 + _ROUNDING)
        basic_allowed = self.epsilon <= cap.epsilon * (1 + _ROUNDING) and self.delta <= most_delta
        delta = cap.delta * _RENYI_SHARE / len(ORDERS)
        renyi_epsilon = min(
            rdp.to_epsilon(each, order, delta) for each, order in zip(self.divergences, ORDERS, strict=True)
        )
        renyi_allowed = renyi_epsilon <= cap.epsilon and self.failure <= cap.delta * _FAILURE_SHARE
        if basic_allowed and (self.epsilon <= renyi_epsilon or not renyi_allowed):
            return Usage(self.epsilon, self.delta, "basic composition", True)
        if renyi_allowed:
            return Usage(renyi_epsilon, cap.delta, "renyi filter", True)
        return Usage(self.epsilon, self.delta, "basic composition", False)


def usage(spends: Iterable[Spend], cap: Cap) -> Usage:
    """The part that runs use of a cap that was fixed before them.

    Event lists compose in parallel within a run, and the costs of runs add up: whether two runs divide the data alike
    would reveal whether their private files are equal.
    """
    return functools.reduce(_Total.plus, spends, _Total()).under(cap)


def usages(spends: Iterable[Spend], cap: Cap) -> list[Usage]:
    """For each run the `usage` of all runs up to it, in order."""
    totals = itertools.accumulate(spends, _Total.plus, initial=_Total())
    return [total.under(cap) for total in totals][1:]


def repeats(spends: Iterable[Spend], planned: Spend, cap: Cap) -> int:
    """The number of runs with the cost `planned` that the cap allows after `spends`; at most `MOST_REPEATS`."""
    total, count = functools.reduce(_Total.plus, spends, _Total()), 0
    while count < MOST_REPEATS and (total := total.plus(planned)).under(cap).allowed:
        count += 1
    return count
