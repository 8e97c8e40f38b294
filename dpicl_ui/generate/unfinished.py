"""Runs that have not ended: their journals, and the offer to resume or to discard one.

The journals are in a folder beside the owner's ledger, one file for each data set. A file holds the run's releases and
nothing else (`mechanisms/runs/journal.py`). Its name has keyed digests and the run's key in the ledger, so that the
ledger can forget a run even if its file is damaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.handlers import PRIVATE, on
from dpicl_ui.frame.services import Services, Session
from dpicl_ui.frame.tree import Tree, Updates, el, notice, panel
from dpicl_ui.generate.replay import replayed
from mechanisms.accounting import Fingerprint, PrivacyLedger, fingerprint, new_key
from mechanisms.errors import StudioError, UsageError
from mechanisms.files import keyed_digest
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.spec import WRITE
from mechanisms.runs.stages import stages_in_order

_FOLDER = "journals"


class UnfinishedRuns:
    """The runs of one ledger that have not ended, by their journals."""

    def __init__(self, ledger: PrivacyLedger) -> None:
        self._ledger, self._folder = ledger, ledger.folder / _FOLDER

    def begin(self, data: Fingerprint) -> RunJournal:
        """The journal of a new run; an older run's journal stays until `replace`.

        Raises:
            UsageError: the folder cannot be made.
        """
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise UsageError(f"The folder '{self._folder}' cannot be used: check its permissions.") from error
        key = new_key()
        return RunJournal.new(self._folder / f"{_whose(data)}-{_what(data)}-{key}.jsonl", key)

    def replace(self, data: Fingerprint, journal: RunJournal) -> None:
        """Remove the journals of other runs on data of this name; they can no longer be resumed."""
        for path in self._folder.glob(f"{_whose(data)}-*"):
            if path != journal.path:
                self.remove(path)

    def read(self, data: Fingerprint) -> RunJournal:
        """The journal of the run on these data that has not ended.

        Raises:
            UsageError: there is none, or it cannot be read.
        """
        path = next(self.of(data), None)
        if path is None:
            raise UsageError("There is no interrupted run on these data to resume: it has ended or was discarded.")
        return RunJournal.read(path, self._ledger)

    def discard(self, data: Fingerprint) -> None:
        for path in self.of(data):
            self.remove(path)

    def remove(self, path: Path) -> None:
        """Remove a journal, and the ledger's lines for its run.

        Raises:
            UsageError: the folder cannot be written.
            StudioError: the ledger cannot be used; the journal stays.
        """
        self._ledger.forget(_key(path))
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"Cannot remove '{path}': check the permissions of its folder.") from error

    def of(self, data: Fingerprint) -> Iterator[Path]:
        """The journals of unfinished runs on exactly these data."""
        return self._folder.glob(f"{_whose(data)}-{_what(data)}-*")

    def all(self) -> dict[str, str]:
        """The names of the data sets of all unfinished runs, by the runs' keys in the ledger."""
        found = {key: self._ledger.name_of(key) for key in map(_key, sorted(self._folder.glob("*.jsonl")))}
        return {key: name for key, name in found.items() if name}


def _key(journal: Path) -> str:
    return journal.stem.rpartition("-")[2]


def _whose(data: Fingerprint) -> str:
    return keyed_digest(("journal of", data.name, data.unit))[:32]


def _what(data: Fingerprint) -> str:
    return keyed_digest(("journal on", data.content))[:32]


_WHAT_IT_COSTS = (
    "Its releases are kept and already paid for. If you resume it, it costs no more than planned. Discard and Generate "
    "both remove it for good, and what it cost stays spent."
)
_AT_WORK = "A run on these data is still running in another tab, or in one that was closed a moment ago."
_LEFT = "The run was discarded and cannot be resumed any more. Its charge stays spent."


_LEFT_RUN = (
    "{} Its charge stays spent. To resume it, choose its file or example again, under the same name: step 3 then "
    "offers to resume it for no more than was planned."
)
_STOPPING = "A run on '{}' is running in another tab, or is being stopped because its page was closed or reloaded."
_CUT_OFF = "A run on '{}' was cut off."


class CutOffCard:
    """The card of an interrupted run, with all its handlers except the one that resumes the run (`GenerateStep`).

    Args:
        at_work: the ledger's keys of the runs that are running now.
    """

    def __init__(self, app: Services, at_work: Set[str]) -> None:
        self._app, self._at_work = app, at_work
        with gr.Column(elem_classes="card", elem_id="cut-off", visible=False) as self.body:
            self.words = panel(elem_id="cut-off-words")
            with gr.Row(elem_classes="actions"):
                self.go_on = gr.Button("Resume", variant="primary", elem_id="go-on")
                self.discard = gr.Button("Discard", elem_id="leave-run")
        self.outputs = [self.body, self.words, self.go_on, self.discard]

    def wire(self, where: gr.HTML) -> None:
        self._where = where
        on(self.discard.click, self._discard, None, [*self.outputs, where], where)

    def _discard(self, request: gr.Request) -> Updates:
        self._needed_runs(request).discard(_data(self._app.session(request)))
        return self.shown(request) | {self._where: notice(_LEFT, "info")}

    def follow(self, *events: gr.events.Dependency) -> None:
        for each in events:
            each.then(self.shown, None, self.outputs, **PRIVATE)

    def announce(self, where: gr.HTML, loaded: Any, *events: gr.events.Dependency) -> None:
        """When a page is loaded, show which runs were interrupted, until their data are confirmed."""
        for each in (loaded, *(each.then for each in events)):
            each(self.notices_elsewhere, None, where, **PRIVATE)

    def notices_elsewhere(self, request: gr.Request) -> list[Tree]:
        """Notices of the unfinished runs on other data; the card shows those on the confirmed data."""
        session, unfinished = self._app.session(request), self.unfinished(request)
        if unfinished is None:
            return []
        on_card = {*map(_key, unfinished.of(_data(session)))} if session.of(DataState).confirmed else set()
        told: list[Tree] = []
        for key, name in unfinished.all().items():
            if key not in on_card:
                front = _STOPPING if key in self._at_work else _CUT_OFF
                told += notice(_LEFT_RUN.format(front.format(name)), "info")
        return told

    def journal(self, request: gr.Request) -> RunJournal:
        """The interrupted run's journal.

        Raises:
            UsageError: there is no interrupted run, or its journal cannot be read.
        """
        return self._needed_runs(request).read(_data(self._app.session(request)))

    def unfinished(self, request: gr.Request) -> UnfinishedRuns | None:
        """The unfinished runs of a tab's ledger; None if the ledger ends with the tab."""
        return UnfinishedRuns(self._app.ledger(request)) if self._app.ledgers.lasting else None

    def _needed_runs(self, request: gr.Request) -> UnfinishedRuns:
        if (unfinished := self.unfinished(request)) is None:
            raise UsageError("This server stores nothing after a page is closed, so no run can be resumed.")
        return unfinished

    def hidden(self) -> Updates:
        return {self.body: gr.Column(visible=False)}

    def shown(self, request: gr.Request) -> Updates:
        session, unfinished = self._app.session(request), self.unfinished(request)
        if (
            unfinished is None
            or session.of(DataState).confirmed is None
            or not any(unfinished.of(data := _data(session)))
        ):
            return self.hidden()
        try:
            journal = unfinished.read(data)
            at_work, readable = journal.key in self._at_work, True
            words = [el("p", _AT_WORK if at_work else in_words(journal))]
        except StudioError as error:
            at_work, readable, words = False, False, notice(str(error), "warn")
        return {
            self.body: gr.Column(visible=True),
            self.words: words,
            self.go_on: gr.Button(visible=readable),
            self.discard: gr.Button(visible=not at_work),
        }


def in_words(journal: RunJournal) -> str:
    assert journal.started is not None
    view = replayed([journal.started, *(journal.replayed or ())])
    if view.stage == WRITE:
        whole, planned = len(view.completed), view.plan.sampling.written * len(view.plan.labels) if view.plan else 0
        far = f"{whole} of {planned} demonstrations {'was' if whole == 1 else 'were'} complete."
    elif view.stage:
        far = f"It had reached {stages_in_order()[view.stage].noun}."
    else:
        far = "It had only begun."
    return f"A run on these data was cut off. {far} {_WHAT_IT_COSTS}"


def _data(session: Session) -> Fingerprint:
    return fingerprint(session.of(DataState).needed.dataset)
