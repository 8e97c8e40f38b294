"""A text that the gate refuses stands in no set, wherever the run ends: it comes together with its refusal."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.records import Dataset, Record
from mechanisms.runs.events import DemoCompleted, DemoRefused, RunCompleted, SetKept
from mechanisms.runs.gate import Gate
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.run import run
from mechanisms.runs.spec import RunSpec
from tests.word_model import WordModel

ROWS = Dataset("d", ("a", "b"), tuple(Record(f"row {i}", label) for label in "ab" for i in range(30)))


@pytest.fixture(autouse=True)
def every_second_text_is_none(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    refused: set[str] = set()
    seen: list[str] = []

    def reason(gate: Gate, text: str) -> str | None:
        if text not in seen:
            seen.append(text)
        if seen.index(text) % 2:
            return None
        refused.add(text)
        return "no text"

    monkeypatch.setattr(Gate, "reason", reason)
    return refused


def plan() -> Plan:
    spec = RunSpec.of(sizes="counted", recipe="tokens", shots=2, tokens=4, min_tokens=0, subsets=10)
    return plan_for(spec, ROWS).calibrated()


def test_no_set_that_is_kept_on_the_way_has_it(every_second_text_is_none: set[str]):
    told = list(run(plan(), ROWS, WordModel(), PrivacyLedger()))
    texts = [{each.text for each in event.demo_set.demonstrations} for event in told if isinstance(event, SetKept)]
    assert texts
    assert every_second_text_is_none
    assert not any(kept & every_second_text_is_none for kept in texts)
    places = [place for place, event in enumerate(told) if isinstance(event, DemoRefused)]
    assert places
    assert all(isinstance(told[place - 1], DemoCompleted) for place in places)


def test_a_run_that_was_cut_off_before_the_refusal_goes_on_without_the_text(
    tmp_path: Path, every_second_text_is_none: set[str]
):
    ledger, path = PrivacyLedger(), tmp_path / "journal"
    journal = RunJournal.new(path)
    with closing(run(plan(), ROWS, WordModel(), ledger, journal=journal)) as events:
        next(event for event in events if isinstance(event, DemoCompleted))
    journal.close()
    again = RunJournal.read(path, ledger)
    *_, ended = run(again.plan(fingerprint(ROWS).content), ROWS, WordModel(), ledger, journal=again)
    assert isinstance(ended, RunCompleted)
    assert not {each.text for each in ended.demo_set.demonstrations} & every_second_text_is_none
    assert ended.demo_set.refused
