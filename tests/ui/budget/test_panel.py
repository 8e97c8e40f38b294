"""The budget at the side: two data sets, caps, the download, and nobody else's ledger."""

from __future__ import annotations

import csv
import functools
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpicl_ui import budget
from dpicl_ui.budget import BudgetPanel
from dpicl_ui.frame.services import Session, Sessions
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import Fingerprint, PrivacyLedger, claim
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Composed, Gaussian
from mechanisms.rounding import rounded_up
from tests.ui.privacy.test_step import DATASET
from tests.ui.tabs import confirm, downloaded, in_page, planned, services, text_of

EVENT = Composed("label", (("a", (Gaussian(4.0),)), ("b", (Gaussian(5.0),))))
SESSIONS = Sessions()


@functools.cache
def built() -> BudgetPanel:
    """The page; each request brings its ledger along."""

    ledgers = SimpleNamespace(of=lambda request: request.ledger)
    return in_page(lambda: BudgetPanel(services(ledgers, sessions=SESSIONS)))


class Place:
    """A tab that looks at a ledger."""

    def __init__(self, folder: Path) -> None:
        self.ledger = PrivacyLedger(folder)
        self.request: Any = SimpleNamespace(session_hash=str(folder), username="", ledger=self.ledger)
        self.session: Session = SESSIONS.of(self.request)
        self.step = built()

    def spend(self, name: str, what: str = "gaussian", unit: str = "record") -> None:
        run = self.ledger.begin(Fingerprint(name, unit, "d1"), what, EVENT, claim(EVENT, 1e-6))
        for part, events in EVENT:
            run.charge(part, events)
        run.finish()

    def plan(self) -> None:
        confirm(self.session, DATASET)
        planned(self.session, recipe="vote")

    def look(self, wanted: tuple[str, str] | None = None) -> dict[Any, Any]:
        return self.step._look(json.dumps(wanted) if wanted else None, self.request)

    def words(self, shown: dict[Any, Any], component: Any) -> str:
        return " ".join(text_of(shown[component]).split())

    def saved(self, wanted: tuple[str, str] | None = None) -> str:
        return downloaded(self.step._save(json.dumps(wanted) if wanted else None, self.request)[self.step.sink])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "one")


def test_it_is_open_before_anything_and_says_that_nothing_is_spent(place: Place):
    assert "Nothing has been spent" in place.words(place.look(), place.step.runs)
    with pytest.raises(UsageError, match="no run"):
        place.saved()


def test_each_of_two_data_sets_has_its_own_runs(place: Place):
    place.spend("clinic")
    place.spend("clinic", what="noisy-max")
    place.spend("school", what="svt-public", unit="user:pupil")
    clinic, school = place.look(("clinic", "record")), place.look(("school", "user:pupil"))
    assert "noisy-max" in place.words(clinic, place.step.runs)
    assert "svt-public" not in place.words(clinic, place.step.runs)
    assert "svt-public" in place.words(school, place.step.runs)
    assert "column 'pupil'" in place.words(school, place.step.standing)
    spent = place.ledger.snapshot("clinic", "record").epsilon
    assert f"{rounded_up(spent, 3)} spent" in place.words(clinic, place.step.standing)


def test_the_planned_run_stands_beside_what_is_spent_of_its_own_data_set_alone(place: Place):
    place.spend("clinic")
    place.plan()
    charge = place.session.of(PrivacyState).planned.charge
    assert f"{rounded_up(charge, 3)} this run" in place.words(place.look(), place.step.standing)
    assert "this run" not in place.words(place.look(("clinic", "record")), place.step.standing)


def test_the_ledger_of_another_page_cannot_be_asked_for(place: Place, tmp_path: Path):
    place.spend("clinic of Ada")
    other = Place(tmp_path / "two")
    other.spend("school of Ben")
    shown = other.look(("clinic of Ada", "record"))
    everything = " ".join(text_of(each) for each in shown.values() if isinstance(each, list))
    assert "Ada" not in everything + str(shown[other.step.chosen].choices)
    assert "Ada" not in other.saved(("clinic of Ada", "record"))


def test_the_file_holds_every_run_and_the_page_the_newest(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(budget, "SHOWN", 3)
    for number in range(5):
        place.spend("=1+1", what=f"run {number}.")
    shown = place.words(place.look(), place.step.runs)
    assert shown.index("run 4.") < shown.index("run 3.") < shown.index("run 2.")
    assert "run 1." not in shown
    assert "2 older runs" in shown
    rows = list(csv.DictReader(io.StringIO(place.saved())))
    assert [row["run"] for row in rows] == [f"run {number}." for number in range(5)]
    assert {row["data_set"] for row in rows} == {"'=1+1"}
