"""The state of step 2: the spec that its settings make, and the calibrated plan."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass, replace

from dpicl_ui.data.state import Confirmed, DataState
from dpicl_ui.frame.services import Gate, Session, State
from mechanisms.accounting import Claim
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.stage import Speed


@dataclass(frozen=True, repr=False)
class Wanted:
    """A spec for a data set, on its way to a plan."""

    confirmed: Confirmed
    spec: RunSpec


@dataclass(frozen=True, repr=False)
class Planned:
    """A run that can start; the models' speed is None until it was measured."""

    confirmed: Confirmed
    spec: RunSpec
    plan: Plan
    claim: Claim
    speed: Speed | None = None

    @property
    def charge(self) -> float:
        """The epsilon that the run adds to the ledger, which has been charged with a measurement before."""
        measured = self.confirmed.measured
        return self.claim.epsilon - (measured.epsilon if measured else 0.0)

    @property
    def seconds(self) -> float | None:
        """The expected time of the run; None while the models' speed is not known."""
        return None if self.speed is None else self.speed.seconds(self.plan.work)


class PrivacyState(State):
    """The state belongs to a confirmed data set, and is empty for another one; `set_for` has had the settings last."""

    def __init__(self, session: Session) -> None:
        self._data = session.of(DataState)
        self._lock = threading.RLock()
        self._calibrating = threading.RLock()  # two handlers may want the same settings: one of them calibrates
        self._at: Wanted | Planned | None = None
        self.set_for: Hashable = None

    @property
    def planned(self) -> Planned | None:
        """The calibrated run; None while its settings are being calibrated, or where they were refused."""
        at = self._at
        return at if isinstance(at, Planned) and at.confirmed is self._data.confirmed else None

    @property
    def plan(self) -> Plan | None:
        planned = self.planned
        return planned.plan if planned else None

    def outdate(self, spec: RunSpec) -> Wanted:
        """Drop a plan of other settings at once: no run may start until these are calibrated.

        Raises:
            UsageError: no data set was confirmed.
        """
        wanted = Wanted(self._data.needed, spec)
        with self._lock:
            if not self._is(wanted):
                self._at = wanted
        return wanted

    def forget(self) -> None:
        with self._lock:
            self._at = None

    def calibrate(self, spec: RunSpec, speed: Speed | None) -> Planned:
        """The run of a spec; it becomes `planned` unless later settings or other data overtook it.

        Raises:
            UsageError: no data set was confirmed.
            StudioError: the settings cannot be used; there is then no `planned`.
        """
        wanted = self.outdate(spec)
        with self._calibrating:
            return self._made(wanted, speed)

    def look(self, spec: RunSpec, speed: Speed | None) -> Planned | None:
        """Calibrate for the screen: as `calibrate`, but None where other settings are wanted by now, or other data."""
        with self._lock:  # no other settings come in between
            at = self._at
            if isinstance(at, Wanted) and at.confirmed is self._data.confirmed and at.spec != spec:
                return None
            wanted = self.outdate(spec)
        with self._calibrating:
            made = self._made(wanted, speed) if self._is(wanted) else None
        return made if self._is(wanted) else None

    def _is(self, wanted: Wanted) -> bool:
        """Whether the present run is what was wanted, calibrated or not."""
        at = self._at
        return at is not None and at.confirmed is wanted.confirmed and at.spec == wanted.spec

    def _made(self, wanted: Wanted, speed: Speed | None) -> Planned:
        if (current := self.planned) is not None and self._is(wanted):
            return self.time(speed) or current
        confirmed = wanted.confirmed
        plan = plan_for(wanted.spec, confirmed.dataset, confirmed.measured).calibrated()
        made = Planned(confirmed, wanted.spec, plan, plan.claim(), speed)
        with self._lock:
            if self._is(wanted):
                self._at = made
        return made

    def time(self, speed: Speed | None) -> Planned | None:
        """Set the models' speed of a plan that was calibrated with others or none; returns it if that changed it."""
        with self._lock:
            if (planned := self.planned) is None or planned.speed == speed:
                return None
            self._at = timed = replace(planned, speed=speed)
            return timed


def gate(session: Session) -> Gate:
    """Open with a confirmed data set; done when a run is calibrated."""
    if session.of(DataState).confirmed is None:
        return Gate("Choose a data set in step 1 and confirm what becomes public: the noise depends on it.")
    return Gate(done=session.of(PrivacyState).planned is not None)
