"""The state of step 2: the spec from its settings, and the calibrated plan."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass, replace

from dpicl_ui.data.state import ConfirmedData, DataState
from dpicl_ui.frame.services import Session, State, StepStatus
from mechanisms.accounting import Claim
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.work import Speed


@dataclass(frozen=True, repr=False)
class PlanRequest:
    """A spec for a data set, for which there is no plan yet."""

    confirmed: ConfirmedData
    spec: RunSpec


@dataclass(frozen=True, repr=False)
class PlannedRun:
    """A run that can start; the models' speed is None until it has been measured."""

    confirmed: ConfirmedData
    spec: RunSpec
    plan: Plan
    claim: Claim
    speed: Speed | None = None

    @property
    def charge(self) -> float:
        """The epsilon that the run adds to the ledger; a measurement of sizes was charged before."""
        measured = self.confirmed.measured
        return self.claim.epsilon - (measured.epsilon if measured else 0.0)

    @property
    def seconds(self) -> float | None:
        """The expected seconds of the run; None while the models' speed is unknown."""
        return None if self.speed is None else self.speed.seconds(self.plan.work)


class PrivacyState(State):
    """The plan of the confirmed data set. `set_for` identifies the data set for which settings were shown last."""

    def __init__(self, session: Session) -> None:
        self._data = session.of(DataState)
        self._lock = threading.RLock()
        self._calibrating = threading.RLock()  # of two handlers with the same settings, only one calibrates
        self._at: PlanRequest | PlannedRun | None = None
        self.set_for: Hashable = None

    @property
    def planned(self) -> PlannedRun | None:
        """The calibrated run; None while its settings are being calibrated, or if they were refused."""
        at = self._at
        return at if isinstance(at, PlannedRun) and at.confirmed is self._data.confirmed else None

    @property
    def plan(self) -> Plan | None:
        planned = self.planned
        return planned.plan if planned else None

    def outdate(self, spec: RunSpec) -> PlanRequest:
        """Drop a plan of other settings at once: no run may start until the new ones are calibrated.

        Raises:
            UsageError: no data set is confirmed.
        """
        request = PlanRequest(self._data.needed, spec)
        with self._lock:
            if not self._is(request):
                self._at = request
        return request

    def forget(self) -> None:
        with self._lock:
            self._at = None

    def calibrate(self, spec: RunSpec, speed: Speed | None) -> PlannedRun:
        """Calibrate the run of a spec; it becomes `planned` unless later settings or other data replace it.

        Raises:
            UsageError: no data set is confirmed.
            StudioError: the settings cannot be used; `planned` is then None.
        """
        request = self.outdate(spec)
        with self._calibrating:
            return self._made(request, speed)

    def calibrate_for_screen(self, spec: RunSpec, speed: Speed | None) -> PlannedRun | None:
        """Calibrate for the screen: as `calibrate`, but None if the settings or the data have changed meanwhile."""
        with self._lock:  # so that the settings cannot change in between
            at = self._at
            if isinstance(at, PlanRequest) and at.confirmed is self._data.confirmed and at.spec != spec:
                return None
            request = self.outdate(spec)
        with self._calibrating:
            made = self._made(request, speed) if self._is(request) else None
        return made if self._is(request) else None

    def _is(self, request: PlanRequest) -> bool:
        """Whether the present run has these settings, calibrated or not."""
        at = self._at
        return at is not None and at.confirmed is request.confirmed and at.spec == request.spec

    def _made(self, request: PlanRequest, speed: Speed | None) -> PlannedRun:
        if (current := self.planned) is not None and self._is(request):
            return self.time(speed) or current
        confirmed = request.confirmed
        plan = plan_for(request.spec, confirmed.dataset, confirmed.measured).calibrated()
        made = PlannedRun(confirmed, request.spec, plan, plan.claim(), speed)
        with self._lock:
            if self._is(request):
                self._at = made
        return made

    def time(self, speed: Speed | None) -> PlannedRun | None:
        """Set the models' speed of a plan that was calibrated with another; returns the plan if that changed it."""
        with self._lock:
            if (planned := self.planned) is None or planned.speed == speed:
                return None
            self._at = timed = replace(planned, speed=speed)
            return timed


def status(session: Session) -> StepStatus:
    """The status of step 2: open with a confirmed data set, done when a run is calibrated."""
    if session.of(DataState).confirmed is None:
        return StepStatus("Choose a data set in step 1 and confirm what becomes public: the noise depends on it.")
    return StepStatus(done=session.of(PrivacyState).planned is not None)
