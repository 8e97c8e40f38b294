"""How a cap holds over the runs of a ledger: chosen one after the other, or composed as if fixed before the first."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mechanisms.accounting import rdp
from mechanisms.accounting.claims import PrivacyTarget, undominated
from mechanisms.accounting.normal_form import normal_form
from mechanisms.errors import AccountingError
from mechanisms.privacy_events import Composed, PrivacyEvent

# How a cap holds over runs that are chosen one after the other, in view of what earlier runs released.
#
# Numerical composition is no valid filter for adaptively chosen events. Two kinds of bound are: adding (epsilon,
# delta) claims, and adding Renyi divergences at a fixed order (Rogers et al. 2016; Feldman and Zrnic 2021). A
# release is allowed while any of them stays within its limit. Each bound has its own part of the cap's delta, fixed
# beforehand, and the paths that end within the first fitting bound partition all paths, so the whole is
# (cap.epsilon, cap.delta)-DP.

Cap = PrivacyTarget

ORDERS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)
_BASIC_SHARE, _RENYI_SHARE, _FAILURE_SHARE = 0.8, 0.1, 0.1
_ROUNDING = 1e-9
MOST_REPEATS = 100
_ANY = 1e300
"""More epsilon than any runs have."""


@dataclass(frozen=True)
class Spend:
    """What one run costs at most.

    Attributes:
        epsilon, delta: the run's claim, all its lists.
        lists: events charged so far, for each list.
    """

    epsilon: float
    delta: float
    lists: Mapping[str, tuple[PrivacyEvent, ...]]


@dataclass(frozen=True)
class Usage:
    """What a set of runs uses of a cap: the smallest valid bound on epsilon, its name, and whether the cap holds."""

    epsilon: float
    delta: float
    bound: str
    allowed: bool


@dataclass(frozen=True)
class _Total:
    """What runs add up to: their claims, and at each of `ORDERS` their Renyi divergence, beside what fails."""

    epsilon: float = 0.0
    delta: float = 0.0
    failure: float = 0.0
    divergences: tuple[float, ...] = (0.0,) * len(ORDERS)

    @classmethod
    def of(cls, spend: Spend) -> _Total:
        """One run; its lists compose in parallel."""
        forms = [normal_form(events) for events in spend.lists.values()]
        divergences = tuple(max((rdp.renyi(form, order) for form in forms), default=0.0) for order in ORDERS)
        return cls(spend.epsilon, spend.delta, max((form.failure for form in forms), default=0.0), divergences)

    def and_then(self, other: _Total) -> _Total:
        """Further runs after these."""
        return _Total(
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            self.failure + other.failure,
            tuple(a + b for a, b in zip(self.divergences, other.divergences, strict=True)),
        )

    def plus(self, spend: Spend) -> _Total:
        """One run more."""
        return self.and_then(_Total.of(spend))

    def under(self, cap: Cap) -> Usage:
        """The smallest bound that holds under a cap; where the cap allows none, the sums, which may be above it."""
        basic_allowed = self.epsilon <= cap.epsilon * (1 + _ROUNDING) and self.delta <= cap.delta * _BASIC_SHARE * (
            1 + _ROUNDING
        )
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
    """Compose runs under a cap that was fixed before them.

    Lists compose in parallel within a run and add up over runs: whether two runs split the data alike depends on
    whether their private files are equal, which must not show.
    """
    return functools.reduce(_Total.plus, spends, _Total()).under(cap)


def usages(spends: Iterable[Spend], cap: Cap) -> list[Usage]:
    """`usage` of the runs up to each one, in their order."""
    totals = itertools.accumulate(spends, _Total.plus, initial=_Total())
    return [total.under(cap) for total in totals][1:]


def repeats(spends: Iterable[Spend], planned: Spend, cap: Cap) -> int:
    """How many runs like `planned` the cap allows after `spends`; at most `MOST_REPEATS`."""
    total, one, count = functools.reduce(_Total.plus, spends, _Total()), _Total.of(planned), 0
    while count < MOST_REPEATS and (total := total.and_then(one)).under(cap).allowed:
        count += 1
    return count


def least_caps(spends: Iterable[Spend], deltas: Iterable[float]) -> list[Cap]:
    """At each delta the cap with the least epsilon that would have allowed all runs, had it been fixed before them.

    Deltas at which no cap does, whatever its epsilon, are left out, and so is an epsilon of 0, which is no cap.
    """
    total = functools.reduce(_Total.plus, spends, _Total())
    used = ((delta, total.under(Cap(_ANY, delta))) for delta in deltas)
    return [Cap(each.epsilon, delta) for delta, each in used if each.allowed and each.epsilon > 0]


# Runs of a ledger composed numerically, as if all of them had been fixed before the first.
#
# That is no bound for runs that were chosen in view of earlier ones, which is why the ledger counts otherwise
# (`filter.py`): it says how much of what the ledger counts is the price of having chosen as one went along.

_MOST = 12
"""Kinds of releases, over all combinations of lists: each wants up to a second of both accountants."""
_TOO_MANY = "These are too many different runs to compose numerically: what the ledger counts is all there is to say."


def joint(spends: Iterable[Spend]) -> Composed:
    """One event for all runs together; `claim` accounts it at any delta.

    A unit is in one list of each run, possibly a different one in each: every combination of lists is a list of this
    event.

    Raises:
        AccountingError: there are too many combinations, or an event that no accountant bounds.
    """
    choices = [_largest(spend) for spend in spends if spend.lists]
    if math.prod(len(each) for each in choices) <= _MOST:
        together = [tuple(itertools.chain(*each)) for each in itertools.product(*choices)]
        if sum(len(normal_form(events).primitives) for events in together) <= _MOST:
            return _numbered(together)
    raise AccountingError(_TOO_MANY)


def _largest(spend: Spend) -> list[tuple[PrivacyEvent, ...]]:
    """The lists of a run that can cost most; those that others dominate cost no more together with other runs."""
    lists = {normal_form(events): events for events in spend.lists.values()}
    return [lists[form] for form in undominated(_numbered(lists.values()))]


def _numbered(lists: Iterable[tuple[PrivacyEvent, ...]]) -> Composed:
    return Composed("dataset", tuple((str(number), events) for number, events in enumerate(lists)))
