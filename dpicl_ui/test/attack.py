"""The part of step 4 that attacks the set: who was in the data? Exact figures of private rows, on the screen alone."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.cards import progress
from dpicl_ui.frame.guard import MODEL, PRIVATE, guarded
from dpicl_ui.frame.ledgers import Ledgers
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.plot_style import chart
from dpicl_ui.frame.sessions import Session, Sessions
from dpicl_ui.frame.tree import el, panel
from dpicl_ui.generate.state import GenerateState
from dpicl_ui.test.attack_card import DRAWN, about, findings, on_trust
from dpicl_ui.test.attack_figure import roc_figure
from dpicl_ui.test.attack_state import AttackState
from dpicl_ui.test.measure import FileMeasurement
from dpicl_ui.test.state import NOTHING, TestState
from mechanisms.accounting import Claim, PrivacyLedger, fingerprint
from mechanisms.audit.mechanism import AuditProgress
from mechanisms.audit.membership import RELEASED, ROWS, Effort, Membership, membership
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.sizes import mark_attacked
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.inference import LanguageModel
from mechanisms.records import Dataset
from mechanisms.runs.score import of_demo_set, with_choice

_ROWS = 48
"""Rows of the data, over all labels, that are asked about; as many others, and as many as a planted leak."""
_REFERENCES = 2
_INTERVAL = 0.3
"""Least seconds between two updates of the progress bar."""
_TICK = "Show me exact figures of my private rows. They are for me alone, and every later certificate says so"
_UNTICKED = (
    "What an attack finds has no noise: it is a clean value of private rows. Tick the box if you want to see it; from "
    "then on every export from these rows says that it was shown."
)
_NO_DATA = "Confirm the data set in step 1 first: the attack asks which of its rows were used."
_NO_FILE = "Upload a labelled test file above first: its rows stand for those that took no part."
_OTHER_DATA = "This set was not written from the data set of step 1 as it is now: confirm that one again."
_OF_LABELS = (
    "The attack asks about texts with labels: it cannot be tried on records of a schema, nor on texts with answers or "
    "alone."
)
_NOT_BEGUN = "Stopped. No row was read, and nothing was marked."
_STOPPED = "Stopped. Nothing was shown; the mark on these rows stays."
_EMPTY = "This set holds no demonstrations: there is nothing to attack."
_REPLACED = "Another set is under test now: the attack was stopped. The mark on its rows stays."


@dataclass(frozen=True, eq=False, repr=False)
class _Target:
    """What is attacked; private, but for the set."""

    demo_set: DemoSet
    private: Dataset
    held_out: Dataset
    loaded: bool
    stop: threading.Event

    @property
    def claimed(self) -> Claim | None:
        """What the set promises."""
        certificate = self.demo_set.certificate
        return certificate.claim if certificate.private and math.isfinite(certificate.claim.epsilon) else None


class AttackOffer:
    """Components and handlers; made inside the card that shows them, after the measurement with the test file."""

    def __init__(self, sessions: Sessions, ledgers: Ledgers, loader: ModelLoader, measurement: FileMeasurement) -> None:
        self._sessions, self._ledgers, self._loader = sessions, ledgers, loader
        panel(*about())
        self.agreed = gr.Checkbox(label=_TICK, elem_id="attack-agreed")
        self.notice = panel(elem_id="attack-notice")
        with gr.Row(elem_classes="actions"):
            self.start = gr.Button("Attack", variant="primary", elem_id="attack-start")
            self.stop = gr.Button("Stop", variant="stop", interactive=False, elem_id="attack-stop")
        self.progress = panel(elem_id="attack-progress")
        self.result = panel(elem_id="attack-result")
        self.plot = chart("attack-roc")
        self.stop.click(self._stop, None, self.stop, queue=False, **PRIVATE)
        self.ended = self.start.click(
            guarded(self.notice, self._idle)(self._attack),
            [measurement.text, measurement.label, self.agreed],
            [self.notice, self.progress, self.result, self.plot, self.start, self.stop],
            **MODEL,
            **PRIVATE,
        )

    def emptied(self) -> dict[Any, Any]:
        """No figures: another set is under test."""
        return {self.result: [], self.plot: None}

    def _attack(self, text: str, label: str, agreed: bool, request: gr.Request) -> Iterator[dict[Any, Any]]:
        """Mark the rows in the ledger, then let the attack read them; a tab that is closed stops it."""
        session = self._sessions.of(request)
        target = _target(session, text, label)
        if not agreed:
            raise UsageError(_UNTICKED)
        yield {
            **self.emptied(),
            self.notice: [],
            self.progress: [el("p.spinner", "Waiting for the model …", role="status")],
            self.start: gr.Button(interactive=False),
            self.stop: gr.Button("Stop", interactive=True),
        }
        model = self._loader.model()
        if target.stop.is_set():
            raise UsageError(_NOT_BEGUN)
        yield from self._attacked(session, target, model, self._ledgers.of(request))

    def _attacked(
        self, session: Session, target: _Target, model: LanguageModel, ledger: PrivacyLedger
    ) -> Iterator[dict[Any, Any]]:
        task = with_choice(of_demo_set(target.demo_set))  # refused, if it is, before a row is marked
        mark_attacked(fingerprint(target.private), ledger, fingerprint(target.held_out))
        yield {self.progress: progress(0, 1, "Attacking real rows …")}
        found, shown = dict[str, Membership](), 0.0
        with closing(membership(model, task, target.private, target.held_out, effort(len(task.labels)))) as told:
            for each in told:
                if target.stop.is_set():
                    raise UsageError(_STOPPED)
                if session.of(TestState).tested is not target.demo_set:
                    raise UsageError(_REPLACED)
                match each:
                    case AuditProgress(done, total):
                        if time.monotonic() - shown > _INTERVAL:
                            shown, whom = time.monotonic(), "the demonstrations" if ROWS in found else "real rows"
                            yield {self.progress: progress(done, total, f"Attacking {whom}: {done / total:.0%}")}
                    case Membership():
                        found[each.shown] = each
        own, planted = found[RELEASED].attacks, found[ROWS].attacks
        said = findings(own, planted, target.claimed, target.demo_set.certificate.unit)
        yield {
            self.result: [*(on_trust() if target.loaded else []), *said],
            self.plot: roc_figure(own[DRAWN], planted[DRAWN], target.claimed),
        }

    def _idle(self) -> dict[Any, Any]:
        return {
            self.progress: [],
            self.start: gr.Button(interactive=True),
            self.stop: gr.Button("Stop", interactive=False),
        }

    def _stop(self, request: gr.Request) -> Any:
        self._sessions.of(request).of(AttackState).stop()
        return gr.Button("Stopping …", interactive=False)


def effort(labels: int) -> Effort:
    """How much is tried on so many labels: about as many rows, whatever they are called."""
    each = max(1, _ROWS // labels)
    return Effort(rows=each, prompts=each, references=_REFERENCES)


def _target(session: Session, text: str, label: str) -> _Target:
    """What there is to attack now.

    Raises:
        UsageError: something is missing; it says what.
    """
    test, confirmed = session.of(TestState), session.of(DataState).confirmed
    demo_set, made = test.tested, session.of(GenerateState).made
    if demo_set is None:
        raise UsageError(NOTHING)
    if not demo_set.demonstrations:
        raise UsageError(_EMPTY)
    if confirmed is None:
        raise UsageError(_NO_DATA)
    unlabelled = demo_set.schema is not None or demo_set.in_text
    if unlabelled or confirmed.columns.kind is not None:
        raise UsageError(_OF_LABELS)
    if test.table is None:
        raise UsageError(_NO_FILE)
    here = made is not None and made.demo_set is demo_set
    if here and made is not None and made.of.content != fingerprint(confirmed.dataset).content:
        raise UsageError(_OTHER_DATA)
    mapping = ColumnMapping(text, label, label_names=session.of(DataState).names_for(demo_set.labels))
    held_out = to_dataset(test.table, mapping, "test file", ())
    return _Target(demo_set, confirmed.dataset, held_out, not here, session.of(AttackState).begin())
