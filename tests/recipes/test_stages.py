"""The stages: one file each, which says what the stage costs, takes and asks."""

from __future__ import annotations

from collections import Counter

import pytest

from mechanisms.noise import SecureRandomness
from mechanisms.runs.events import DemoCompleted, Drafting, PrivateDiagnostics, StageProgress, StageStarted
from mechanisms.runs.preview import preview
from mechanisms.runs.recipe import Division, Kind, Stage, in_order
from mechanisms.runs.recipe_forecast import work_by_part
from mechanisms.runs.run import synthesize
from mechanisms.runs.run_file import from_lines, to_lines
from mechanisms.runs.stage import PlannedStage, stage_class, stage_of
from mechanisms.runs.stages import stage_names, stages_by_place
from tests.certificates.recipes import asked, recipe
from tests.recipes.running import EVERY, Embedding, Log, Reading, data, ledger, planned, rows
from tests.recipes.running import recipe as recipe_of
from tests.recipes.test_preview import request as few


def test_every_stage_has_one_file_and_no_file_is_without_a_place_in_the_order():
    assert {*stage_names()} == {*stages_by_place()} == {*Stage}
    assert in_order()[0] is Stage.WRITE
    assert all(issubclass(stage_class(stage), PlannedStage) and stage_class(stage).name is stage for stage in Stage)
    titles = Counter(stage_class(stage).title for stage in Stage)
    assert set(titles.values()) == {1}


@pytest.mark.parametrize("division", Division)
@pytest.mark.parametrize("by_user", [False, True])
def test_a_run_costs_what_its_stages_charge_and_nothing_else(division, by_user):
    request = asked(recipe(Kind.BOTH, division), by_user)
    charged: dict[str, list[object]] = {}
    for stage in request.stages:
        for name, events in stage_of(request, stage).charges():
            charged.setdefault(name, []).extend(events)
    assert charged == {name: list(events) for name, events in request.event}
    assert all(stage_of(request, stage).dearest() for stage in request.stages)


@pytest.mark.parametrize("division", Division)
def test_each_stage_that_takes_part_takes_time_and_says_what_it_asks(division):
    request = asked(recipe(Kind.BOTH, division))
    work = work_by_part(request, 1)
    assert [each for each in work if each is not None] == list(request.stages)
    for stage in request.stages:
        planned = stage_of(request, stage)
        assert work[stage] == planned.work(1)
        # Where all rows take part in every stage, the choice has read all that is scored.
        assert any(vars(work[stage]).values()) or (division, stage) == (Division.EPSILON, Stage.SCORE)
        assert planned.task().endswith(".")
        assert planned.question.format(unit="row") != ""


@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize("division", Division)
def test_a_run_with_every_stage_is_told_in_its_order_and_its_file_has_all_of_it(division, by_user):
    dataset, randomness = data(rows(180, users=by_user), by_user), SecureRandomness()
    request = planned(dataset, recipe_of(Kind.BOTH, division, shares=EVERY))
    run = synthesize(dataset, request, Reading(Log()), ledger(by_user), randomness, embedder=Embedding(Log()))
    told = list(run)
    assert [each.stage for each in told if isinstance(each, StageStarted)] == [*in_order()]
    for stage in in_order():
        named = stage_class(stage).releases or (DemoCompleted,)  # the stage that writes marks its own
        assert {type(each) for each in told}.intersection(named)
    recorded = [each for each in told if not isinstance(each, PrivateDiagnostics | StageProgress | Drafting)]
    assert to_lines(from_lines(to_lines(recorded))) == to_lines(recorded)


def test_a_preview_warns_of_what_its_stages_warn_of():
    found = preview(few(size=30))
    warned = [each for stage in found.request.stages for each in stage_of(found.request, stage).warnings()]
    assert len(warned) >= 2
    assert set(warned) <= set(found.warnings)
