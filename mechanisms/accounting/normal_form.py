"""Events flattened into the few primitives that accountants know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from mechanisms.errors import AccountingError
from mechanisms.privacy_events import Approximate, Gaussian, Poisson, PrivacyEvent, Repeat


@dataclass(frozen=True)
class SampledGaussian:
    """A Gaussian release on a Poisson sample of the given rate (1: everybody)."""

    noise_multiplier: float
    rate: float


Primitive = SampledGaussian


@dataclass(frozen=True)
class NormalForm:
    """A list of events as counts of primitives, and the failure probability that goes straight to delta."""

    primitives: tuple[tuple[Primitive, int], ...]
    failure: float

    def dominates(self, other: NormalForm) -> bool:
        """Whether `other` costs no more, seen from the parameters alone: same noise, no larger rates and counts."""
        if len(self.primitives) != len(other.primitives) or other.failure > self.failure:
            return False
        pairs = zip(self.primitives, other.primitives, strict=True)
        return all(a.noise_multiplier <= b.noise_multiplier and a.rate >= b.rate and m >= n for (a, m), (b, n) in pairs)


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
        match event:
            case Gaussian(multiplier):
                primitives[SampledGaussian(multiplier, 1.0)] += count
            case Poisson(rate, Gaussian(multiplier)):
                primitives[SampledGaussian(multiplier, rate)] += count
            case Approximate(delta):
                failure += count * delta
            case _:
                raise AccountingError(f"No accountant here bounds {type(event).__name__} events of this form.")
    return NormalForm(tuple(primitives.items()), failure)
