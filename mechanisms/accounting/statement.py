"""A data set's account as a table and as a document: each run, what it cost alone, and what all had cost after it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from mechanisms.accounting.account import Account, RecordedRun
from mechanisms.accounting.event_words import in_words
from mechanisms.accounting.filter import Usage, usages
from mechanisms.records import unit_in_words
from mechanisms.spreadsheet import safe

FORMAT = "dpicl-ledger/1"
COLUMNS = (
    "started", "data_set", "unit", "run", "releases", "state", "epsilon", "delta", "joint_epsilon", "joint_delta",
    "joint_bound", "cap_epsilon", "cap_delta", "epsilon_left", "known_besides",
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A run and what the ledger counts of all runs up to it, under the cap of today."""

    run: RecordedRun
    after: Usage


def lines(account: Account) -> list[Line]:
    """The runs of an account, oldest first."""
    cap = account.snapshot.cap
    known = iter(usages(account.spends, cap))
    found, after = [], Usage(0.0, 0.0, "no run", True)
    for run in account.runs:
        after = next(known) if run.counted is not None else after
        found.append(Line(run, after))
    return found


def state(run: RecordedRun) -> str:
    """What became of a run, and so what it costs."""
    if run.counted is None:
        return "nothing was released: costs nothing"
    return "finished" if run.finished else "running or cut off: counts in full"


def as_csv(account: Account) -> str:
    """The account as a table with the columns `COLUMNS`; no cell is a formula to a spreadsheet, whatever its locale."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)
    writer.writerows(_cells(account))
    return out.getvalue()


def _cells(account: Account) -> Iterator[list[str]]:
    snapshot = account.snapshot
    for line in lines(account):
        run, after = line.run, line.after
        words = (run.started, snapshot.name, snapshot.unit, run.mechanism, in_words(run.event), state(run))
        left = max(0.0, snapshot.cap.epsilon - after.epsilon)
        cost = (run.epsilon, run.delta) if run.counted is not None else (0.0, 0.0)
        numbers = (*cost, after.epsilon, after.delta, snapshot.cap.epsilon, snapshot.cap.delta, left)
        shown = [repr(float(each)) for each in numbers]
        yield [*map(safe, words), *shown[:4], after.bound, *shown[4:], safe("; ".join(snapshot.marks))]


def as_document(account: Account) -> dict[str, Any]:
    """The account as JSON values, with every run's event and every cap that there was."""
    return {
        "format": FORMAT,
        "data_set": asdict(account.snapshot) | {"unit_in_words": unit_in_words(account.snapshot.unit)},
        "caps": [{"since": since, "epsilon": cap.epsilon, "delta": cap.delta} for since, cap in account.caps],
        "runs": [_run(line) for line in lines(account)],
    }


def _run(line: Line) -> dict[str, Any]:
    run = line.run
    return {
        "started": run.started,
        "mechanism": run.mechanism,
        "state": state(run),
        "planned": {"epsilon": run.epsilon, "delta": run.delta, "event": run.event.to_json()},
        "counts": run.counted is not None,
        "joint": {"epsilon": line.after.epsilon, "delta": line.after.delta, "bound": line.after.bound},
    }
