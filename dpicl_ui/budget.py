"""The budget panel at the side of every step: what a data set has spent, run by run."""

from __future__ import annotations

import json
from dataclasses import replace

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.files import SAVED, Download, download, sink
from dpicl_ui.frame.handlers import on
from dpicl_ui.frame.inputs import PrivateDropdown
from dpicl_ui.frame.services import Services, Session
from dpicl_ui.frame.tree import Tree, Updates, budget, el, notice, panel
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import Account, BudgetSnapshot, PrivacyLedger, Usage, fingerprint
from mechanisms.accounting.account import Line, as_csv, in_words, lines, state
from mechanisms.errors import UsageError
from mechanisms.records import Dataset, unit_in_words
from mechanisms.rounding import rounded_down, rounded_up

SHOWN = 50
"""The number of newest runs in the panel; the download has all runs."""
_EMPTY: list[Tree] = [el("p.muted", "Nothing has been spent yet: runs appear here before their first release.")]
_NO_DATA: list[Tree] = [
    el("h3", "Privacy budget"),
    el("p.muted", "This ledger knows no data set yet: bring one in step 1."),
]
_HEADS = ("Run (UTC)", "Alone", "All runs then", "Left")
_BASIS = (
    "“Alone” is the run's own claim. “All runs then” is what the ledger counts for all runs up to that one: the sum of "
    "the claims (basic composition) or the Renyi filter's bound, whichever is smaller among those that today's cap "
    "allows. The line under a figure names it. Both hold although runs were chosen in view of earlier ones."
)
_BOUNDS = {"basic composition": "the sum of the claims", "renyi filter": "by the Renyi filter, not the sum"}
_FILE = "ledger.csv"
_NO_RUN = "There is no run yet: nothing to download."


def runs(account: Account) -> list[Tree]:
    """Every run with its time, its event, its own cost, and the total cost after it; the newest run first."""
    every = lines(account)
    if not every:
        return _EMPTY
    older = len(every) - SHOWN
    rows = (_row(line, account.snapshot.cap.epsilon) for line in every[: -SHOWN - 1 : -1])
    head = el("thead", el("tr", *(el("th", head, scope="col") for head in _HEADS)))
    return [
        el("div.scroll", el("table.preview.runs", head, el("tbody", *rows))),
        *([el("p.muted", f"{older} older runs are in the download.")] if older > 0 else []),
        el("details", el("summary", "How these figures are found"), el("p.muted", _BASIS)),
    ]


def _row(line: Line, cap: float) -> Tree:
    run, after = line.run, line.after
    counted, become = run.counted is not None, state(run)
    return el(
        "tr",
        el(
            "td",
            el("strong", run.mechanism),
            el("p.remark", run.started[:16].replace("T", " ")),
            None if become == "finished" else el("p.remark", become),
            el("details", el("summary", "What it releases"), el("p.remark", in_words(run.event))),
        ),
        el(
            "td",
            rounded_up(run.epsilon, 3) if counted else "0",
            el("p.remark", f"delta {rounded_up(run.delta, 3)}") if counted else None,
        ),
        el("td", rounded_up(after.epsilon, 3), el("p.remark", _bound(after))),
        el("td", rounded_down(max(0.0, cap - after.epsilon), 3)),
    )


def _bound(after: Usage) -> str:
    words = _BOUNDS.get(after.bound, after.bound)
    return words if after.allowed else f"{words}, delta {rounded_up(after.delta, 3)}: over the cap of today"


class BudgetPanel:
    """The budget panel: its components and handlers."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with app.bar.panel(6), gr.Column(elem_classes="card"):
            self.chosen = PrivateDropdown(label="Data set", elem_id="budget-of", visible=False)
            self.standing = panel(elem_id="budget-standing")
            self.runs = panel(elem_id="budget-runs")
            with gr.Row(elem_classes="actions"):
                self.csv = gr.Button("Download as CSV", size="sm", elem_id="budget-csv")
            self.notice = panel(elem_id="budget-notice")
            self.sink = sink()
        self._shown = [self.chosen, self.standing, self.runs, self.notice]
        on(app.bar.html.select, self._open, self.chosen, self._shown, self.notice)
        on(self.chosen.input, self._look, self.chosen, self._shown, self.notice)
        on(self.csv.click, self._save, self.chosen, [self.sink, self.notice], self.notice)

    def follow(self, spent: gr.events.Dependency) -> None:
        on(spent.then, self._open, self.chosen, self._shown, self.notice)

    def _open(self, name: str | None, request: gr.Request) -> Updates:
        """Open the panel, on the data set of step 1 if there is one."""
        confirmed = self._app.session(request).of(DataState).confirmed
        return self._look(_key(_of(confirmed.dataset)) if confirmed else name, request)

    def _look(self, name: str | None, request: gr.Request) -> Updates:
        session, ledger = self._app.session(request), self._app.ledger(request)
        known = _known(session, ledger)
        if not known:
            return {self.standing: _NO_DATA, self.runs: _EMPTY}
        name, unit = _chosen(known, name)
        account, planned = ledger.account(name, unit), session.of(PrivacyState).planned
        here = planned if planned and _of(planned.confirmed.dataset) == (name, unit) else None
        choices = [(f"{each} ({unit_in_words(its)})", _key((each, its))) for each, its in known]
        return {
            self.chosen: PrivateDropdown(choices=choices, value=_key((name, unit)), visible=len(known) > 1),
            self.standing: budget(_marked(session, ledger, account), here.charge if here else None),
            self.runs: runs(account),
            self.notice: [],
        }

    def _save(self, name: str | None, request: gr.Request) -> Updates:
        session, ledger = self._app.session(request), self._app.ledger(request)
        known = _known(session, ledger)
        account = ledger.account(*_chosen(known, name)) if known else None
        if account is None or not account.runs:
            raise UsageError(_NO_RUN)
        return {
            self.sink: download(Download(_FILE, "text/csv", as_csv(account).encode())),
            self.notice: notice(SAVED, "good"),
        }


_Name = tuple[str, str]
"""A data set's name and its unit."""


def _of(dataset: Dataset) -> _Name:
    return dataset.name, dataset.unit


def _known(session: Session, ledger: PrivacyLedger) -> list[_Name]:
    """The data sets of a ledger with their units; that of step 1 comes first, even if it has spent nothing."""
    confirmed = session.of(DataState).confirmed
    here = [_of(confirmed.dataset)] if confirmed else []
    return list(dict.fromkeys([*here, *ledger.names()]))


def _key(known: _Name) -> str:
    return json.dumps(known)


def _chosen(known: list[_Name], name: str | None) -> _Name:
    """The data set of this name if the ledger knows it, otherwise the first."""
    return {_key(each): each for each in known}.get(name or "", known[0])


def _marked(session: Session, ledger: PrivacyLedger, account: Account) -> BudgetSnapshot:
    """An account's snapshot; for the data set of step 1, with what the ledger knows about its rows."""
    confirmed, snapshot = session.of(DataState).confirmed, account.snapshot
    if confirmed is None or _of(confirmed.dataset) != (snapshot.name, snapshot.unit):
        return snapshot
    known = (*snapshot.disclosures, *ledger.rows.disclosures(fingerprint(confirmed.dataset)))
    return replace(snapshot, disclosures=tuple(dict.fromkeys(known)))
