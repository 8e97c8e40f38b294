"""What draws of noise cost, in the coins that privacy events pay in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from mechanisms import privacy_events
from mechanisms.accounting.normal_form import Concentrated, SampledGaussian, SampledLaplace, SampledPure, normal_form
from mechanisms.privacy_events import Poisson, PrivacyEvent, Repeat
from tests.replay.tape import Noise


@dataclass
class Loss:
    """What draws cost: Gaussians as the sum of 1 / multiplier^2, pure ones as epsilon, draws from softmax as ranges."""

    gaussian: float = 0.0
    pure: float = 0.0
    ranges: list[float] = field(default_factory=list)

    def add(self, draw: Noise, moved: np.ndarray) -> None:
        """A draw whose values moved by that much from one neighbour to the other."""
        match draw.kind:
            case "gaussian":
                self.gaussian += float((moved**2).sum()) / draw.scale**2
            case "laplace":
                self.pure += float(np.abs(moved).sum()) / draw.scale
            case "exponential_argmax":
                self.pure += float(np.ptp(moved)) / draw.scale
            case "gumbel_argmax":
                self.ranges.append(float(np.ptp(moved)) / draw.scale)

    def share(self, events: Sequence[PrivacyEvent], rates: Sequence[float] = ()) -> float:
        """The largest part that this uses of what events pay for in the same coin; at most 1 where they pay.

        A draw from softmax of range eta is eta-DP, eta^2 / 8 zCDP, and no worse than a Gaussian whose mean is
        `2 Phi^-1(e^eta / (1 + e^eta))` (Dong, Roth, Su 2019); a Gaussian is zCDP as well. Any of these may pay.

        Args:
            events: what was charged, on samples that the unit always joined.
            rates: of the unit's samples, where each served one draw from softmax: zCDP may have been charged amplified.
        """
        gaussian, pure, rho = paid(tuple(map(unsampled, events)))
        used_gaussian, used_pure, used_rho = self.gaussian, self.pure, 0.0
        if rho > 0:
            used_rho = sum(each**2 for each in self._amplified(rates)) / 8
        elif gaussian > 0 and pure == 0:
            used_gaussian += sum((2 * norm.isf(expit(-each))) ** 2 for each in self.ranges)
        else:
            used_pure += sum(self.ranges)
        if rho > 0 and gaussian == 0:
            used_gaussian, used_rho = 0.0, used_rho + used_gaussian / 2
        return max(_ratio(used_gaussian, gaussian), _ratio(used_pure, pure), _ratio(used_rho, rho))

    def _amplified(self, rates: Sequence[float]) -> list[float]:
        if len(rates) != len(self.ranges):
            return self.ranges
        return [math.log1p(rate * math.expm1(each)) for rate, each in zip(rates, self.ranges, strict=True)]


def _ratio(used: float, paid: float) -> float:
    return used / paid if paid > 0 else math.inf if used > 0 else 0.0


@lru_cache(maxsize=4096)
def paid(events: tuple[PrivacyEvent, ...]) -> tuple[float, float, float]:
    """Sum of 1 / multiplier^2, of epsilons, and of rho that unsampled events pay for."""
    gaussian = pure = rho = 0.0
    for primitive, count in normal_form(list(events)).primitives if events else ():
        match primitive:
            case SampledGaussian(multiplier, _):
                gaussian += count / multiplier**2
            case SampledLaplace(scale, _):
                pure += count / scale
            case SampledPure(epsilon, steps, _):
                pure += count * steps * epsilon
            case Concentrated(each):
                rho += count * each
    return gaussian, pure, rho


def unsampled(event: PrivacyEvent) -> PrivacyEvent:
    """The event on a sample that everybody joined."""
    match event:
        case Poisson(_, of):
            return unsampled(of)
        case Repeat(count, of):
            return Repeat(count, unsampled(of))
        case privacy_events.SequentialComposition(of):
            return privacy_events.SequentialComposition(tuple(unsampled(each) for each in of))
    return event


def rates(events: Iterable[PrivacyEvent], count: int = 1) -> list[float]:
    """The rates of the samples that events pay for, largest first."""
    found: list[float] = []
    for event in events:
        match event:
            case Poisson(rate, _):
                found += [rate] * count
            case Repeat(times, of):
                found += rates([of], count * times)
            case privacy_events.SequentialComposition(of):
                found += rates(of, count)
    return sorted(found, reverse=True)


def rate_share(sampled: Sequence[float], events: Iterable[PrivacyEvent]) -> float:
    """The largest ratio of a sample's rate to the one that was charged for it; 0 where no event speaks of samples."""
    charged = rates(events)
    if not charged:
        return 0.0
    if len(sampled) > len(charged):
        return math.inf
    return max((used / paid for used, paid in zip(sorted(sampled, reverse=True), charged, strict=False)), default=0.0)
