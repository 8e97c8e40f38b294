"""Whatever is asked for, a run's events and charges say what the price list says, which knows nothing of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from mechanisms.privacy_events import PrivacyEvent
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest
from mechanisms.sampling import Scheme
from mechanisms.steps import mechanism_class, mechanism_names
from mechanisms.tallies import Weighing
from tests.certificates.recipes import asked, recipe
from tests.replay import price_list

USERS = pytest.mark.parametrize("by_user", [False, True], ids=["rows", "users"])
MEASURED = pytest.mark.parametrize("measured", [False, True], ids=["declared", "measured"])
LEFT_OUT = ((), (Stage.CHOOSE,), (Stage.SCORE,), (Stage.CHOOSE, Stage.CALIBRATE))


def recipes(kind: Kind, division: Division) -> Iterator[Recipe]:
    whole = recipe(kind, division, rounds=2)
    for left_out, weighing in itertools.product(LEFT_OUT, Weighing):
        shares = {stage: share for stage, share in whole.shares.items() if stage not in left_out}
        yield replace(whole, shares=shares, weighing=weighing)


def schemes(kind: Kind) -> list[Scheme]:
    return [Scheme.PER_DEMONSTRATION] if kind is Kind.VOTE else list(Scheme)


def check(request: RecipeRequest | SynthesisRequest) -> None:
    assert [*price_list.clipped(request)] == []
    price_list.compare(request.event, price_list.of_run(request), "the run's event")
    price_list.compare(request.certified_event(), price_list.with_sizes(request), "the certificate's event")


@MEASURED
@USERS
@pytest.mark.parametrize("division", Division)
@pytest.mark.parametrize("kind", Kind)
def test_stages_in_every_combination_cost_what_is_listed(kind, division, by_user, measured):
    for used, scheme in itertools.product(recipes(kind, division), schemes(kind)):
        request = asked(used, by_user, measured, scheme)
        check(request)
        for stage in used.stages:
            price_list.compare(request.charges(stage), price_list.of_stage(request, stage), f"the stage {stage}")


WRITERS = [name for name in mechanism_names() if not mechanism_class(name).not_private and name != "public"]


@MEASURED
@USERS
@pytest.mark.parametrize("name", WRITERS)
def test_demonstrations_in_every_combination_cost_what_is_listed(name, by_user, measured):
    for scheme, subsets in itertools.product(Scheme, (False, True)):
        request = asked(recipe(Kind.TOKENS, Division.EPSILON), by_user, measured, scheme).written
        plan = replace(request.plan, unit_rows=False, subsets=4, per_subset=3) if subsets else request.plan
        mechanism = mechanism_class(name)()
        if mechanism.closed(plan) is not None:
            continue
        wanted = replace(request, plan=plan, mechanism=mechanism)
        check(wanted)
        charged: dict[str, list[PrivacyEvent]] = {name: [] for name, _ in wanted.event}
        for label, number in itertools.product(wanted.labels, range(1, plan.shots + 1)):
            list_name, events = wanted.charge(label, number)
            charged[list_name] += events
        price_list.compare(charged.items(), price_list.of_run(wanted), "all demonstrations")
