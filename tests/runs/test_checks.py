"""What is found before a run: each check by itself, and a list that goes on after a refusal."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from mechanisms.accounting import PrivacyLedger
from mechanisms.accounting.filter import Cap
from mechanisms.errors import BudgetRefused, SeveralErrors, UsageError
from mechanisms.records import RECORD, Dataset, Record
from mechanisms.runs import checks
from mechanisms.runs.checks import Finding, Findings, Level
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.work import Speed

DATASET = Dataset("d", ("a", "b"), tuple(Record(f"text {i}", label) for label in "ab" for i in range(30)))


def plan(dataset: Dataset = DATASET, **settings: object) -> Plan:
    asked = {"recipe": "vote", "shares": {"vote": 1.0}, "sizes": "counted"} | settings
    return plan_for(RunSpec.of(**asked), dataset)


def refused(*lines: str) -> object:
    raise SeveralErrors(lines) if len(lines) > 1 else UsageError(lines[0])


def test_a_list_goes_on_after_a_refusal_and_has_each_line_once_the_worst_first():
    found = Findings()
    found.add([Finding("time", Level.NOTE, "a minute"), checks.warned("noise", "much")])
    assert found.attempt("file", lambda: refused("one", "two")) is None
    assert found.attempt("file", lambda: refused("one")) is None
    assert found.attempt("file", lambda: 3) == 3
    lines = ["error: file: one", "error: file: two", "warning: noise: much", "note: time: a minute"]
    assert [each.line for each in found] == lines
    assert found.errors == 2


def test_a_defect_is_no_finding():
    with pytest.raises(ZeroDivisionError):
        Findings().attempt("file", lambda: 1 / 0)


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ({"a": 30, "b": 30}, ""),
        ({"a": 50, "b": 30}, ""),
        ({"a": 61, "b": 30}, "The file has fewer than half of the 61 rows"),
        ({"a": 30, "b": 9}, ""),
    ],
)
def test_far_fewer_rows_than_declared_are_told(sizes, told):
    found = "".join(each.message for each in checks.row_findings(plan(sizes=sizes), DATASET))
    assert found.startswith(told)
    assert bool(found) is bool(told)


def test_every_label_with_too_many_rows_is_named():
    found = checks.check_plan(plan(sizes={"a": 9, "b": 9}), DATASET, PrivacyLedger())
    assert [each.check for each in found if each.level is Level.ERROR] == ["rows", "rows"]


def test_the_true_sizes_stand_in_for_measured_ones_and_cost_what_these_would():
    measured = checks.as_measured(DATASET, 0.25, 1e-5)
    assert measured.sizes == DATASET.counted_sizes()
    made = plan_for(RunSpec.of(recipe="vote", shares={"vote": 1.0}, count_epsilon=0.25), DATASET, measured)
    ledger = PrivacyLedger()
    ledger.set_cap("d", RECORD, Cap(0.9, 1e-3))
    checks.check_budget(made, DATASET, ledger)  # where they were paid for before
    with pytest.raises(BudgetRefused):
        checks.check_budget(made, DATASET, ledger, to_measure=True)
    assert ledger.history("d") == []


def test_a_full_disk_is_refused_also_where_the_file_is_still_to_be_made(tmp_path: Path, monkeypatch):
    checks.check_disk(tmp_path / "no" / "file.json")
    monkeypatch.setattr(shutil, "disk_usage", lambda place: namedtuple("Usage", "free")(10**6))
    with pytest.raises(UsageError, match="1 MB"):
        checks.check_disk(tmp_path / "no" / "file.json")


def test_hours_are_warned_of_and_minutes_noted():
    [slow], [quick] = (list(checks.time_findings(plan(), Speed(0.0, second, 0.0))) for second in (10.0, 0.001))
    assert (slow.level, quick.level) == (Level.WARNING, Level.NOTE)
    assert "hours" in slow.message


def test_a_public_plan_reads_no_rows_and_costs_nothing():
    public = plan_for(RunSpec.of(mechanism="public"), DATASET)
    ledger = PrivacyLedger()
    assert [*checks.row_findings(public, DATASET), *checks.budget_findings(public, DATASET, ledger)] == []
    assert not [*public.warnings()]


class Fluent:
    """Has every word as one token."""

    def encode(self, text):
        return text.split()


SPANISH = Dataset("d", ("a", "b"), tuple(Record("Mi pedido no ha llegado", label) for label in "ab" for _ in range(30)))
IN_ENGLISH = "asks in English"
ENGLISH_WORDS = "The public words are English"


@pytest.mark.parametrize(
    ("dataset", "settings", "told"),
    [
        (SPANISH, {}, [IN_ENGLISH]),
        (SPANISH, {"sentence": "Escribe un texto sobre {label}."}, []),
        (SPANISH, {"shares": {"words": 0.5, "vote": 0.5}}, [IN_ENGLISH, ENGLISH_WORDS]),
        (DATASET, {"shares": {"words": 0.5, "vote": 0.5}}, []),
    ],
)
def test_a_language_is_told_although_the_model_speaks_it(dataset, settings, told):
    found = [each.message for each in checks.language_findings(plan(dataset, **settings), dataset, Fluent())]
    assert len(found) == len(told)
    assert all(part in message for part, message in zip(told, found, strict=True))
