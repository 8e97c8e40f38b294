"""A recipe: its request and its stages."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from mechanisms.runs.preview import preview
from mechanisms.runs.recipe import Division, Kind, Stage, in_order
from mechanisms.runs.recipe_forecast import work_by_part

from mechanisms.accounting import PrivacyLedger, claim, fingerprint
from mechanisms.errors import UsageError
from mechanisms.noise import SecureRandomness
from mechanisms.privacy_events import Composed
from mechanisms.records import Dataset
from mechanisms.runs.events import DemoCompleted, Drafting, PrivateDiagnostics, StageProgress, StageStarted
from mechanisms.runs.run import synthesize
from mechanisms.runs.run_file import from_lines, to_lines
from mechanisms.runs.stage import PlannedStage, stage_class, stage_of
from mechanisms.runs.stages import stage_names, stages_by_place
from mechanisms.sampling import Scheme
from mechanisms.steps import mechanism_class
from tests.certificates.recipes import LABELS, MEASURED, asked, recipe
from tests.recipes.running import EVERY, Embedding, Log, Reading, data, ledger, planned, rows
from tests.recipes.running import recipe as recipe_of
from tests.recipes.test_preview import request as few
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel

# A recipe's request: what its stages cost, and that its writing is that of the recipe.


def price(events) -> float:
    return claim(Composed("role", (("one", events),)), 1e-5).epsilon


@pytest.mark.parametrize("division", Division)
@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize("sizes", [{"a": 200, "b": 30}, {"a": 5, "b": 200}])
def test_a_stage_is_told_by_its_dearest_list(division, by_user, sizes):
    """Labels of unequal sizes are sampled at unequal rates; the smallest may be sampled whole, with fewer events."""
    planned = asked(recipe(Kind.BOTH, division), by_user)
    request = replace(planned, sizes=sizes, written=replace(planned.written, sizes=sizes))
    told = {each.name: price((each.event,)) for each in request.stage_records()}
    for stage in (Stage.WRITE, Stage.VOTE, Stage.CALIBRATE):
        dearest = max(price(events) for _, events in request.charges(stage))
        if stage is Stage.WRITE or division is Division.ROLES:
            assert told[stage] == pytest.approx(dearest, rel=1e-3)


@pytest.mark.parametrize("kind", [Kind.TOKENS, Kind.BOTH])
def test_stages_keep_all_that_is_written(kind):
    planned = asked(recipe(kind, Division.ROLES))
    with pytest.raises(UsageError, match="keep all of it"):
        replace(planned, written=planned.written.best_of(2))


BIGGER = {"a": 4500, "b": 5200}
OTHERS = {
    "a smaller role": lambda written: replace(written, plan=replace(written.plan, share=0.01)),
    "other sizes": lambda written: replace(written, sizes=BIGGER),
    "sizes that were declared": lambda written: replace(written, measured=None),
    "users": lambda written: replace(written, by_user=True),
    "other labels": lambda written: replace(written, labels=LABELS[::-1]),
}


@pytest.mark.parametrize("division", Division)
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_recipe_whose_writing_was_calibrated_for_another_is_refused(other, division):
    data = Dataset("d", LABELS, ())
    content = fingerprint(data).content
    planned = asked(recipe(Kind.TOKENS, division, shares={Stage.WRITE: 0.5}))
    planned = replace(planned, content=content, written=replace(planned.written, content=content))
    request = planned.with_measured_sizes(replace(MEASURED, content=content))
    edited = replace(request, written=other(request.written))
    with pytest.raises(UsageError, match="calibrate it again"):
        next(synthesize(data, edited, ToyModel(), PrivacyLedger(), embedder=ToyEmbedder()))
    assert PrivacyLedger().history("d") == []


def test_every_scheme_has_a_list_for_the_dearest_label():
    for scheme in Scheme:
        assert asked(recipe(Kind.TOKENS, Division.ROLES), scheme=scheme).stage_records()[0].name == Stage.WRITE


@pytest.mark.parametrize("name", ["public", "non-private"])
def test_a_recipe_does_not_write_without_privacy(name):
    request = asked(recipe(Kind.TOKENS, Division.ROLES))
    with pytest.raises(UsageError, match="choose a private mechanism"):
        replace(request, written=replace(request.written, mechanism=mechanism_class(name)()))


# The stages: one file each, which says what the stage costs, takes and asks.


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
