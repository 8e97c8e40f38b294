"""The normal form of events: counts of the few primitives that accountants support."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from mechanisms.errors import AccountingError
from mechanisms.privacy_events import (
    MOST_RELEASES,
    ZCDP,
    Approximate,
    Gaussian,
    Laplace,
    Poisson,
    PrivacyEvent,
    Pure,
    Repeat,
    SequentialComposition,
)


@dataclass(frozen=True)
class Bounds:
    """A lower and an upper bound on epsilon."""

    lower: float
    upper: float


_LARGEST_PURE = 100.0
"""The largest epsilon of a pure step: a larger one has no use, and its probabilities leave the range of floats."""
_NO_PAIR = (
    "Sampling is priced where the dominating pair of everything on the sample is known: one event, or a sequence of "
    "Gaussian or of pure events alone. Price steps with Laplace noise as pure ones, Pure(1 / scale, steps), or draw a "
    "sample for each."
)


@dataclass(frozen=True)
class SampledGaussian:
    """A Gaussian release on a Poisson sample; at rate 1 every unit joins."""

    noise_multiplier: float
    rate: float


@dataclass(frozen=True)
class SampledLaplace:
    """A Laplace release on a Poisson sample; at rate 1 every unit joins."""

    scale: float
    rate: float


@dataclass(frozen=True)
class SampledPure:
    """`steps` adaptive releases on one Poisson sample, each epsilon-DP before sampling; at rate 1 every unit joins."""

    epsilon: float
    steps: int
    rate: float


@dataclass(frozen=True)
class Concentrated:
    """A release of which only a zCDP bound is known, which sampling does not amplify."""

    rho: float
    rate: ClassVar[float] = 1.0


Primitive = SampledGaussian | SampledLaplace | SampledPure | Concentrated


def dominates(one: Primitive, other: Primitive) -> bool:
    """True if `other` is a release of the same kind with at least as much noise, at most as many steps and at most as
    large a rate."""
    match one, other:
        case SampledGaussian(noise), SampledGaussian(other_noise):
            return noise <= other_noise and one.rate >= other.rate
        case SampledLaplace(scale), SampledLaplace(other_scale):
            return scale <= other_scale and one.rate >= other.rate
        case SampledPure(epsilon, steps), SampledPure(other_epsilon, other_steps):
            return epsilon >= other_epsilon and steps >= other_steps and one.rate >= other.rate
        case Concentrated(rho), Concentrated(other_rho):
            return rho >= other_rho
        case _:
            return False


def pure_epsilon(primitive: Primitive) -> float:
    """The epsilon of a primitive at delta 0; infinity if the primitive has none."""
    match primitive:
        case SampledLaplace(scale, rate):
            return amplified(1 / scale, rate)
        case SampledPure(epsilon, steps, rate):
            return amplified(steps * epsilon, rate)
        case _:
            return math.inf


@dataclass(frozen=True)
class NormalForm:
    """A list of events as primitives with their counts.

    Attributes:
        failure: the probability of the events that only fail, which is added to delta.
    """

    primitives: tuple[tuple[Primitive, int], ...]
    failure: float

    def dominates(self, other: NormalForm) -> bool:
        """True if each primitive of `other` costs at most as much as its counterpart here, by its parameters alone."""
        if len(self.primitives) != len(other.primitives) or other.failure > self.failure:
            return False
        pairs = zip(self.primitives, other.primitives, strict=True)
        return all(dominates(a, b) and m >= n for (a, m), (b, n) in pairs)

    @property
    def kinds(self) -> tuple[Primitive, ...]:
        """The different primitives."""
        return tuple(primitive for primitive, _ in self.primitives)

    @property
    def count(self) -> int:
        """The number of primitives, equal ones included."""
        return sum(count for _, count in self.primitives)

    @property
    def pure_epsilon(self) -> float:
        """The sum of the epsilons at delta 0, which bounds every adaptive composition; infinity if one has none."""
        return sum(count * pure_epsilon(primitive) for primitive, count in self.primitives)

    def part(self, concentrated: bool) -> NormalForm:
        """The primitives that are zCDP bounds (`concentrated`), or all others, without the failure probability."""
        return NormalForm(tuple(e for e in self.primitives if isinstance(e[0], Concentrated) == concentrated), 0.0)


def amplified(epsilon: float, rate: float) -> float:
    """The epsilon of one epsilon-DP release on a Poisson sample, `ln(1 + q (e^epsilon - 1))` (Balle et al. 2018)."""
    if rate == 1.0:
        return epsilon
    # Beyond the range of exp, epsilon itself is a bound.
    return math.log1p(rate * math.expm1(epsilon)) if epsilon < 700.0 else epsilon


def _pure(epsilon: float, steps: int, rate: float) -> tuple[Primitive, int]:
    if epsilon > _LARGEST_PURE:
        raise AccountingError(f"A step of epsilon {epsilon:g} promises nothing: lower it to {_LARGEST_PURE:g} or less.")
    if rate == 1.0 or steps == 1:
        return SampledPure(amplified(epsilon, rate), 1, 1.0), steps
    return SampledPure(epsilon, steps, rate), 1


def _laplace(scale: float, rate: float) -> tuple[Primitive, int]:
    if scale < 1 / _LARGEST_PURE:
        raise AccountingError(f"Laplace noise of scale {scale:g} promises nothing: raise it to {1 / _LARGEST_PURE:g}.")
    return SampledLaplace(scale, rate), 1


def _sampled(rate: float, parts: list[tuple[PrivacyEvent, int]]) -> tuple[Primitive, int]:
    """The primitive of parts that compose on one sample: their dominating pair is formed first, then mixed.

    Several Gaussians are one Gaussian (Dong, Roth, Su 2019). Pure events cost at most as much as equally many events of
    the largest epsilon. Amplifying each part by itself would claim too little.
    """
    match parts:
        case [(Gaussian(multiplier), 1)]:
            return SampledGaussian(multiplier, rate), 1
        case [(Laplace(scale), 1)]:
            return _laplace(scale, rate)
    gaussians = [(each.noise_multiplier, count) for each, count in parts if isinstance(each, Gaussian)]
    if len(gaussians) == len(parts):
        return SampledGaussian(1 / math.sqrt(sum(count / multiplier**2 for multiplier, count in gaussians)), rate), 1
    pure = [(each.epsilon, each.count * count) for each, count in parts if isinstance(each, Pure)]
    if len(pure) < len(parts) or sum(count for _, count in pure) > MOST_RELEASES:
        raise AccountingError(_NO_PAIR)
    return _pure(max(epsilon for epsilon, _ in pure), sum(count for _, count in pure), rate)


def _primitive(event: PrivacyEvent) -> tuple[Primitive, int]:
    match event:
        case Gaussian(multiplier):
            return SampledGaussian(multiplier, 1.0), 1
        case Laplace(scale):
            return _laplace(scale, 1.0)
        case Pure(epsilon, steps):
            return _pure(epsilon, steps, 1.0)
        case ZCDP(rho):
            return Concentrated(rho), 1
        case Poisson(rate, of):
            return _sampled(rate, list(_parts(of)))
        case _:
            raise AccountingError(f"No accountant here bounds {type(event).__name__} events of this form.")


def _parts(event: PrivacyEvent, count: int = 1) -> Iterator[tuple[PrivacyEvent, int]]:
    """The events that an event is a composition of, and how often each takes part."""
    match event:
        case Repeat(times, of):
            yield from _parts(of, count * times)
        case SequentialComposition(of):
            for each in of:
                yield from _parts(each, count)
        case _:
            yield event, count


def normal_form(events: Iterable[PrivacyEvent]) -> NormalForm:
    """The normal form of events that compose.

    Raises:
        AccountingError: no accountant of this package bounds one of the events.
    """
    primitives: Counter[Primitive] = Counter()
    failure = 0.0
    for event, count in (part for each in events for part in _parts(each)):
        if isinstance(event, Approximate):
            failure += count * event.delta
        else:
            primitive, steps = _primitive(event)
            primitives[primitive] += count * steps
    return NormalForm(tuple(primitives.items()), failure)
