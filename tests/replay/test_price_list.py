"""Whatever is asked for, a run's events and charges say what the price list says, which knows nothing of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from mechanisms.data.sizes import MeasuredSizes
from mechanisms.privacy_events import PrivacyEvent
from mechanisms.records import RECORD
from mechanisms.runs.completion import complete
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, WRITE, Recipe, RunSpec, Split
from mechanisms.runs.stages import stage_names
from mechanisms.runs.terms import NO_FILE
from mechanisms.sampling import Scheme
from mechanisms.steps import mechanism_class, mechanism_names
from mechanisms.tallies import Weighing
from tests.replay import price_list
from tests.runs.running import LABELS, alone, spec

USERS = pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
MEASURED = pytest.mark.parametrize("measured", [False, True], ids=["declared", "measured"])
LEFT_OUT = ((), (OPENINGS,), (SCORE,), (CALIBRATE,), (OPENINGS, CALIBRATE, SCORE))
SIZES = {"red": 450, "blue": 520}


def plan_of(asked: RunSpec, by_user: bool, measured: bool) -> Plan:
    """For a file that there is none of."""
    return Plan(
        spec=complete(asked, SIZES),
        labels=LABELS,
        sizes=SIZES,
        unit="user:who" if by_user else RECORD,
        measured=MeasuredSizes(SIZES, 0.2, 1e-8, NO_FILE) if measured else None,
    )


def schemes(recipe: Recipe) -> list[Scheme]:
    return [Scheme.PER_DEMONSTRATION] if recipe is Recipe.VOTE else list(Scheme)


def specs(recipe: Recipe, split: Split) -> Iterator[RunSpec]:
    for left_out, weighing, scheme in itertools.product(LEFT_OUT, Weighing, schemes(recipe)):
        yield spec(recipe, split, left_out, weighing=weighing, scheme=scheme, subsets=12, tokens=5, written=2)


def check(plan: Plan) -> None:
    assert [*price_list.clipped(plan)] == []
    price_list.compare(plan.event, price_list.of_run(plan), "the run's event")
    price_list.compare(plan.certified_event(), price_list.with_sizes(plan), "the certificate's event")


@MEASURED
@USERS
@pytest.mark.parametrize("split", Split)
@pytest.mark.parametrize("recipe", Recipe)
def test_stages_in_every_combination_cost_what_is_listed(recipe, split, by_user, measured):
    for asked in specs(recipe, split):
        plan = plan_of(asked, by_user, measured)
        check(plan)
        for name, stage in plan.stages.items():
            price_list.compare(stage.charges(), price_list.of_stage(plan, name), f"the stage {name}")


def test_every_stage_has_a_price():
    assert {*price_list.STAGES, WRITE} == {*stage_names()}


WRITERS = [name for name in mechanism_names() if not mechanism_class(name).not_private and name != "public"]


@MEASURED
@USERS
@pytest.mark.parametrize("split", Split)
@pytest.mark.parametrize("name", WRITERS)
def test_demonstrations_in_every_combination_cost_what_is_listed(name, split, by_user, measured):
    """One by one as well as together, in a run that does nothing else and in one with stages."""
    for scheme, subsets, only in itertools.product(Scheme, (False, True), (False, True)):
        sample = {"subsets": 4, "per_subset": 3} if subsets else {"subsets": 12}
        writing = {"mechanism": name, "parameters": {}, "scheme": scheme, "tokens": 5, "written": 2, **sample}
        asked = alone(**writing) if only else spec("both", split, **writing)
        if mechanism_class(name)().closed(plan_of(asked.with_(mechanism="gaussian"), by_user, measured).sampling):
            continue
        plan = plan_of(asked, by_user, measured)
        check(plan)
        writes = plan.stages[WRITE]
        charged: dict[str, list[PrivacyEvent]] = {}
        for label, number in itertools.product(plan.labels, range(1, plan.sampling.written + 1)):
            list_name, events = writes.charge_of(label, number)
            charged.setdefault(list_name, []).extend(events)
        price_list.compare(charged.items(), price_list.of_stage(plan, WRITE), "all demonstrations")
