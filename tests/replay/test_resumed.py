"""Runs that were cut off and resumed: both parts together cost what was charged once, and nothing is forgotten."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mechanisms.accounting import Cap, PrivacyLedger, fingerprint
from mechanisms.accounting.ledger import LedgerRun
from mechanisms.errors import StudioError
from mechanisms.records import Dataset
from mechanisms.runs.events import DemoCompleted, DemoCutOff, Release, RunCompleted, RunStarted, SetSoFar, StageStarted
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.plan import Plan
from mechanisms.runs.run import run
from mechanisms.runs.stages import stages_in_order
from mechanisms.sampling import Scheme
from tests.replay import price_list, test_stages, test_tokens
from tests.replay.contract import hold, replay, replayed
from tests.replay.tape import Tape, Told
from tests.replay.world import Leaning, Ledger, charged, tell_all
from tests.runs.running import OWN, Embedding, spec

pytestmark = pytest.mark.usefixtures("one_key", "quick_claims", "any_text_passes")

FILE = "run.dpicl.jsonl"
Cut = Callable[[Iterable[Any]], Iterator[Any]]
"""The events before a run is cut off."""


def without_budget(event):
    """The ledger is a real one here, and what it says of the data set is other tests' matter."""
    return replace(event, budget=None) if isinstance(event, RunStarted | RunCompleted) else event


def ends(tape: Tape) -> set[tuple[Any, ...]]:
    """What was done with: demonstrations that are written or, as the run says, given up, and the releases of stages."""
    found = set[tuple[Any, ...]]()
    for event in (entry.event for entry in tape.entries if isinstance(entry, Told)):
        match event:
            case DemoCompleted(demonstration, number):
                found.add((demonstration.label, number))
            case DemoCutOff(label, number, finished=False):
                found.add((label, number))
            case Release():
                found.add((type(event),))
    return found


def cut_and_resumed(begun, one: Dataset, plan: Plan, cut: Cut, folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A run that is cut off, resumed and told to its end; `begun` begins either.

    It comes to the ends of one that is not cut off.
    """
    folders, charge, uncut = (folder / str(i) for i in itertools.count()), LedgerRun.charge, Tape()
    tell_all(begun(one, uncut, Ledger(uncut), None), uncut)

    def ran(data, tape):
        home, paid = next(folders), set()
        home.mkdir(parents=True)

        def once(each, name, events, part=""):
            if (name, part) not in paid:  # as the ledger does: a part is charged once
                tape.charge(name, events, part.partition(" ")[0])
            paid.add((name, part))
            charge(each, name, events, part)

        monkeypatch.setattr(LedgerRun, "charge", once)
        monkeypatch.setattr(tape, "private", True, raising=False)
        ledger = PrivacyLedger(home)
        ledger.set_cap("d", data.unit, Cap(1e6, 0.1))
        with closing(RunJournal.new(home / FILE)) as journal, closing(begun(data, tape, ledger, journal)) as first:
            releases = (event for event in first if not isinstance(event, OWN))  # progress tells how many there are
            tell_all(map(without_budget, cut(releases)), tape)
        with closing(RunJournal.read(home / FILE, ledger)) as journal:
            try:
                last = tell_all(map(without_budget, begun(data, tape, ledger, journal)), tape)
            except StudioError as refused:  # as the ledger does what was let out before
                raise AssertionError(f"it does not go on: {refused}") from None
        assert isinstance(last, RunCompleted)
        assert ends(tape) == ends(uncut), "something is left of it"
        price_list.compare(last.demo_set.certificate.event, price_list.with_sizes(plan), "what is certified")
        if not any(isinstance(entry, Told) and isinstance(entry.event, DemoCutOff) for entry in tape.entries):
            price_list.compare(charged(tape).items(), price_list.of_run(plan), "what was charged")

    return ran


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("busy", [1, 10**6], ids=["one by one", "side by side"])
@pytest.mark.parametrize("place", [3, 4, 6, 8])
def test_tokens_of_a_resumed_run_cost_what_was_charged(place, busy, scheme, tmp_path, monkeypatch):
    """Not between two first tokens of one step: a sample of which nobody has seen a token is drawn once more."""
    one, other = test_tokens.pair_of("rows")
    plan = test_tokens.planned(one, "gaussian", scheme, "rows")

    def begun(data, tape, ledger, journal):
        wanted = plan.for_content(fingerprint(data).content)
        return run(wanted, data, Leaning(tape, busy), ledger, tape, journal=journal)

    def cut(events):
        return itertools.islice((event for event in events if not isinstance(event, SetSoFar)), place)

    ran = cut_and_resumed(begun, one, plan, cut, tmp_path, monkeypatch)
    found = replay(ran, one, other, joins=frozenset({test_tokens.OTHERS})).cost(payer="a")
    hold([found])
    assert found.noise > 0.3


def behind(stage: str, told: type) -> Cut:
    """Up to the first event of a type in a stage."""

    def cut(events):
        now = None
        for event in events:
            yield event
            now = event.stage if isinstance(event, StageStarted) else now
            if now == stage and isinstance(event, told):
                return

    return cut


PLACES = [
    pytest.param(recipe, split, stage, told, marks=marks, id=f"{recipe}-{split}-{told.__name__} in {stage}")
    for recipe, split, marks in (
        ("both", "epsilon", ()),
        ("both", "roles", pytest.mark.slow),
        ("tokens", "roles", pytest.mark.slow),
        ("vote", "roles", pytest.mark.slow),
    )
    for stage in spec(recipe, split).shares or {}
    for told in (StageStarted, *(stages_in_order()[stage].releases or [DemoCompleted]))
    if told is not StageStarted or marks
]


@pytest.mark.parametrize(("recipe", "split", "stage", "told"), PLACES)
def test_stages_of_a_resumed_run_cost_what_was_charged(recipe, split, stage, told, tmp_path, monkeypatch):
    one, other = test_stages.pair_of("me 0", False)
    plan = test_stages.planned(one, spec(recipe, split))

    def begun(data, tape, ledger, journal):
        wanted = plan.for_content(fingerprint(data).content)
        return run(wanted, data, test_stages.Swayed(), ledger, tape, journal=journal, embedder=Embedding())

    ran = cut_and_resumed(begun, one, plan, behind(stage, told), tmp_path, monkeypatch)
    hold([replayed(ran, one, other, joins=frozenset(range(2 * test_stages.OTHERS)))])
