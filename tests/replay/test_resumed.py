"""Runs that were cut off and gone on with: both parts together cost what was charged once, and nothing is forgotten."""

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
from mechanisms.runs.events import DemoCompleted, DemoCutOff, DemoStarted, RunCompleted, StageRelease, StageStarted
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.recipe import Division, Kind, Stage, in_order
from mechanisms.runs.recipe_request import RunRequest
from mechanisms.runs.resume import demonstration_key
from mechanisms.runs.run import synthesize
from mechanisms.runs.stage import stage_class
from mechanisms.sampling import Scheme
from tests.recipes.running import Embedding, Log, recipe
from tests.replay import price_list, test_recipes, test_synthesis
from tests.replay.contract import hold, replay, replayed
from tests.replay.tape import Tape, Told
from tests.replay.world import OWN, Leaning, Ledger, charged, one_key, quick_claims, tell_all

pytestmark = pytest.mark.usefixtures("one_key", "quick_claims")
assert one_key
assert quick_claims

FILE = "run.dpicl.jsonl"
_BUDGETS = (DemoStarted, StageStarted)
Cut = Callable[[Iterable[Any]], Iterator[Any]]
"""The events before a run is cut off."""


def without_budget(event):
    """The ledger is a real one here, and what it says of the data set is other tests' matter."""
    return replace(event, budget=None) if isinstance(event, _BUDGETS) else event


def ends(tape: Tape) -> set[tuple[Any, ...]]:
    """What was done with: demonstrations that are written or, as the run says, given up, and the releases of stages."""
    found, stage = set[tuple[Any, ...]](), None
    for event in (entry.event for entry in tape.entries if isinstance(entry, Told)):
        match event:
            case StageStarted():
                stage = event.stage
            case DemoCompleted():
                found.add(demonstration_key(event))
            case DemoCutOff(label, number, finished=False):
                found.add((label, number))
            case StageRelease():
                found.add((stage, type(event), getattr(event, "label", None), getattr(event, "round", None)))
    return found


def cut_and_gone_on(begun, one: Dataset, request: RunRequest, cut: Cut, folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A run that is cut off, gone on with and told to its end; `begun` begins either.

    It comes to the ends of one that is not cut off.
    """
    folders, charge, uncut = (folder / str(i) for i in itertools.count()), LedgerRun.charge, Tape()
    tell_all(begun(one, uncut, Ledger(uncut), None), uncut)

    def run(data, tape):
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
            releases = (
                event for event in first if not isinstance(event, OWN)
            )  # progress tells how many rows there are
            tell_all(map(without_budget, cut(releases)), tape)
        with closing(RunJournal.read(home / FILE, ledger)) as journal:
            try:
                last = tell_all(map(without_budget, begun(data, tape, ledger, journal)), tape)
            except StudioError as refused:  # as the ledger does what was let out before
                raise AssertionError(f"it does not go on: {refused}") from None
        assert isinstance(last, RunCompleted)
        assert ends(tape) == ends(uncut), "something is left of it"
        price_list.compare(last.demo_set.certificate.event, price_list.with_sizes(request), "what is certified")
        if not any(isinstance(entry, Told) and isinstance(entry.event, DemoCutOff) for entry in tape.entries):
            price_list.compare(charged(tape).items(), price_list.of_run(request), "what was charged")

    return run


SEEDS = range(7, 10)
"""With these the unit stands in the first of two disjoint batches, and in a second division mostly in the other one."""


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize("busy", [1, 10**6], ids=["one by one", "side by side"])
@pytest.mark.parametrize("place", [2, 4, 7])
def test_tokens_of_a_run_that_went_on_cost_what_was_charged(place, busy, scheme, tmp_path, monkeypatch):
    one, other = test_synthesis.pair_of("rows")
    request = test_synthesis.planned(one, test_synthesis.plan_of(scheme, "rows"), "gaussian")

    def begun(data, tape, ledger, journal):
        wanted = request.for_content(fingerprint(data).content)
        return synthesize(data, wanted, Leaning(tape, busy), ledger, tape, journal=journal)

    def cut(events):
        return itertools.islice(events, place)

    run, joins = cut_and_gone_on(begun, one, request, cut, tmp_path, monkeypatch), frozenset({test_synthesis.OTHERS})
    seeds = SEEDS if scheme is Scheme.DISJOINT else [0]
    found = [replay(run, one, other, seed, joins).cost(payer="a") for seed in seeds]
    hold(found)
    assert max(each.noise for each in found) > 0.3


def behind(stage: Stage, told: type) -> Cut:
    """Up to the first event of a type in a stage."""

    def cut(events):
        now = None
        for event in events:
            yield event
            now = event.stage if isinstance(event, StageStarted) else now
            if now is stage and isinstance(event, told):
                return

    return cut


PLACES = [
    pytest.param(kind, division, stage, told, marks=marks, id=f"{kind}-{division}-{told.__name__} in {stage}")
    for kind, division, marks in (
        (Kind.BOTH, Division.EPSILON, ()),
        (Kind.BOTH, Division.ROLES, pytest.mark.slow),
        (Kind.VOTE, Division.ROLES, pytest.mark.slow),
    )
    for stage in in_order()
    for told in (StageStarted, *(stage_class(stage).releases or [DemoCompleted]))
    if stage in recipe(kind, division).stages and (told is not StageStarted or marks)
]


@pytest.mark.parametrize(("kind", "division", "stage", "told"), PLACES)
def test_stages_of_a_run_that_went_on_cost_what_was_charged(kind, division, stage, told, tmp_path, monkeypatch):
    one, other = test_recipes.pair_of("me 0", False)
    request = test_recipes.asked(one, recipe(kind, division))

    def begun(data, tape, ledger, journal):
        wanted, model = test_recipes.for_data(request, data), test_recipes.Swayed(Log())
        return synthesize(data, wanted, model, ledger, tape, journal=journal, embedder=Embedding(Log()))

    run = cut_and_gone_on(begun, one, request, behind(stage, told), tmp_path, monkeypatch)
    hold([replayed(run, one, other, joins=frozenset(range(2 * test_recipes.OTHERS)))])
