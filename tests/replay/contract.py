"""The contract: whatever is released, one unit costs no more in it than what was charged to a list of its own before.

`replay(release, one, other)` takes any release: a function of the data and of a `Tape`, which stands for chance, hears
what is charged and is told what comes out. `cost` then prices the draws, and compares the rates of samples. `hold` asks
of many such costs that none is above its price, and that the world that they are of could have shown it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mechanisms.privacy_events import PrivacyEvent
from tests.replay.price import Loss, rate_share, rates
from tests.replay.tape import Charge, Entry, Extreme, LeakError, Noise, Sample, Tape, Told

Release = Callable[[Any, Tape], Any]
_FAR = 2**60
EXTREMES = (None, Extreme(-1), Extreme(1))
"""Likely noise, and noise that is far out."""
SLACK = 1 + 1e-6
"""Values are rounded to a grid, and scales are floats."""
NEAR = 0.9
"""The part of what is paid for that some unit uses up, where nothing is clipped."""


@dataclass(frozen=True)
class Cost:
    """What a unit cost in a release.

    Attributes:
        shares: for each kind of release the largest share, at any time, that its draws used of what the unit's list had
            been charged by then for this kind: what was paid for a vote does not pay for a score.
        rate: the largest ratio of a rate at which it was sampled to the rate that was charged; 0 without samples.
    """

    shares: Mapping[str, float]
    rate: float

    @property
    def noise(self) -> float:
        return max(self.shares.values(), default=0.0)

    @property
    def worst(self) -> float:
        return max(self.noise, self.rate)

    @property
    def allowed(self) -> bool:
        return self.worst <= SLACK


def hold(found: Iterable[Cost], *kinds: str) -> None:
    """No unit cost more than was charged, and of each of these kinds of release some unit used nearly all of it.

    Otherwise the world might hide an error: a unit of little weight could cost four times as much as it does.
    """
    costs = [*found]
    assert all(each.allowed for each in costs), costs
    for kind in kinds:
        assert max(each.shares.get(kind, 0.0) for each in costs) > NEAR, f"nobody comes near the price of '{kind}'"


@dataclass(frozen=True)
class Replay:
    """A release on two neighbours: the same happened, on values that differ.

    Attributes:
        ways: draws, each beside how far its values moved, for each way of making up for the difference.
    """

    recorded: Sequence[Entry]
    kept: Sequence[Entry]
    ways: Sequence[dict[int, np.ndarray]]

    def cost(self, *events: PrivacyEvent, payer: str = "") -> Cost:
        """What the unit cost, against the list that pays best for it.

        Args:
            events: what was charged before anything else, of a release that does not charge by itself.
            payer: how the names of the unit's own lists begin: that others pay enough is no use to it.
        """
        charged = {entry.name for entry in self.recorded if isinstance(entry, Charge)}
        own = sorted(name for name in charged if name.startswith(payer))
        found = [self._of(name, moved, events) for name in own or [""] for moved in self.ways]
        return min(found, key=lambda cost: cost.worst)

    def _of(self, name: str, moved: dict[int, np.ndarray], before: tuple[PrivacyEvent, ...]) -> Cost:
        paid, losses, shares = {"": before}, dict[str, Loss](), dict[str, float]()
        amplified = self._amplified(name, moved, before)
        for place, (entry, kind) in enumerate(zip(self.recorded, self._kinds, strict=True)):
            if isinstance(entry, Charge) and entry.name == name:
                paid[entry.kind] = paid.get(entry.kind, ()) + entry.events
            elif isinstance(entry, Noise) and moved[place].any():
                loss = losses.setdefault(kind, Loss())
                loss.add(entry, moved[place])
                share = loss.share(paid.get(kind, ()), amplified[: len(loss.ranges)])
                shares[kind] = max(shares.get(kind, 0.0), share)
        return Cost(shares, rate_share(self.sampled, itertools.chain(*paid.values())))

    @property
    def _kinds(self) -> list[str]:
        """The kind of release that each entry was made for: that of the next thing that is told and has one."""
        found, kind = [], ""
        for entry in reversed(self.recorded):
            kind = (entry.kind if isinstance(entry, Told) else "") or kind
            found.append(kind)
        return found[::-1]

    def _amplified(self, name: str, moved: dict[int, np.ndarray], before: tuple[PrivacyEvent, ...]) -> list[float]:
        """The rates of samples that served one draw from softmax each, where they are part of the price of zCDP."""
        charges = [entry.events for entry in self.recorded if isinstance(entry, Charge) and entry.name == name]
        softmax = [
            place
            for place, entry in enumerate(self.recorded)
            if isinstance(entry, Noise) and entry.kind == "gumbel_argmax" and moved[place].any()
        ]
        one_each = len(softmax) == len(self.sampled)
        return self.sampled if one_each and not rates([*before, *itertools.chain(*charges)]) else []

    @property
    def sampled(self) -> list[float]:
        """The rates of the samples that the unit could join."""
        return [
            one.rate
            for one, other in zip(self.recorded, self.kept, strict=True)
            if isinstance(one, Sample) and isinstance(other, Sample) and one.population != other.population
        ]


def replay(
    release: Release, one: Any, other: Any, seed: int = 0, joins: frozenset[int] = frozenset(), source: Any = None
) -> Replay:
    """Run a release on one neighbour, and on the other with the same outcomes.

    Args:
        release: a function of the data and a tape; what it returns has to be alike too.
        joins: the unit's positions among those that are sampled.
        source: of the noise on the one neighbour; from the seed, if none is given.

    Raises:
        LeakError: something but the values under the noise differs.
    """
    tape = Tape(seed, joins=joins, source=source)
    _end(release, one, tape)
    assert all(0 < each.rate < 1 for each in tape.entries if isinstance(each, Sample)), "a rate of 1 hides larger ones"
    kept = Tape(seed, tape.entries, joins)
    _end(release, other, kept)
    moved = {
        place: (a.values - b.values).astype(np.float64)
        for place, (a, b) in enumerate(zip(tape.entries, kept.entries, strict=True))
        if isinstance(a, Noise) and isinstance(b, Noise)
    }
    raised = _raised(lambda entries: _end(release, other, Tape(seed, entries, joins)), tape.entries, moved)
    return Replay(tape.entries, kept.entries, [moved] if raised is None else [moved, raised])


def replayed(
    release: Release,
    one: Any,
    other: Any,
    *events: PrivacyEvent,
    sources: Sequence[Any] = (None,),
    payer: str = "",
    **how: Any,
) -> Cost:
    """What a unit costs at most in a release, recorded on either neighbour with noise from each source."""
    found = [
        replay(release, *pair, source=source, **how).cost(*events, payer=payer)
        for source in sources
        for pair in ((one, other), (other, one))
    ]
    kinds = {kind for each in found for kind in each.shares}
    shares = {kind: max(each.shares.get(kind, 0.0) for each in found) for kind in kinds}
    return Cost(shares, max(each.rate for each in found))


def _end(release: Release, data: Any, tape: Tape) -> None:
    tape.tell(release(data, tape))
    tape.end()


def _raised(
    again: Callable[[Sequence[Entry]], None], entries: Sequence[Entry], moved: dict[int, np.ndarray]
) -> dict[int, np.ndarray] | None:
    """How values move if noisy thresholds rise instead: what stays below one that rises may keep its own noise.

    A threshold is the first Laplace draw of a demonstration, and the first after a paid token, on a value that no unit
    changes; the other Laplace draws are compared with it, and where the token was free they were below. That this is
    so is not taken on trust: the neighbour is run with this noise, and with thresholds, and all that was above them,
    raised out of sight of all that was below. It has to tell the same.
    """
    tokens = _tokens(entries)
    queries = [place for place in moved if _laplace(entries[place])]
    if not queries or not set(queries) <= set(tokens):
        return None
    rise = max([0, *(-int(moved[place].min()) for place in queries if tokens[place].free)])
    near, far, found = list(entries), list(entries), dict(moved)
    expected: dict[Any, bool] = {}
    for place in queries:
        token, entry = tokens[place], entries[place]
        whose = getattr(token, "label", None), getattr(token, "number", None)
        threshold = expected.get(whose, True) and not moved[place].any()
        expected[whose] = not threshold and not token.free
        if token.free and not threshold:
            found[place], outcome, away = np.zeros_like(moved[place]), entry.outcome - moved[place], -_FAR
        else:
            found[place], outcome, away = moved[place] + rise, entry.outcome + rise, _FAR
        outcome = outcome.astype(np.int64)
        near[place], far[place] = replace(entry, outcome=outcome), replace(entry, outcome=outcome + away)
    try:
        again(near)
        again(far)
    except LeakError:
        return None
    return found


def _laplace(entry: Entry) -> bool:
    return isinstance(entry, Noise) and entry.kind == "laplace"


def _tokens(entries: Sequence[Entry]) -> dict[int, Any]:
    """The token that each draw was made for: the next one that is told, where it says whether it was free."""
    found, token = {}, None
    for place in reversed(range(len(entries))):
        entry = entries[place]
        if isinstance(entry, Told):
            token = entry.event if hasattr(entry.event, "free") else None
        elif isinstance(entry, Noise) and token is not None:
            found[place] = token
    return found
