"""Runs that were cut off and gone on with: both parts together cost what was charged once."""

from __future__ import annotations

import itertools
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mechanisms.accounting import Cap, PrivacyLedger, fingerprint
from mechanisms.accounting.ledger import LedgerRun
from mechanisms.runs.events import DemoStarted, RunCompleted, StageStarted
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.recipe import Division, Kind
from mechanisms.runs.run import synthesize
from mechanisms.sampling import Scheme
from tests.recipes.running import Embedding, Log, planned, recipe
from tests.replay import test_recipes, test_synthesis
from tests.replay.contract import replay, replayed
from tests.replay.world import OWN, Leaning, charged, one_key, quick_claims, same_price, tell_all

pytestmark = pytest.mark.usefixtures("one_key", "quick_claims")
assert one_key
assert quick_claims

FILE = "run.dpicl.jsonl"
_BUDGETS = (DemoStarted, StageStarted)


def without_budget(event):
    """The ledger is a real one here, and what it says of the data set is other tests' matter."""
    return replace(event, budget=None) if isinstance(event, _BUDGETS) else event


def cut_and_gone_on(begun, place: int, folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A run that is cut off at an event, gone on with and told to its end; `begun` begins either."""
    folders, charge = (folder / str(i) for i in itertools.count()), LedgerRun.charge

    def run(data, tape):
        home, paid = next(folders), set()
        home.mkdir(parents=True)

        def once(each, name, events, part=""):
            if (name, part) not in paid:  # as the ledger does: a part is charged once
                tape.charge(name, events)
            paid.add((name, part))
            charge(each, name, events, part)

        monkeypatch.setattr(LedgerRun, "charge", once)
        monkeypatch.setattr(tape, "private", True, raising=False)
        ledger = PrivacyLedger(home)
        ledger.set_cap("d", data.unit, Cap(1e6, 0.1))
        with closing(RunJournal.new(home / FILE)) as journal, closing(begun(data, tape, ledger, journal)) as first:
            releases = (
                event for event in first if not isinstance(event, OWN)
            )  # progress tells how many rows there are
            tell_all(map(without_budget, itertools.islice(releases, place)), tape)
        with closing(RunJournal.read(home / FILE, ledger)) as journal:
            last = tell_all(map(without_budget, begun(data, tape, ledger, journal)), tape)
        assert isinstance(last, RunCompleted)
        if len(last.demo_set.demonstrations) == 4:
            assert same_price(last.demo_set.certificate.event, charged(tape))

    return run


SEEDS = range(8)
"""In disjoint batches a unit stands in one of two: where, and where in a second division, are the seed's matter."""


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("busy", [1, 10**6], ids=["one by one", "side by side"])
@pytest.mark.parametrize("place", [2, 4, 7])
def test_tokens_of_a_run_that_went_on_cost_what_was_charged(place, busy, scheme, tmp_path, monkeypatch):
    one, other = test_synthesis.pair_of("rows")
    request = test_synthesis.planned(one, test_synthesis.plan_of(scheme, "rows"), "gaussian")

    def begun(data, tape, ledger, journal):
        wanted = replace(request, content=fingerprint(data).content)
        return synthesize(data, wanted, Leaning(tape, busy), ledger, tape, journal=journal)

    run, joins = cut_and_gone_on(begun, place, tmp_path, monkeypatch), frozenset({test_synthesis.OTHERS})
    found = [
        replay(run, one, other, seed, joins).cost(payer="a") for seed in (SEEDS if scheme is Scheme.DISJOINT else [0])
    ]
    assert all(each.allowed for each in found)
    assert max(each.noise for each in found) > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("division", list(Division))
@pytest.mark.parametrize("kind", [Kind.VOTE, Kind.BOTH])
@pytest.mark.parametrize("place", [3, 12, 24, 32])
def test_stages_of_a_run_that_went_on_cost_what_was_charged(place, kind, division, tmp_path, monkeypatch):
    one, other = test_recipes.pair_of("me 0", False)
    request = planned(one, recipe(kind, division))

    def begun(data, tape, ledger, journal):
        return synthesize(
            data,
            test_recipes.for_data(request, data),
            test_recipes.Swayed(Log()),
            ledger,
            tape,
            journal=journal,
            embedder=Embedding(Log()),
        )

    run = cut_and_gone_on(begun, place, tmp_path, monkeypatch)
    found = replayed(run, one, other, joins=frozenset(range(2 * test_recipes.OTHERS)))
    assert found.allowed
