"""The place "Budget": a ledger's data sets, run by run, and what the run of step 2 would add."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import gradio as gr

from dpicl_ui.budget.cards import EMPTY, NO_CAP, NO_DATA, UNPLANNED, caps, others, runs, what_if
from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.inputs import File, PrivateDropdown, download, sink
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.step_bar import Gate
from dpicl_ui.frame.tree import Tree, budget, el, notice, panel
from dpicl_ui.privacy.state import Planned, PrivacyState
from mechanisms.accounting import Account, BudgetSnapshot, PrivacyLedger, fingerprint
from mechanisms.accounting.account import as_csv
from mechanisms.errors import BudgetRefused, UsageError
from mechanisms.records import unit_in_words

_FILE = "ledger.csv"
_NO_RUN = "There is no run yet: nothing to download."


def gate(session: Session) -> Gate:
    """Always open: a ledger can be read without data."""
    return Gate()


class BudgetStep:
    """Components and handlers of "Budget"."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with app.bar.panel(6):
            with gr.Row(elem_classes="split"):
                with gr.Column(scale=6, min_width=300, elem_classes="card"):
                    self.chosen = PrivateDropdown(label="Data set", elem_id="budget-of", visible=False)
                    self.standing = panel(elem_id="budget-standing")
                with gr.Column(scale=5, min_width=300, elem_classes="card"):
                    panel(el("h3", "If the planned run is started"))
                    self.planned = panel(*UNPLANNED, elem_id="budget-planned")
            with gr.Column(elem_classes="card"):
                panel(el("h3", "Every run"))
                self.runs = panel(elem_id="budget-runs")
                with gr.Row(elem_classes="actions"):
                    self.csv = gr.Button("Download as CSV", size="sm", elem_id="budget-csv")
                self.notice = panel(elem_id="budget-notice")
                self.sink = sink()
                self.others = panel(elem_id="budget-others")
            with gr.Column(elem_classes="card"):
                panel(el("h3", "The cap over time"))
                self.caps = panel(elem_id="budget-caps")
        shown = [self.chosen, self.standing, self.planned, self.runs, self.others, self.caps, self.notice]
        app.bar.html.select(guarded(self.notice)(self._open), self.chosen, shown, **PRIVATE)
        self.chosen.input(guarded(self.notice)(self._look), self.chosen, shown, **PRIVATE)
        self.csv.click(guarded(self.notice)(self._save), self.chosen, [self.sink, self.notice], **PRIVATE)

    def _open(self, wanted: str | None, request: gr.Request) -> dict[Any, Any]:
        """The page as it opens: with the data set of step 1 where there is one."""
        confirmed = self._app.session(request).of(DataState).confirmed
        return self._look(_key((confirmed.dataset.name, confirmed.dataset.unit)) if confirmed else wanted, request)

    def _look(self, wanted: str | None, request: gr.Request) -> dict[Any, Any]:
        """Everything about a data set, as the ledger is now."""
        session, ledger = self._app.session(request), self._app.ledger(request)
        known = _known(session, ledger)
        if not known:
            return {self.standing: NO_DATA, self.runs: EMPTY, self.caps: NO_CAP}
        name, unit = _chosen(known, wanted)
        account, planned = ledger.account(name, unit), session.of(PrivacyState).planned
        here = planned if planned and _of(planned) == (name, unit) else None
        choices = [(f"{each} ({unit_in_words(its)})", _key((each, its))) for each, its in known]
        return {
            self.chosen: PrivateDropdown(choices=choices, value=_key((name, unit)), visible=len(known) > 1),
            self.standing: budget(_marked(session, ledger, account), here.charge if here else None),
            self.planned: _added(ledger, account, planned),
            self.runs: runs(account),
            self.others: others([ledger.snapshot(*each) for each in known]),
            self.caps: caps(account),
            self.notice: [],
        }

    def _save(self, wanted: str | None, request: gr.Request) -> dict[Any, Any]:
        """Every run of the chosen data set as a file.

        Raises:
            UsageError: it has none.
        """
        session, ledger = self._app.session(request), self._app.ledger(request)
        known = _known(session, ledger)
        account = ledger.account(*_chosen(known, wanted)) if known else None
        if account is None or not account.runs:
            raise UsageError(_NO_RUN)
        return {
            self.sink: download(session, File(_FILE, "text/csv", as_csv(account).encode())),
            self.notice: notice("Saved by your browser. Nothing is left on the server.", "good"),
        }


Names = list[tuple[str, str]]


def _known(session: Session, ledger: PrivacyLedger) -> Names:
    """The data sets of a ledger with their units, the one of step 1 first, whether it has spent or not."""
    confirmed = session.of(DataState).confirmed
    here = [(confirmed.dataset.name, confirmed.dataset.unit)] if confirmed else []
    return list(dict.fromkeys([*here, *ledger.names()]))


def _key(known: tuple[str, str]) -> str:
    return json.dumps(known)


def _chosen(known: Names, wanted: str | None) -> tuple[str, str]:
    """The data set that was asked for if this ledger knows it, else the first."""
    return {_key(each): each for each in known}.get(wanted or "", known[0])


def _of(planned: Planned) -> tuple[str, str]:
    dataset = planned.confirmed.dataset
    return dataset.name, dataset.unit


def _marked(session: Session, ledger: PrivacyLedger, account: Account) -> BudgetSnapshot:
    """An account's state; with what is known of the rows themselves where they are the ones of step 1."""
    confirmed, snapshot = session.of(DataState).confirmed, account.snapshot
    if confirmed is None or (confirmed.dataset.name, confirmed.dataset.unit) != (snapshot.name, snapshot.unit):
        return snapshot
    known = (*snapshot.disclosures, *ledger.rows.disclosures(fingerprint(confirmed.dataset)))
    return replace(snapshot, disclosures=tuple(dict.fromkeys(known)))


def _added(ledger: PrivacyLedger, account: Account, planned: Planned | None) -> list[Tree]:
    """What the planned run would add to a data set."""
    if planned is None:
        return UNPLANNED
    before, claimed = account.snapshot, planned.plan.release_claim()
    if _of(planned) != (before.name, before.unit):
        return [el("p.muted", f"The run of step 2 is planned on '{planned.confirmed.dataset.name}': choose it here.")]
    try:
        after = ledger.forecast(before.name, before.unit, planned.plan.event, claimed)
    except BudgetRefused as refusal:
        return notice(str(refusal), "warn")
    return what_if(before.name, claimed, before, after)
