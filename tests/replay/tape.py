"""The tape: everything that a release asks of chance, charges and tells, in order; and the neighbour's held against it.

A release is run on one neighbour and the tape records it. On the other neighbour every draw of noise then comes out as
before, so that the rest has to be as before too: which draws are made, of what kind, shape and scale, on samples of
which rate, what is charged, what shape the model's batches have, and what is told.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import PrivacyEvent

_DATE = "created"
"""When a certificate was made: the clock moves on from one neighbour to the other."""


class LeakError(AssertionError):
    """Something that was drawn, charged or told follows from private values without noise."""


class Same:
    """An entry that is the same on the neighbour."""

    def like(self, other: Any) -> bool:
        return bool(self == other)


@dataclass(frozen=True)
class Charge(Same):
    """What an event list was charged, and for which kind of release."""

    name: str
    events: tuple[PrivacyEvent, ...]
    kind: str = ""


@dataclass(frozen=True)
class Sample:
    """A Poisson sample of a population, which one unit may be more or less; with the rate that was used."""

    population: int
    rate: float

    def like(self, other: Sample) -> bool:
        return self.rate == other.rate and abs(self.population - other.population) <= 1


@dataclass(frozen=True)
class Coins:
    """Uniform numbers, or a permutation, of a count to which a unit's own may add one."""

    kind: str
    count: int

    def like(self, other: Coins) -> bool:
        return self.kind == other.kind and abs(self.count - other.count) <= 1


@dataclass(frozen=True)
class Noise:
    """A draw of noise: of a kind, on values, at a scale, with an outcome."""

    kind: str
    values: np.ndarray
    scale: float
    outcome: Any

    def like(self, other: Noise) -> bool:
        return (self.kind, self.scale, self.values.shape) == (other.kind, other.scale, other.values.shape)


@dataclass(frozen=True)
class Shape(Same):
    """Rows, length and room of a batch that the model was given, and the public prefix that its rows share."""

    rows: int
    length: int
    room: int
    prefix: tuple[int, ...] = ()


@dataclass(frozen=True)
class Told:
    """Something that the release let out, and what kind of release it is that the draws before it were made for."""

    event: Any
    kind: str = ""

    def like(self, other: Told) -> bool:
        return plain(self.event) == plain(other.event)


@dataclass(frozen=True)
class Extreme:
    """Noise far out on one side: what depends on the values beside the noise has to depend on them here as well."""

    side: int

    def gaussian(self, values, scale):
        return values + np.int64(self.side * 50 * scale)

    laplace = gaussian

    def exponential_argmax(self, values, scale):
        return 0 if self.side < 0 else len(values) - 1

    gumbel_argmax = exponential_argmax


Entry = Charge | Sample | Coins | Noise | Shape | Told


def plain(value: Any) -> Any:
    """A value whose parts can be compared: arrays by their bytes, dataclasses by their fields."""
    if value is None or isinstance(value, str | float | int):
        return value
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (each.name for each in dataclasses.fields(value) if each.name != _DATE)
        return type(value).__name__, *(plain(getattr(value, name)) for name in fields)
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return tuple(plain(each) for each in value)
    return value


class Tape:
    """A source of randomness that records, or with `kept` replays, what is asked of it.

    Coins follow from their call and their position alone: all units but the one in question have the same ones on both
    neighbours, if it stands last.

    Attributes:
        joins: positions that join every sample whatever their coins say: the unit's own.
    """

    private = False

    def __init__(
        self,
        seed: int = 0,
        kept: Sequence[Entry] | None = None,
        joins: frozenset[int] = frozenset(),
        source: Any = None,
    ) -> None:
        self.entries: list[Entry] = []
        self.joins = joins
        self._seed, self._kept, self._calls = seed, kept, 0
        self._source = source or SeededRandomness(seed)

    @property
    def draws(self) -> list[Noise]:
        """The draws of noise."""
        return [entry for entry in self.entries if isinstance(entry, Noise)]

    def add(self, entry: Any) -> Any:
        """Record an entry, or hold it against the one that was recorded in its place; that one."""
        before = entry
        if self._kept is not None:
            place = len(self.entries)
            if place >= len(self._kept):
                raise LeakError(f"on the neighbour more happens: {_word(entry)}")
            before = self._kept[place]
            if type(before) is not type(entry) or not before.like(entry):
                raise LeakError(f"on the neighbour {_word(entry)} stands where {_word(before)} was")
        self.entries.append(entry)
        return before

    def end(self) -> None:
        """Nothing more comes.

        Raises:
            LeakError: less was asked for than recorded.
        """
        if self._kept is not None and len(self.entries) < len(self._kept):
            raise LeakError(f"on the neighbour less happens: no {_word(self._kept[len(self.entries)])}")

    def charge(self, name: str, events: Sequence[PrivacyEvent], kind: str = "") -> None:
        self.add(Charge(name, tuple(events), kind))

    def tell(self, event: Any, kind: str = "") -> None:
        self.add(Told(event, kind))

    def _noise(self, kind: str, values: np.ndarray, scale: float) -> Any:
        asked = Noise(kind, np.array(values), scale, None)
        before = self.add(asked)
        outcome = getattr(self._source, kind)(values, scale) if before is asked else before.outcome
        self.entries[-1] = replace(asked, outcome=outcome)
        return outcome

    def gaussian(self, values, scale):
        return self._noise("gaussian", values, scale)

    def laplace(self, values, scale):
        return self._noise("laplace", values, scale)

    def exponential_argmax(self, values, scale):
        return self._noise("exponential_argmax", values, scale)

    def gumbel_argmax(self, values, scale):
        return self._noise("gumbel_argmax", values, scale)

    def _coins(self, count: int) -> np.ndarray:
        self._calls += 1
        return np.random.default_rng([self._seed, self._calls]).uniform(1e-9, 1, count)

    def uniform(self, count):
        self.add(Coins("uniform", count))
        return self._coins(count)

    def permutation(self, size):
        self.add(Coins("permutation", size))
        return np.argsort(self._coins(size))

    def poisson_sample(self, population, rate):
        self.add(Sample(population, rate))
        mine = np.isin(np.arange(population), list(self.joins))
        return np.flatnonzero((self._coins(population) < rate) | mine)


def _word(entry: Entry) -> str:
    match entry:
        case Noise(kind, values, scale):
            return f"{kind} of scale {scale:g} on {len(values)} values"
        case Told(event):
            return f"what was told as {type(event).__name__}"
    return repr(entry)
