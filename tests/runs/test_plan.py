"""What is said of a recipe before it runs: its claim, its warnings, its time; all from public numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from mechanisms.runs.advice import MOST_CORRECTED_LABELS, proposed
from mechanisms.runs.forecast import ModelSpeed
from mechanisms.runs.preview import preview
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage
from mechanisms.runs.recipe_forecast import choice_count, predicted_seconds, units
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest

from mechanisms.accounting import PrivacyTarget
from mechanisms.noise import SeededRandomness
from mechanisms.records import default_template
from mechanisms.runs.stages.score import Score
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class
from mechanisms.tallies import Weighing

LABELS = ("a", "b")
SPEED = ModelSpeed(position=1e-3, row=2e-3, step=3e-3)


def request(
    kind: Kind = Kind.VOTE,
    size: int = 3000,
    epsilon: float = 1.0,
    division: Division = Division.ROLES,
    by_user: bool = False,
) -> RecipeRequest:
    sizes, target = dict.fromkeys(LABELS, size), PrivacyTarget(epsilon, 1e-6)
    recipe = proposed(kind, sizes, epsilon, division=division)
    template, content = default_template(LABELS), "content"
    plan = SamplingPlan(subsets=20, tokens=5)
    written = SynthesisRequest(
        labels=LABELS,
        template=template,
        plan=plan,
        mechanism=mechanism_class("gaussian")(),
        target=target,
        sizes=sizes,
        content=content,
    )
    of = written if Stage.WRITE in recipe.shares else None
    return RecipeRequest(
        labels=LABELS,
        template=template,
        recipe=recipe,
        target=target,
        sizes=sizes,
        content=content,
        by_user=by_user,
        written=of,
    )


@pytest.mark.parametrize("division", [*Division])
@pytest.mark.parametrize("by_user", [False, True])
def test_voting_costs_its_target_and_needs_no_calibration(division, by_user):
    made = request(division=division, by_user=by_user)
    shown = preview(made)
    assert shown.request is made
    assert shown.claim.epsilon == pytest.approx(1.0)
    assert shown.claim.epsilon <= 1.0 + 1e-9
    assert ("user" in shown.guarantee) is by_user
    assert shown.warnings == ()
    assert shown.seconds is None


@pytest.mark.slow
@pytest.mark.parametrize("division", [*Division])
def test_writing_gets_its_part_of_the_units_or_of_epsilon(division):
    made = request(Kind.BOTH, division=division)
    ready = made.calibrated()
    assert ready.written is not None
    assert ready.written.plan.share == made.role(Stage.WRITE)
    assert 0.95 * made.epsilon(Stage.WRITE) < ready.written.claim().epsilon <= made.epsilon(Stage.WRITE)
    assert ready.claim().epsilon <= 1.0 + 1e-9


def test_a_weak_target_is_called_weak():
    assert any("weak guarantee" in each for each in preview(request(epsilon=8.0)).warnings)


def test_few_rows_are_warned_of_and_many_are_not():
    few = preview(request(size=30)).warnings
    assert any("winners may be chance" in each for each in few)
    assert any("correction may be chance" in each for each in few)
    assert any("wider than 20 points" in each for each in few)
    assert preview(request(size=3000)).warnings == ()


def test_users_are_warned_of_as_users():
    warnings = preview(replace(request(size=30), by_user=True)).warnings
    assert len(warnings) == len(preview(request(size=30)).warnings)
    assert all("users" in each and "rows" not in each for each in warnings if "guarantee" not in each)


def test_the_margin_is_about_what_the_score_gives():
    made = request(size=3000)
    rows = round(units(made, Stage.SCORE))
    tally, randomness, rng = Score(made).tally, SeededRandomness(1), np.random.default_rng(2)
    halves = []
    for _ in range(30):
        right = rng.random((rows, 3)) < 0.5
        estimate = tally.accuracy(tally.release(tally.cells(right), randomness), 0)
        halves.append((estimate.high - estimate.low) / 2)
    assert Score(made).margin == pytest.approx(float(np.mean(halves)), rel=0.1)


def test_where_labels_count_the_same_the_margin_is_of_what_the_rows_count():
    """A large label's many rows count no more than a small one's few: a score of them is as wide."""
    sizes = {"a": 1200} | {f"b{i}": 73 for i in range(11)}
    labels = tuple(sizes)
    recipe = proposed(Kind.VOTE, sizes, 1.0)
    assert recipe.weighing is Weighing.LABELS
    skewed = RecipeRequest(
        labels=labels,
        template=default_template(labels),
        recipe=recipe,
        target=PrivacyTarget(1.0, 1e-6),
        sizes=sizes,
        content="content",
    )
    even = replace(skewed, sizes=dict.fromkeys(labels, 73), recipe=replace(recipe, weighing=Weighing.ROWS))
    assert Score(skewed).margin == pytest.approx(Score(even).margin, rel=0.05)
    assert Score(skewed).margin > 1.3 * Score(replace(skewed, recipe=even.recipe)).margin
    assert not any("wider than 20 points" in each for each in preview(skewed).warnings), "as proposed"
    half = recipe.shares | {Stage.SCORE: recipe.shares[Stage.SCORE] / 2}
    fewer = replace(skewed, recipe=replace(recipe, shares=half))
    assert any("wider than 20 points" in each for each in preview(fewer).warnings)


@pytest.mark.parametrize(("labels", "said"), [(MOST_CORRECTED_LABELS, False), (MOST_CORRECTED_LABELS + 1, True)])
def test_many_labels_are_told_of_prototypes_before_the_run(labels, said):
    sizes = {f"label {i}": 100 for i in range(labels)}
    made = replace(request(), labels=tuple(sizes), sizes=sizes, recipe=proposed(Kind.VOTE, sizes, 1.0))
    assert any("Class prototypes" in each for each in preview(made).warnings) is said


@pytest.mark.parametrize("weighing", Weighing)
def test_what_a_smaller_margin_takes_gives_it(weighing):
    made = request(size=3000)
    sizes, target = {**made.sizes, made.labels[0]: 9000}, PrivacyTarget(0.3, 1e-6)
    made = replace(made, sizes=sizes, target=target, recipe=replace(made.recipe, weighing=weighing))
    score = Score(made)
    epsilon, scoring = score.reaching(0.8 * score.margin)
    assert epsilon is not None
    assert epsilon > made.target.epsilon
    assert scoring > units(made, Stage.SCORE)
    dearer = replace(made, target=PrivacyTarget(epsilon, made.target.delta))
    times = scoring / units(made, Stage.SCORE)
    larger = replace(made, sizes={label: math.ceil(times * size) for label, size in made.sizes.items()})
    for each in (dearer, larger):
        assert Score(each).margin == pytest.approx(0.8 * score.margin, rel=0.02)


def test_no_epsilon_gives_a_margin_below_that_of_sampling():
    score = Score(request(size=3000))
    assert score.reaching(score.margin / 100)[0] is None


def test_a_margin_never_passes_the_whole_range():
    assert Score(request(size=2)).margin == 0.5


@pytest.mark.parametrize(
    "longer",
    [
        lambda made: replace(made, recipe=replace(made.recipe, drafts=2 * made.recipe.drafts)),
        lambda made: replace(made, recipe=replace(made.recipe, rounds=2)),
        lambda made: replace(made, recipe=replace(made.recipe, sets=made.recipe.sets + 1)),
        lambda made: replace(made, tokens=2 * made.tokens),
        lambda made: replace(made, max_record_tokens=2 * made.max_record_tokens),
        lambda made: replace(made, sizes={each: 2 * size for each, size in made.sizes.items()}),
        lambda made: replace(made, by_user=True),
        lambda made: replace(made, recipe=replace(made.recipe, division=Division.EPSILON)),
    ],
)
def test_more_work_takes_longer(longer):
    made = request()
    assert predicted_seconds(longer(made), SPEED) > predicted_seconds(made, SPEED)


def test_a_score_left_out_takes_no_time():
    made = request()
    shares = {stage: share for stage, share in made.recipe.shares.items() if stage is not Stage.SCORE}

    def saved(longest: int) -> float:
        scored = replace(made, max_record_tokens=longest)
        shorter = replace(scored, recipe=replace(made.recipe, shares=shares))
        return predicted_seconds(scored, SPEED) - predicted_seconds(shorter, SPEED)

    rows = 6000 * made.role(Stage.SCORE)
    alone = 3 * rows * SPEED.position  # of a token of each text; behind demonstrations it costs more
    assert alone * 0.75 * 100 < saved(100) < 2 * alone * 100  # a half of the texts has a shape of half the cap
    assert saved(220) == pytest.approx(2.2 * saved(100), rel=0.1)


def test_the_duration_of_writing_is_part_of_both():
    made, written = request(Kind.BOTH), request(Kind.BOTH).written
    assert written is not None
    longer = replace(made, written=replace(written, plan=replace(written.plan, tokens=50)))
    assert predicted_seconds(longer, SPEED) > predicted_seconds(made, SPEED)


def test_a_preview_learns_its_duration_later():
    timed = preview(request()).timed(SPEED)
    assert timed.seconds == predicted_seconds(request(), SPEED)
    assert math.isfinite(timed.seconds)
    assert preview(request(), SPEED) == timed


def test_what_was_written_stands_in_the_choice():
    assert choice_count(request()) == 2 + request().recipe.sets
    assert choice_count(request(Kind.BOTH)) == choice_count(request()) + 2
    one = Recipe(Kind.BOTH, Division.ROLES, {Stage.WRITE: 0.5, Stage.VOTE: 0.2}, sets=1)
    assert choice_count(replace(request(Kind.BOTH), recipe=one)) == 4
