"""Events flattened into the few primitives that accountants know."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mechanisms.errors import AccountingError
from mechanisms.privacy_events import ZCDP, Approximate, Gaussian, Poisson, PrivacyEvent, Pure, Repeat

_LARGEST_EXPONENT = 700.0
_LARGEST_PURE = 100.0
"""Beyond it a pure step promises nothing, and its probabilities leave the range of floating point."""


@dataclass(frozen=True)
class SampledGaussian:
    """A Gaussian release on a Poisson sample of the given rate (1: everybody)."""

    noise_multiplier: float
    rate: float

    def dominates(self, other: Primitive) -> bool:
        """Whether `other` is the same release with no less noise on no larger a sample."""
        if not isinstance(other, SampledGaussian):
            return False
        return self.noise_multiplier <= other.noise_multiplier and self.rate >= other.rate


@dataclass(frozen=True)
class SampledPure:
    """`steps` adaptive epsilon-DP releases on one Poisson sample of the given rate."""

    epsilon: float
    steps: int
    rate: float

    def dominates(self, other: Primitive) -> bool:
        """Whether `other` is the same kind of release with no larger epsilon, steps and sample."""
        if not isinstance(other, SampledPure):
            return False
        return self.epsilon >= other.epsilon and self.steps >= other.steps and self.rate >= other.rate


@dataclass(frozen=True)
class Concentrated:
    """A release of which only a zCDP bound is known."""

    rho: float

    def dominates(self, other: Primitive) -> bool:
        """Whether `other` has no larger rho."""
        return isinstance(other, Concentrated) and self.rho >= other.rho


Primitive = SampledGaussian | SampledPure | Concentrated


@dataclass(frozen=True)
class NormalForm:
    """A list of events as counts of primitives, and the failure probability that goes straight to delta."""

    primitives: tuple[tuple[Primitive, int], ...]
    failure: float

    def dominates(self, other: NormalForm) -> bool:
        """Whether `other` costs no more, seen from the parameters alone: primitive by primitive, count by count."""
        if len(self.primitives) != len(other.primitives) or other.failure > self.failure:
            return False
        pairs = zip(self.primitives, other.primitives, strict=True)
        return all(a.dominates(b) and m >= n for (a, m), (b, n) in pairs)

    def part(self, supported: Callable[[Primitive], bool]) -> NormalForm:
        """The primitives that an accountant supports, without the failure probability."""
        return NormalForm(tuple(each for each in self.primitives if supported(each[0])), 0.0)


def amplified(epsilon: float, rate: float) -> float:
    """Epsilon of one epsilon-DP release on a Poisson sample: `ln(1 + q (e^epsilon - 1))` (Balle et al. 2018)."""
    # Beyond the range of exp, epsilon itself is a bound.
    return math.log1p(rate * math.expm1(epsilon)) if epsilon < _LARGEST_EXPONENT else epsilon


def _pure(epsilon: float, steps: int, rate: float) -> tuple[Primitive, int]:
    if epsilon > _LARGEST_PURE:
        raise AccountingError(f"A step of epsilon {epsilon:g} promises nothing: lower it to {_LARGEST_PURE:g} or less.")
    if rate == 1.0 or steps == 1:
        return SampledPure(epsilon if rate == 1.0 else amplified(epsilon, rate), 1, 1.0), steps
    return SampledPure(epsilon, steps, rate), 1


def _primitive(event: PrivacyEvent) -> tuple[Primitive, int]:
    match event:
        case Gaussian(multiplier):
            return SampledGaussian(multiplier, 1.0), 1
        case Poisson(rate, Gaussian(multiplier)):
            return SampledGaussian(multiplier, rate), 1
        case Pure(epsilon, steps):
            return _pure(epsilon, steps, 1.0)
        case Poisson(rate, Pure(epsilon, steps)):
            return _pure(epsilon, steps, rate)
        case ZCDP(rho):
            return Concentrated(rho), 1
        case _:
            # Sampling amplifies neither zCDP as such nor, in any accountant here, a composition of mixed steps.
            raise AccountingError(f"No accountant here bounds {type(event).__name__} events of this form.")


def normal_form(events: Iterable[PrivacyEvent]) -> NormalForm:
    """Flatten events that compose.

    Raises:
        AccountingError: an event whose sampled form no accountant here can bound.
    """
    primitives: Counter[Primitive] = Counter()
    failure = 0.0
    for event in events:
        count = 1
        while isinstance(event, Repeat):
            count, event = count * event.count, event.of
        if isinstance(event, Approximate):
            failure += count * event.delta
        else:
            primitive, steps = _primitive(event)
            primitives[primitive] += count * steps
    return NormalForm(tuple(primitives.items()), failure)
