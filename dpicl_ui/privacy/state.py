"""The state of step 2: calibrated settings, and the suggested prompt."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from dpicl_ui.data.state import Confirmed, DataState, Rows
from dpicl_ui.frame.sessions import Session, State
from dpicl_ui.frame.step_bar import Gate
from dpicl_ui.privacy.form import BY_TOKEN, PrivacyForm
from mechanisms.accounting import Claim
from mechanisms.data.record_schema import RECORD_TEMPLATE
from mechanisms.errors import UsageError
from mechanisms.records import PromptTemplate, default_template, open_template
from mechanisms.runs.defaults import RECIPE
from mechanisms.runs.forecast import ModelSpeed
from mechanisms.runs.preview import Preview, preview
from mechanisms.runs.recipe import Stage
from mechanisms.runs.recipe_forecast import seconds_by_part
from mechanisms.runs.recipe_request import RunRequest

# What step 2 remembers: the settings that were calibrated last.


@dataclass(frozen=True, repr=False)
class Wanted:
    """Settings for a data set, on their way to a preview."""

    confirmed: Confirmed
    form: PrivacyForm


@dataclass(frozen=True, repr=False)
class Planned:
    """A calibrated run: its data set, its settings, and its preview."""

    confirmed: Confirmed
    form: PrivacyForm
    preview: Preview[Any]
    speed: ModelSpeed | None = None

    @property
    def request(self) -> RunRequest:
        """The request of the run."""
        request: RunRequest = self.preview.request
        return request

    @property
    def claim(self) -> Claim:
        """The run's claim."""
        return self.preview.claim

    @property
    def charge(self) -> float:
        """The epsilon that the run adds to the ledger, which has been charged with a measurement before."""
        measured = self.confirmed.measured
        return self.claim.epsilon - (measured.epsilon if measured else 0.0)

    @property
    def parts(self) -> dict[Stage | None, float]:
        """Predicted seconds of the first drafts (None) and of each stage; empty while the model's speed is unknown."""
        if self.speed is None or self.preview.seconds is None:
            return {}
        return seconds_by_part(self.request, self.speed)

    def timed(self, speed: ModelSpeed | None) -> Planned:
        """The same run with the duration that a model's speed predicts; None without a model."""
        if speed == self.speed:
            return self
        return replace(self, preview=self.preview.timed(speed), speed=speed)


class PrivacyState(State):
    """The state belongs to a confirmed data set, and is empty for another one."""

    def __init__(self, session: Session) -> None:
        self._data = session.of(DataState)
        self._lock = threading.Lock()
        self._calibrating = threading.RLock()  # a run and the screen want the same settings: one of them calibrates
        self._plan: Wanted | Planned | None = None
        self.suggested = Rows.TEXTS, RECIPE
        """The rows and the recipe that settings were suggested for last."""
        self.words: int | None = None
        """How many words a text has, as the settings were suggested for last."""
        self.named: tuple[Hashable, ...] = ()
        """The data set, its rows and its fields' names in step 1 when step 2 was filled in last."""

    @property
    def planned(self) -> Planned | None:
        """The calibrated run; None while its settings are being calibrated, or where they were refused."""
        plan = self._plan
        return plan if isinstance(plan, Planned) and plan.confirmed is self._data.confirmed else None

    def calibrate(self, form: PrivacyForm, speed: ModelSpeed | None) -> Planned:
        """The run that the settings describe; it becomes `planned` unless later settings or other data overtook it.

        Raises:
            UsageError: no data set was confirmed.
            StudioError: the settings cannot be used; there is then no `planned`.
        """
        wanted = self._want(form)
        with self._calibrating:
            return self._made(wanted, speed)

    def look(self, form: PrivacyForm, speed: ModelSpeed | None) -> Planned | None:
        """Calibrate for the screen: as `calibrate`, but None where later settings or other data overtook these."""
        wanted = self._want(form)
        with self._calibrating:
            made = self._made(wanted, speed) if self._is(wanted) else None
        return made if self._is(wanted) else None

    def _is(self, wanted: Wanted) -> bool:
        """Whether the present plan is what was wanted, calibrated or not."""
        plan = self._plan
        return plan is not None and plan.confirmed is wanted.confirmed and plan.form == wanted.form

    def _want(self, form: PrivacyForm) -> Wanted:
        confirmed = self._data.confirmed
        if confirmed is None:
            raise UsageError("Choose a data set in step 1 and its privacy in step 2 first.")
        wanted = Wanted(confirmed, form)
        with self._lock:
            if not self._is(wanted):
                self._plan = wanted
        return wanted

    def _made(self, wanted: Wanted, speed: ModelSpeed | None) -> Planned:
        if (current := self.planned) is not None and self._is(wanted):
            return self.time(speed) or current
        made = Planned(wanted.confirmed, wanted.form, _previewed(wanted.form, wanted.confirmed, speed), speed)
        with self._lock:
            if self._is(wanted):
                self._plan = made
        return made

    def forget(self) -> None:
        """Drop the plan: the settings are unusable."""
        with self._lock:
            self._plan = None

    def time(self, speed: ModelSpeed | None) -> Planned | None:
        """Set the duration of a plan that was calibrated with another model or none; returns it if that changed it."""
        with self._lock:
            planned = self.planned
            if planned is None or (timed := planned.timed(speed)) is planned:
                return None
            self._plan = timed
            return timed


def _previewed(form: PrivacyForm, confirmed: Confirmed, speed: ModelSpeed | None) -> Preview[Any]:
    columns = confirmed.columns
    if form.recipe.in_stages and columns.rows in BY_TOKEN:
        raise UsageError(BY_TOKEN[columns.rows])
    schema = columns.records.schema if columns.records else None
    spec = replace(form.spec(confirmed.dataset, confirmed.measured, schema), text_words=columns.file.words)
    return preview(spec.request(confirmed.dataset), speed)


def gate(session: Session) -> Gate:
    """Open with a confirmed data set; done when a run is calibrated."""
    if session.of(DataState).confirmed is None:
        return Gate("Choose a data set in step 1 and confirm what becomes public: the noise depends on it.")
    return Gate(done=session.of(PrivacyState).planned is not None)


# The prompt that step 2 suggests: its fields are called as step 1 says, or as step 2 was changed to say since.


def suggested(
    confirmed: Confirmed, state: PrivacyState, text_name: str, label_name: str
) -> tuple[PromptTemplate, tuple[str, str]]:
    """The task's prompt, and the names of its fields.

    Args:
        state: holds the names that step 1 gave last.
        text_name, label_name: the present names in step 2.
    """
    own = usual(confirmed)
    names = own.text, own.output or own.label
    before, state.named = state.named, (confirmed.dataset.name, confirmed.columns.rows, names)
    if before != state.named or not (text_name.strip() and label_name.strip()):
        return own, names
    return usual(confirmed, (text_name.strip(), label_name.strip())), (text_name, label_name)


def usual(confirmed: Confirmed, names: tuple[str, str] | None = None) -> PromptTemplate:
    """A data set's initial prompt.

    Args:
        names: of the text, and of the label or answer; step 1's by default.
    """
    text, label = names or confirmed.columns.file.field_names
    match confirmed.columns.rows:
        case Rows.RECORDS:
            return RECORD_TEMPLATE
        case Rows.ANSWERED:
            return open_template(text, output=label)
        case Rows.ALONE:
            return default_template(confirmed.dataset.labels, text, open_template().label)
    return default_template(confirmed.dataset.labels, text, label)
