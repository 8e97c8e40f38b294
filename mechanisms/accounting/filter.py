"""How a cap holds over runs that are chosen one after the other, in view of what earlier runs released.

Numerical composition is no valid filter for adaptively chosen events. Two kinds of bound are: adding (epsilon, delta)
claims, and adding Renyi divergences at a fixed order (Rogers et al. 2016; Feldman and Zrnic 2021). A release is
allowed while any of them stays within its limit. Each bound has its own part of the cap's delta, fixed beforehand, and
the paths that end within the first fitting bound partition all paths, so the whole is (cap.epsilon, cap.delta)-DP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mechanisms.accounting import rdp
from mechanisms.accounting.claims import PrivacyTarget
from mechanisms.accounting.normal_form import normal_form
from mechanisms.privacy_events import PrivacyEvent

Cap = PrivacyTarget

ORDERS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)
_BASIC_SHARE, _RENYI_SHARE, _FAILURE_SHARE = 0.8, 0.1, 0.1
_ROUNDING = 1e-9


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


def usage(spends: Iterable[Spend], cap: Cap) -> Usage:
    """Compose runs under a cap that was fixed before them.

    Lists compose in parallel within a run and add up over runs: whether two runs split the data alike depends on
    whether their private files are equal, which must not show.
    """
    spends = list(spends)
    epsilon, delta = sum(s.epsilon for s in spends), sum(s.delta for s in spends)
    basic_allowed = epsilon <= cap.epsilon * (1 + _ROUNDING) and delta <= cap.delta * _BASIC_SHARE * (1 + _ROUNDING)
    renyi_epsilon, failure = _renyi(spends, cap)
    renyi_allowed = renyi_epsilon <= cap.epsilon and failure <= cap.delta * _FAILURE_SHARE
    if basic_allowed and (epsilon <= renyi_epsilon or not renyi_allowed):
        return Usage(epsilon, delta, "basic composition", True)
    if renyi_allowed:
        return Usage(renyi_epsilon, cap.delta, "renyi filter", True)
    return Usage(min(epsilon, renyi_epsilon), cap.delta, "no bound", False)


def _renyi(spends: list[Spend], cap: Cap) -> tuple[float, float]:
    runs = [[normal_form(events) for events in spend.lists.values()] for spend in spends if spend.lists]
    failure = sum(max(form.failure for form in lists) for lists in runs)
    delta = cap.delta * _RENYI_SHARE / len(ORDERS)
    epsilons = (
        rdp.to_epsilon(sum(max(rdp.renyi(form, order) for form in lists) for lists in runs), order, delta)
        for order in ORDERS
    )
    return min(epsilons), failure
