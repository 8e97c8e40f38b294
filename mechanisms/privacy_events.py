"""Privacy events: small frozen values, the only input of an accountant.

Every noise scale is relative to the sensitivity (a noise multiplier), so an event has a meaning without its mechanism.
`to_json` and `from_json` follow the `dpicl-demos` format.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mechanisms.errors import UsageError

Json = dict[str, Any]

MOST_RELEASES = 10**7
"""The most releases in one event: more are beyond the accountants and beyond any run."""
_LEAST_NOISE, _MOST_NOISE = 1e-9, 1e12
_LEAST_RATE = 1e-12


@dataclass(frozen=True)
class Gaussian:
    """One Gaussian release; `noise_multiplier` is the noise's standard deviation over the L2 sensitivity."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        if not _LEAST_NOISE <= self.noise_multiplier <= _MOST_NOISE:
            raise UsageError(f"A noise multiplier must lie between {_LEAST_NOISE:g} and {_MOST_NOISE:g}.")

    def to_json(self) -> Json:
        return {"type": "gaussian", "noise_multiplier": self.noise_multiplier}


@dataclass(frozen=True)
class Laplace:
    """One Laplace release; `scale` is the noise's scale over the L1 sensitivity."""

    scale: float

    def __post_init__(self) -> None:
        if not _LEAST_NOISE <= self.scale <= _MOST_NOISE:
            raise UsageError(f"A Laplace scale must lie between {_LEAST_NOISE:g} and {_MOST_NOISE:g}.")

    def to_json(self) -> Json:
        return {"type": "laplace", "scale": self.scale}


@dataclass(frozen=True)
class Pure:
    """`count` adaptive releases, each `epsilon`-differentially private."""

    epsilon: float
    count: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0 and 1 <= self.count <= MOST_RELEASES):
            raise UsageError(f"A pure event needs a positive epsilon and a count of 1 to {MOST_RELEASES}.")

    def to_json(self) -> Json:
        return {"type": "pure", "epsilon": self.epsilon, "count": self.count}


@dataclass(frozen=True)
class ZCDP:
    """A release that is `rho`-zero-concentrated differentially private (Bun and Steinke 2016)."""

    rho: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rho) and self.rho >= 0):
            raise UsageError("rho must be a number of at least 0.")

    def to_json(self) -> Json:
        return {"type": "zcdp", "rho": self.rho}


@dataclass(frozen=True)
class Approximate:
    """A failure with probability at most `delta`, which is added to the delta of the claim; with 1 there is no
    guarantee."""

    delta: float

    def __post_init__(self) -> None:
        if not 0 <= self.delta <= 1:
            raise UsageError("A failure probability must lie in [0, 1].")

    def to_json(self) -> Json:
        return {"type": "approximate", "delta": self.delta}


@dataclass(frozen=True)
class Poisson:
    """`of`, run on a sample in which every unit joins independently with probability `rate`."""

    rate: float
    of: PrivacyEvent

    def __post_init__(self) -> None:
        if not _LEAST_RATE <= self.rate <= 1:
            raise UsageError(f"A sampling rate must lie between {_LEAST_RATE:g} and 1.")

    def to_json(self) -> Json:
        return {"type": "poisson", "rate": self.rate, "of": self.of.to_json()}


@dataclass(frozen=True)
class Repeat:
    """`count` adaptive compositions of `of`."""

    count: int
    of: PrivacyEvent

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_RELEASES:
            raise UsageError(f"A repeated event needs a count of 1 to {MOST_RELEASES}.")

    def to_json(self) -> Json:
        return {"type": "repeat", "count": self.count, "of": self.of.to_json()}


@dataclass(frozen=True)
class SequentialComposition:
    """Adaptive composition of different events; under `Poisson` all of them use the same sample."""

    of: tuple[PrivacyEvent, ...]

    def __post_init__(self) -> None:
        if not self.of:
            raise UsageError("A sequence of events needs at least one.")

    def to_json(self) -> Json:
        return {"type": "sequence", "of": [event.to_json() for event in self.of]}


PrivacyEvent = Gaussian | Laplace | Pure | ZCDP | Approximate | Poisson | Repeat | SequentialComposition

ALL = "all"
"""The name of the event list of a run that has a single one, because a user may have rows of several labels."""


@dataclass(frozen=True)
class Composed:
    """Event lists over disjoint parts of one data set: each list composes, and the maximum over lists is taken last.

    `per` is "label" (one list per label), "role" (one per role, or per role and a part of it) or "dataset" (one list).
    """

    per: str
    lists: tuple[tuple[str, tuple[PrivacyEvent, ...]], ...]

    def __iter__(self) -> Iterator[tuple[str, tuple[PrivacyEvent, ...]]]:
        return iter(self.lists)

    def distinct(self) -> tuple[tuple[PrivacyEvent, ...], ...]:
        """The event lists without repetitions, which is all that an accountant needs."""
        return tuple(dict.fromkeys(events for _, events in self.lists))

    def to_json(self) -> Json:
        lists = {name: [event.to_json() for event in events] for name, events in self.lists}
        return {"type": "composed", "per": self.per, "lists": lists}


def _parse(document: Any) -> PrivacyEvent:
    if not isinstance(document, dict):
        raise UsageError("A privacy event must be a JSON object.")
    readers: dict[Any, Callable[[Json], PrivacyEvent]] = {
        "gaussian": lambda d: Gaussian(float(d["noise_multiplier"])),
        "laplace": lambda d: Laplace(float(d["scale"])),
        "pure": lambda d: Pure(float(d["epsilon"]), int(d.get("count", 1))),
        "zcdp": lambda d: ZCDP(float(d["rho"])),
        "approximate": lambda d: Approximate(float(d["delta"])),
        "poisson": lambda d: Poisson(float(d["rate"]), _parse(d["of"])),
        "repeat": lambda d: Repeat(int(d["count"]), _parse(d["of"])),
        "sequence": lambda d: SequentialComposition(tuple(_parse(each) for each in d["of"])),
    }
    kind = document.get("type")
    if kind not in readers:
        raise UsageError(f"Unknown privacy event type {kind!r}.")
    return readers[kind](document)


@contextmanager
def _complete() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UsageError("The privacy event is not complete: see the schema of dpicl-demos.") from error


def event_from_json(document: Any) -> PrivacyEvent:
    """Read a single event.

    Raises:
        UsageError: the document is not an event of known types.
    """
    with _complete():
        return _parse(document)


def from_json(document: Any) -> Composed:
    """Read a composed event.

    Raises:
        UsageError: the document is not a composed event of known types.
    """
    with _complete():
        if document["type"] != "composed" or not document["lists"]:
            raise UsageError("A demo set's privacy event must be of type 'composed', with at least one list.")
        lists = tuple((str(k), tuple(_parse(e) for e in v)) for k, v in document["lists"].items())
        return Composed(str(document["per"]), lists)
