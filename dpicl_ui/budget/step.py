"""The place "Budget": a ledger's data sets, run by run, and what the run of step 2 would add."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gradio as gr
import numpy as np

from dpicl_ui.budget.cards import (
    CURVE,
    EMPTY,
    NO_CAP,
    NO_DATA,
    UNPLANNED,
    UNSPENT,
    budget_figure,
    caps,
    composed,
    others,
    runs,
    what_if,
)
from dpicl_ui.budget.compare import Comparison
from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.inputs import File, PrivateDropdown, download, sink
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.step_bar import Gate
from dpicl_ui.frame.theme import chart
from dpicl_ui.frame.tree import Tree, budget, el, notice, panel, spinner
from dpicl_ui.privacy.state import Planned, PrivacyState
from mechanisms.accounting import Account, BudgetSnapshot, Cap, Claim, PrivacyLedger, claim, fingerprint
from mechanisms.accounting.account import as_csv, as_document
from mechanisms.accounting.filter import Spend, Usage, joint, least_caps
from mechanisms.errors import AccountingError, BudgetRefused, UsageError
from mechanisms.records import unit_in_words

_NAME = "ledger"
_DECADES = 4
"""The curves reach so many powers of ten below the cap's delta, and one above it."""
_POINTS = 201
_NO_RUN = "There is no run yet: nothing to download or to compose."


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
                self.others = panel(elem_id="budget-others")
            with gr.Row(elem_classes="split"):
                with gr.Column(scale=6, min_width=300, elem_classes="card"):
                    self._build_curve()
                with gr.Column(scale=5, min_width=300, elem_classes="card"):
                    self._build_files()
            self.comparison = Comparison(app)
        self._wire()

    def _build_curve(self) -> None:
        panel(el("h3", "All runs together"))
        self.curve = panel(*UNSPENT, elem_id="budget-curve-words")
        self.plot = chart("budget-curve")
        self.compare = gr.Button(
            "Compose them with both accountants", size="sm", visible=False, elem_id="budget-compose"
        )
        self.compared = panel(elem_id="budget-composed")

    def _build_files(self) -> None:
        panel(el("h3", "The cap over time"))
        self.caps = panel(elem_id="budget-caps")
        panel(el("h3", "Download"), el("p.muted", "Every run of this data set with its event; no row and no text."))
        with gr.Row():
            self.csv = gr.Button("CSV", size="sm", elem_id="budget-csv")
            self.json = gr.Button("JSON", size="sm", elem_id="budget-json")
        self.notice = panel(elem_id="budget-notice")
        self.sink = sink()

    def _wire(self) -> None:
        composing = self.compare.click(
            guarded(self.compared)(self._compose),
            self.chosen,
            [self.plot, self.compared],
            concurrency_limit=1,
            concurrency_id="compose",
            **PRIVATE,
        )
        shown = [
            self.chosen, self.standing, self.planned, self.runs, self.others, self.plot, self.compared, self.caps,
            self.notice, self.curve, self.compare,
        ]  # fmt: skip
        looked: dict[str, Any] = {"inputs": self.chosen, "outputs": shown, "cancels": [composing], **PRIVATE}
        self._app.bar.html.select(guarded(self.notice)(self._open), **looked)
        self.chosen.input(guarded(self.notice)(self._look), **looked)
        for button, save in ((self.csv, self._save_csv), (self.json, self._save_json)):
            button.click(guarded(self.notice)(save), self.chosen, [self.sink, self.notice], **PRIVATE)

    def _open(self, wanted: str | None, request: gr.Request) -> dict[Any, Any]:
        """The page as it opens: with the data set of step 1 where there is one."""
        confirmed = self._app.session(request).of(DataState).confirmed
        return self._look(_key((confirmed.dataset.name, confirmed.dataset.unit)) if confirmed else wanted, request)

    def _look(self, wanted: str | None, request: gr.Request) -> dict[Any, Any]:
        """Everything about a data set, as the ledger is now."""
        session, ledger = self._app.session(request), self._app.ledger(request)
        known = _known(session, ledger)
        if not known:
            return {
                self.standing: NO_DATA,
                self.runs: EMPTY,
                self.caps: NO_CAP,
                self.curve: UNSPENT,
                self.plot: None,
                self.compare: gr.Button(visible=False),
            }
        name, unit = _chosen(known, wanted)
        account, planned = ledger.account(name, unit), _planned(session, name, unit)
        counted, more = _counted(account), _more(ledger, account, planned)
        drawn = bool(account.spends or planned)
        return {
            self.chosen: PrivateDropdown(
                choices=[(_title(each), _key(each)) for each in known], value=_key((name, unit)), visible=len(known) > 1
            ),
            self.standing: budget(_marked(session, ledger, account), planned.charge if planned else None),
            self.planned: _added(session, ledger, account, planned),
            self.runs: runs(account),
            self.others: others([ledger.snapshot(*each) for each in known]),
            self.curve: CURVE if drawn else UNSPENT,
            self.plot: budget_figure(account.snapshot.cap, counted, more) if drawn else None,
            self.compare: gr.Button(visible=drawn),
            self.compared: [],
            self.caps: caps(account),
            self.notice: [],
        }

    def _account(self, wanted: str | None, request: gr.Request) -> Account:
        """The account of the data set that is chosen.

        Raises:
            UsageError: it has no run.
        """
        session, ledger = self._app.session(request), self._app.ledger(request)
        known = _known(session, ledger)
        account = ledger.account(*_chosen(known, wanted)) if known else None
        if account is None or not account.runs:
            raise UsageError(_NO_RUN)
        return account

    def _compose(self, wanted: str | None, request: gr.Request) -> Iterator[dict[Any, Any]]:
        """Add what both accountants find, from the cap's delta downwards."""
        account, session = self._account(wanted, request), self._app.session(request)
        snapshot, planned = account.snapshot, _planned(session, account.snapshot.name, account.snapshot.unit)
        counted, more = _counted(account), _more(self._app.ledger(request), account, planned)
        yield {self.compared: spinner("Composing all runs with two accountants …")}
        found, problem = list[Claim](), ""
        for decade in range(_DECADES + 1):
            try:
                found.append(claim(joint(account.spends), snapshot.cap.delta / 10**decade))
            except AccountingError as error:
                problem = str(error)
                break
            yield {
                self.plot: budget_figure(snapshot.cap, counted, more, found),
                self.compared: composed(found, snapshot),
            }
        yield {self.compared: composed(found, snapshot, problem)}

    def _save_csv(self, wanted: str | None, request: gr.Request) -> dict[Any, Any]:
        return self._saved(File(f"{_NAME}.csv", "text/csv", as_csv(self._account(wanted, request)).encode()), request)

    def _save_json(self, wanted: str | None, request: gr.Request) -> dict[Any, Any]:
        document = as_document(self._account(wanted, request))
        text = json.dumps(document, ensure_ascii=False, indent=2)
        return self._saved(File(f"{_NAME}.json", "application/json", text.encode()), request)

    def _saved(self, file: File, request: gr.Request) -> dict[Any, Any]:
        return {
            self.sink: download(self._app.session(request), file),
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


def _title(known: tuple[str, str]) -> str:
    name, unit = known
    return f"{name} ({unit_in_words(unit)})"


def _chosen(known: Names, wanted: str | None) -> tuple[str, str]:
    """The data set that was asked for if this ledger knows it, else the first."""
    return {_key(each): each for each in known}.get(wanted or "", known[0])


def _planned(session: Session, name: str, unit: str) -> Planned | None:
    """The run of step 2, if it is on this data set."""
    planned = session.of(PrivacyState).planned
    if planned is None or (planned.confirmed.dataset.name, planned.confirmed.dataset.unit) != (name, unit):
        return None
    return planned


def _marked(session: Session, ledger: PrivacyLedger, account: Account) -> BudgetSnapshot:
    """An account's state; with what is known of the rows themselves where they are the ones of step 1."""
    confirmed, snapshot = session.of(DataState).confirmed, account.snapshot
    if confirmed is None or (confirmed.dataset.name, confirmed.dataset.unit) != (snapshot.name, snapshot.unit):
        return snapshot
    known = (*snapshot.disclosures, *ledger.rows.disclosures(fingerprint(confirmed.dataset)))
    return replace(snapshot, disclosures=tuple(dict.fromkeys(known)))


def _counted(account: Account, planned: Planned | None = None) -> list[Cap]:
    """What the ledger counts at each delta around the cap's: of all runs, and of the planned one if it is given."""
    delta = account.snapshot.cap.delta
    deltas = [float(each) for each in delta * np.logspace(1, -_DECADES, _POINTS) if each < 1]
    more = [] if planned is None else [_spend(planned)]
    return least_caps([*account.spends, *more], deltas)


def _more(ledger: PrivacyLedger, account: Account, planned: Planned | None) -> list[Cap]:
    """The same with the planned run, where the ledger could count it at all."""
    if planned is None:
        return []
    try:
        _forecast(ledger, account, planned)
    except BudgetRefused:
        return []
    return _counted(account, planned)


def _forecast(ledger: PrivacyLedger, account: Account, planned: Planned) -> Usage:
    before, request = account.snapshot, planned.request
    return ledger.forecast(before.name, before.unit, request.event, request.release_claim())


def _spend(planned: Planned) -> Spend:
    claimed = planned.request.release_claim()
    return Spend(claimed.epsilon, claimed.delta, dict(planned.request.event))


def _added(session: Session, ledger: PrivacyLedger, account: Account, planned: Planned | None) -> list[Tree]:
    """What the planned run would add to a data set."""
    if planned is None:
        other = session.of(PrivacyState).planned
        if other is None:
            return UNPLANNED
        return [el("p.muted", f"The run of step 2 is planned on '{other.confirmed.dataset.name}': choose it here.")]
    before, claimed = account.snapshot, planned.request.release_claim()
    try:
        after = _forecast(ledger, account, planned)
    except BudgetRefused as refusal:
        return notice(str(refusal), "warn")
    return what_if(before.name, claimed, before, after)
