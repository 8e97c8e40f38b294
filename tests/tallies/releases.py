"""Every tally under one call, and a source of randomness that remembers what it is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mechanisms.privacy_events import Gaussian, Laplace, PrivacyEvent, Pure
from mechanisms.tallies import Choice, Prior, Prototypes, Score, Votes

ENTRIES = 4
EPSILON = 0.7
LABELS = 3


@dataclass
class Recorder:
    """Adds no noise, and keeps each draw: its kind, the values under it and its scale."""

    factor: float = 1.0
    private: bool = False
    draws: list[tuple[str, np.ndarray, float]] = field(default_factory=list)

    def _kept(self, kind, values, scale):
        self.draws.append((kind, values.copy(), scale * self.factor))
        return values

    def laplace(self, values, scale):
        return self._kept("laplace", values, scale)

    def gaussian(self, values, scale):
        return self._kept("gaussian", values, scale)

    def exponential_argmax(self, values, scale):
        return int(np.argmax(self._kept("selection", values, scale)))


@dataclass
class Scaled:
    """Another source's noise, at a multiple of the scale: half of it is a planted error."""

    source: object
    factor: float
    private: bool = False

    def laplace(self, values, scale):
        return self.source.laplace(values, scale * self.factor)

    def exponential_argmax(self, values, scale):
        return self.source.exponential_argmax(values, scale * self.factor)


@dataclass(frozen=True)
class Case:
    event: PrivacyEvent
    release: Callable

    @property
    def allowed(self) -> float:
        """Epsilon, or the distance of two Gaussians of deviation 1."""
        match self.event:
            case Pure(epsilon, 1):
                return epsilon
            case Laplace(scale):
                return 1 / scale
            case Gaussian(multiplier):
                return 1 / multiplier
        raise AssertionError(self.event)


def prototypes(vectors, randomness):
    """Labels by the place from the end, so that they stay when the first unit goes; every fourth is unknown."""
    labels = np.arange(len(vectors))[::-1] % (LABELS + 1)
    return Prototypes(2.0).release(vectors, labels, LABELS, randomness)


CASES = {
    "votes": Case(Votes(EPSILON, False).event, Votes(EPSILON, False).release),
    "votes of users": Case(Votes(EPSILON, True).event, Votes(EPSILON, True).release),
    "prior": Case(Prior(EPSILON).event, Prior(EPSILON).release),
    "choice": Case(Choice(EPSILON).event, Choice(EPSILON).release),
    "score": Case(Score(EPSILON, False).event, Score(EPSILON, False).release),
    "score of users": Case(Score(EPSILON, True).event, Score(EPSILON, True).release),
    "prototypes": Case(Prototypes(2.0).event, prototypes),
}
WHOLE = ("votes", "score")


def moved(case: Case, rows: np.ndarray, factor: float = 1.0) -> tuple[str, np.ndarray, float]:
    """How the first unit moves the value under the one draw of a release, and the draw's scale."""
    found = []
    for each in (rows, rows[1:]):
        recorder = Recorder(factor)
        case.release(each, recorder)
        found.append(recorder.draws)
    [(kind, values, scale)], [(other_kind, other_values, other_scale)] = found
    assert (kind, scale, values.shape) == (other_kind, other_scale, other_values.shape)
    assert values.dtype == np.int64
    return kind, values - other_values, scale


def cost(case: Case, rows: np.ndarray, factor: float = 1.0) -> float:
    """What the first unit pays: to be held against `Case.allowed`."""
    kind, change, scale = moved(case, rows, factor)
    distances = {
        "laplace": lambda: np.abs(change).sum(),
        "gaussian": lambda: np.linalg.norm(change.astype(float)),
        "selection": lambda: max(change.max(), 0) - min(change.min(), 0),
    }
    return float(distances[kind]() / scale)
