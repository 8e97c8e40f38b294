"""Whole demonstrations on neighbouring inputs: what was drawn, what a unit's difference cost in it, what was charged.

A demonstration is run on one neighbour and every draw recorded. The other neighbour is then run with noise that makes
each draw come out as before. Whatever is released has to come out as before too: releases follow from draws, and the
draws' kinds and scales from releases. The difference of the noise that this took is what the demonstration cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mechanisms import privacy_events
from mechanisms.accounting.normal_form import Concentrated, SampledGaussian, SampledLaplace, SampledPure, normal_form
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Poisson, PrivacyEvent, Repeat
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import TokenDistributions, TokenMechanism, TokenRelease

_FAR = 2**60
NOISE = ("gaussian", "laplace", "exponential_argmax", "gumbel_argmax")


class LeakError(AssertionError):
    """Something that was drawn or released follows from private values without noise."""


@dataclass(frozen=True)
class Draw:
    """One call for randomness at a token step: of a kind, on values, at a scale, with an outcome."""

    step: int
    kind: str
    values: np.ndarray
    scale: float
    outcome: object

    def like(self, other: Draw) -> bool:
        return (self.step, self.kind, self.scale, len(self.values)) == (
            other.step,
            other.kind,
            other.scale,
            len(other.values),
        )


class Recording:
    """Randomness that remembers what was asked of it, and with `told` gives the outcomes of the draws told."""

    private = False

    def __init__(self, seed: int, told: Sequence[Draw] | None = None) -> None:
        self.draws: list[Draw] = []
        self.at = 0
        self._source = SeededRandomness(seed)
        self._told = told

    def _draw(self, kind, values, scale):
        asked = Draw(self.at, kind, np.array(values), scale, None)
        if self._told is None:
            arguments = (values, scale) if kind in NOISE else (len(values),)
            outcome = getattr(self._source, kind)(*arguments)
        elif len(self.draws) < len(self._told) and asked.like(self._told[len(self.draws)]):
            outcome = self._told[len(self.draws)].outcome
        else:
            raise LeakError("other draws are made on the neighbour, although all before came out alike")
        self.draws.append(replace(asked, outcome=outcome))
        return outcome

    def gaussian(self, values, scale):
        return self._draw("gaussian", values, scale)

    def laplace(self, values, scale):
        return self._draw("laplace", values, scale)

    def exponential_argmax(self, values, scale):
        return self._draw("exponential_argmax", values, scale)

    def gumbel_argmax(self, values, scale):
        return self._draw("gumbel_argmax", values, scale)

    def uniform(self, count):
        return self._draw("uniform", np.zeros(count), 0.0)

    def permutation(self, size):
        return self._draw("permutation", np.zeros(size), 0.0)


@dataclass
class Loss:
    """What draws cost: Gaussians as the sum of 1 / multiplier^2, pure ones as epsilon, draws from softmax as ranges."""

    gaussian: float = 0.0
    pure: float = 0.0
    ranges: list[float] = field(default_factory=list)

    def add(self, draw: Draw, moved: np.ndarray) -> None:
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

    def share(self, event: PrivacyEvent) -> float:
        """The largest part that this uses of what an unsampled event pays in the same coin; at most 1 where it pays.

        A draw from softmax of range eta is eta-DP and eta^2 / 8 zCDP, so that either pays for it.
        """
        gaussian, pure, rho = paid(event)
        softmax = sum(each**2 for each in self.ranges) / 8 if rho > 0 else 0.0
        own_pure = self.pure + (0.0 if rho > 0 else sum(self.ranges))
        return max(_ratio(self.gaussian, gaussian), _ratio(own_pure, pure), _ratio(softmax, rho))


def _ratio(used: float, paid: float) -> float:
    return used / paid if paid > 0 else math.inf if used > 0 else 0.0


def paid(event: PrivacyEvent) -> tuple[float, float, float]:
    """Sum of 1 / multiplier^2, of epsilons, and of rho that an unsampled event pays for."""
    gaussian = pure = rho = 0.0
    for primitive, count in normal_form([event]).primitives:
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
        case privacy_events.Sequence(of):
            return privacy_events.Sequence(tuple(unsampled(each) for each in of))
    return event


def write(mechanism: TokenMechanism, plan: SamplingPlan, steps, randomness: Recording) -> list[TokenRelease]:
    """One demonstration."""
    return list(writing(mechanism, plan, steps, randomness))


def writing(mechanism: TokenMechanism, plan: SamplingPlan, steps, randomness: Recording) -> Iterator[TokenRelease]:
    """One demonstration, token by token."""
    releaser = mechanism.begin(plan, randomness)
    for randomness.at, step in enumerate(steps):
        yield releaser.step(step)


def same(one: list[TokenRelease], other: list[TokenRelease]) -> bool:
    return len(one) == len(other) and all(
        (a.index, a.free) == (b.index, b.free) and np.array_equal(a.scores, b.scores)
        for a, b in zip(one, other, strict=True)
    )


def loss(
    mechanism: TokenMechanism,
    plan: SamplingPlan,
    one: list[TokenDistributions],
    other: list[TokenDistributions],
    seed: int,
) -> list[Loss]:
    """What the difference between two neighbours costs in a demonstration, by each way of making up for it.

    Raises:
        LeakError: with every draw as before, the neighbour's demonstration differs.
    """
    recorded = Recording(seed)
    released = write(mechanism, plan, one, recorded)
    kept = Recording(seed, recorded.draws)
    if not same(released, write(mechanism, plan, other, kept)):
        raise LeakError("a release differs although all draws came out alike")
    if len(recorded.draws) != len(kept.draws):
        raise LeakError("fewer draws are made on the neighbour, although all came out alike")
    pairs, plain = list(zip(recorded.draws, kept.draws, strict=True)), Loss()
    for a, b in pairs:
        plain.add(a, (a.values - b.values).astype(np.float64))
    raised = _raised(mechanism, plan, other, released, pairs, seed)
    return [plain] if raised is None else [plain, raised]


def _raised(mechanism, plan, other, released, pairs, seed) -> Loss | None:
    """The cost if noisy thresholds rise instead: what stays below one that rises as well may keep its own noise.

    A threshold is the first Laplace draw of a demonstration, and the first after a paid token, on a value that no unit
    changes; the other Laplace draws are compared with it, and where the token was free they were below. That this is
    so is not taken on trust: the neighbour is run with this noise, and with thresholds, and all that was above them,
    raised out of sight of all that was below. It has to release the same.
    """
    below = [b.values - a.values for a, b in pairs if a.kind == "laplace" and released[a.step].free]
    rise = max([0, *(int(each.max()) for each in below)])
    near, far, cost, expected = [], [], Loss(), True
    for a, b in pairs:
        moved, outcome, away = (a.values - b.values).astype(np.float64), a.outcome, 0
        if a.kind == "laplace":
            threshold, free = expected and not moved.any(), released[a.step].free
            expected = not threshold and not free
            if free and not threshold:
                moved, outcome, away = np.zeros_like(moved), a.outcome - a.values + b.values, -_FAR
            else:
                moved, outcome, away = moved + rise, a.outcome + rise, _FAR
        near.append(replace(a, outcome=outcome))
        far.append(replace(a, outcome=outcome + away))
        cost.add(a, moved)
    try:
        alike = [same(released, write(mechanism, plan, other, Recording(seed, told))) for told in (near, far)]
        return cost if all(alike) else None
    except LeakError:
        return None
