"""What the page "Budget" says: every run, the run that is planned, the caps, and the other data sets."""

from __future__ import annotations

from collections.abc import Sequence

from dpicl_ui.frame.tree import Tree, el, notice
from mechanisms.accounting import Account, BudgetSnapshot, Claim, Usage
from mechanisms.accounting.account import Line, in_words, lines, state
from mechanisms.records import unit_in_words
from mechanisms.rounding import rounded_down, rounded_up

SHOWN = 50
"""Runs on the page, the newest; the download has them all."""
EMPTY: list[Tree] = [el("p.muted", "Nothing has been spent yet: runs appear here before their first release.")]
NO_DATA: list[Tree] = [
    el("h3", "Privacy budget"),
    el("p.muted", "This ledger knows no data set yet: bring one in step 1."),
]
NO_CAP: list[Tree] = [el("p.muted", "A cap is fixed with a data set's first run, or before it in step 2.")]
UNPLANNED: list[Tree] = [
    el("p.muted", "Choose data in step 1 and settings in step 2: what that run would add appears here, uncharged.")
]
_UNCHARGED = el("p.muted", "Nothing is charged before it starts.")
_HEADS = ("When (UTC)", "Run", "Alone", "All runs then", "Left")
_BASIS = (
    "Alone is the run's own claim. All runs then is what the ledger counts of every run up to that one, under the cap "
    "of today. Under each figure stands how it was found. It is the sum of the claims (basic composition), or what the "
    "Renyi filter counts, where that is less or the sum does not hold under the cap. Both hold although runs were "
    "chosen in view of earlier ones."
)
_BOUNDS = {"basic composition": "the sum of the claims", "renyi filter": "by the Renyi filter, not the sum"}
SIDEWAYS = el("p.muted.sideways", "Move the table sideways for its other columns.")
_ONE_CAP = "Fixed before the first run, which is what makes it a promise."
_LATER = (
    "A cap promises something only if it was fixed before the first run: each later one is a new promise, and as good "
    "as its reason."
)


def _moment(time: str) -> str:
    return time[:16].replace("T", " ")


def runs(account: Account) -> list[Tree]:
    """Every run with its time, its event, its own cost, and what all runs had cost after it; the newest first."""
    every = lines(account)
    if not every:
        return EMPTY
    older = len(every) - SHOWN
    return [
        SIDEWAYS,
        el(
            "div.scroll",
            el(
                "table.preview.runs",
                el("thead", el("tr", *(el("th", head, scope="col") for head in _HEADS))),
                el("tbody", *(_row(line, account.snapshot.cap.epsilon) for line in every[:-SHOWN - 1:-1])),
            ),
        ),
        el("p.muted", _BASIS),
        *([el("p.muted", f"{older} older runs are in the download.")] if older > 0 else []),
    ]  # fmt: skip


def _row(line: Line, cap: float) -> Tree:
    run, after = line.run, line.after
    alone = rounded_up(run.epsilon, 3) if run.counted is not None else "0"
    delta = f"delta {rounded_up(run.delta, 3)}" if run.counted is not None else ""
    become = state(run)
    return el(
        "tr",
        el("td", _moment(run.started)),
        el(
            "td",
            el("strong", run.mechanism),
            el("details", el("summary", "What it releases"), el("p.remark", in_words(run.event))),
            None if become == "finished" else el("p.remark", become),
        ),
        el("td", alone, el("p.remark", delta)),
        el("td", rounded_up(after.epsilon, 3), el("p.remark", _bound(after))),
        el("td", rounded_down(max(0.0, cap - after.epsilon), 3)),
    )


def _bound(after: Usage) -> str:
    words = _BOUNDS.get(after.bound, after.bound)
    return words if after.allowed else f"{words}, delta {rounded_up(after.delta, 3)}: over the cap of today"


def what_if(name: str, claimed: Claim, before: BudgetSnapshot, after: Usage) -> list[Tree]:
    """What a planned run would add, and whether the cap allows it."""
    cap = before.cap
    words = (
        f"The run that is planned in step 2 on '{name}' costs epsilon {rounded_up(claimed.epsilon, 3)} alone, at "
        f"delta {rounded_up(claimed.delta, 3)}"
    )
    if after.allowed:
        left = max(0.0, cap.epsilon - after.epsilon)
        counted = f"{rounded_up(after.epsilon, 3)} instead of {rounded_up(before.epsilon, 3)}, by {after.bound}"
        remaining = f"{rounded_down(left, 3)} of {cap.epsilon:g} would be left"
        return [el("p", f"{words}. With it the ledger would count {counted}: {remaining}."), _UNCHARGED]
    return [
        el("p", f"{words}."),
        *notice(f"The cap (epsilon {cap.epsilon:g}, delta {cap.delta:g}) does not allow it: the run would be refused."),
    ]


def caps(account: Account) -> list[Tree]:
    """Every cap that a data set has had."""
    if not account.caps:
        cap = account.snapshot.cap
        return [el("p.muted", f"Epsilon {cap.epsilon:g}, delta {cap.delta:g}: the usual one, until the first run.")]
    started = next((run.started for run in account.runs if run.counted is not None), None)
    later = started is not None and any(since >= started for since, _ in account.caps[1:])
    listed = (
        el("li", f"{_moment(since) or 'at first'}: epsilon {cap.epsilon:g}, delta {cap.delta:g}")
        for since, cap in account.caps
    )
    words = _LATER if later else _ONE_CAP if started is not None else ""
    return [el("ul.caps", *listed), *([el("p.muted", words)] if words else [])]


def others(snapshots: Sequence[BudgetSnapshot]) -> list[Tree]:
    """The data sets of a ledger side by side; they do not add up, because they are different people's rows."""
    if len(snapshots) < 2:
        return []
    return [
        el("h3", "All data sets of this ledger"),
        SIDEWAYS,
        el(
            "div.scroll",
            el(
                "table.preview.sets",
                el("thead", el("tr", *(el("th", h, scope="col") for h in ("Data set", "Protects", "Runs", "Spent")))),
                el("tbody", *(_other(each) for each in snapshots)),
            ),
        ),
        el("p.muted", "Each has a budget of its own. Rows that stand in two of them have spent of both."),
    ]


def _other(snapshot: BudgetSnapshot) -> Tree:
    spent = f"{rounded_up(snapshot.epsilon, 3)} of {snapshot.cap.epsilon:g}"
    cells = (snapshot.name, unit_in_words(snapshot.unit), str(snapshot.runs))
    known = el("p.remark", f"known besides: {'; '.join(snapshot.disclosures)}") if snapshot.disclosures else None
    return el("tr", *(el("td", cell) for cell in cells), el("td", spent, known))
