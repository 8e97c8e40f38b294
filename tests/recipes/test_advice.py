"""What the planner proposes: valid for any public numbers, and more where there is more."""

from __future__ import annotations

import pytest

from mechanisms.errors import UsageError
from mechanisms.runs.advice import (
    FEWEST_DRAFTS,
    MOST_CORRECTED_LABELS,
    MOST_DEMONSTRATIONS,
    MOST_DRAFTS,
    MOST_VOTERS,
    VOTERS_A_LABEL,
    fewest_for_roles,
    proposed,
)
from mechanisms.runs.recipe import Division, Kind, Stage
from mechanisms.runs.recipe_request import MOST_PROMPTED, MOST_SHOTS
from mechanisms.runs.stage import stage_class

EPSILONS = (0.01, 0.3, 1.0, 3.0, 50.0)
LABELS = (2, 4, 14, 150)
SIZES = (20, 60, 300, 499, 500, 1001, 7777, 30_000, 10**6)


def sizes(labels: int, each: int) -> dict[str, int]:
    return {f"label {i}": each for i in range(labels)}


@pytest.mark.parametrize("score", [True, False])
@pytest.mark.parametrize("division", [None, *Division])
@pytest.mark.parametrize("kind", list(Kind))
def test_any_sizes_get_a_valid_recipe(kind, division, score):
    for labels in LABELS:
        for each in SIZES:
            for epsilon in EPSILONS:
                recipe = proposed(kind, sizes(labels, each), epsilon, score, division)
                assert sum(recipe.shares.values()) <= 1 + 1e-9
                assert (Stage.SCORE in recipe.shares) == score
                corrected = {Stage.CALIBRATE, Stage.CHOOSE} & set(recipe.shares)
                assert len(corrected) == (2 if labels <= MOST_CORRECTED_LABELS else 0)
                assert FEWEST_DRAFTS <= recipe.drafts <= MOST_DRAFTS
                assert division is None or recipe.division is division


@pytest.mark.parametrize("kind", [Kind.VOTE, Kind.BOTH])
def test_more_drafts_stand_than_win_and_large_sets_are_read_in_no_prompt(kind):
    for shots in range(1, MOST_SHOTS + 1):
        recipe = proposed(kind, sizes(4, 1000), 1.0, shots=shots)
        assert recipe.drafts >= 2 * shots
        assert (Stage.CHOOSE in recipe.shares) is (Stage.SCORE in recipe.shares) is (shots <= MOST_PROMPTED)
        assert recipe.sets * shots * 4 <= MOST_DEMONSTRATIONS or recipe.sets == 1
    assert proposed(kind, sizes(4, 1000), 1.0, shots=1) == proposed(kind, sizes(4, 1000), 1.0)


@pytest.mark.parametrize("kind", [Kind.VOTE, Kind.BOTH])
def test_drafts_grow_with_epsilon_and_with_the_data(kind):
    for labels in LABELS:
        by_epsilon = [proposed(kind, sizes(labels, 150), epsilon).drafts for epsilon in EPSILONS]
        assert by_epsilon == sorted(by_epsilon)
        assert by_epsilon[0] < by_epsilon[-1]
    for division in Division:
        by_size = [proposed(kind, sizes(2, each), 1.0, division=division).drafts for each in (20, 60, 200, 600)]
        assert by_size == sorted(by_size)
        assert by_size[0] < by_size[-1]


def test_roles_from_the_number_of_units_on_at_which_each_is_large_enough():
    for labels in LABELS:
        fewest = fewest_for_roles(labels)
        others = {f"label {i}": 1 for i in range(1, labels)}
        assert proposed(Kind.VOTE, {"a": fewest - labels, **others}, 1.0).division is Division.EPSILON
        assert proposed(Kind.VOTE, {"a": fewest - labels + 1, **others}, 1.0).division is Division.ROLES
    assert fewest_for_roles(4) < fewest_for_roles(10) < fewest_for_roles(20) == fewest_for_roles(1000)


@pytest.mark.parametrize("units", [2 * 1600, 8_000, 120_000, 1_500_000])
def test_roles_have_the_numbers_that_compute_allows(units):
    recipe = proposed(Kind.VOTE, {"a": units // 2, "b": units // 2}, 1.0)
    for stage in recipe.stages:
        wanted = stage_class(stage).wanted
        assert wanted is not None
        assert 0.9 * wanted <= recipe.shares[stage] * units <= 1.001 * wanted
    sets = recipe.sets + 2
    found = {stage: share * units for stage, share in recipe.shares.items()}
    passes = 2 * found[Stage.CALIBRATE] + sets * found[Stage.CHOOSE] + 3 * found[Stage.SCORE]
    assert passes <= 2_200 * 1.001


def test_more_units_score_where_none_calibrate_or_choose():
    few, many = (proposed(Kind.VOTE, sizes(labels, 9600 // labels), 1.0) for labels in (24, 96))
    assert MOST_CORRECTED_LABELS == 24
    assert many.shares[Stage.SCORE] == pytest.approx(2 * few.shares[Stage.SCORE], 0.05)


@pytest.mark.parametrize("units", [3_200, 32_000])
def test_the_labels_of_many_have_voters_each(units):
    recipe = proposed(Kind.VOTE, sizes(80, units // 80), 1.0)
    assert recipe.shares[Stage.VOTE] * units / 80 == pytest.approx(min(VOTERS_A_LABEL, MOST_VOTERS * units / 80), 0.02)


def test_writers_get_what_the_others_leave():
    few, many = (proposed(Kind.BOTH, sizes(2, each), 1.0) for each in (1000, 100_000))
    assert sum(few.shares.values()) == pytest.approx(1, abs=0.02)
    assert few.shares[Stage.WRITE] < many.shares[Stage.WRITE]
    assert sum(many.shares.values()) == pytest.approx(1, abs=0.02), "nobody is idle"
    assert Stage.WRITE not in proposed(Kind.VOTE, sizes(2, 1000), 1.0).shares
    assert Stage.VOTE not in proposed(Kind.TOKENS, sizes(2, 1000), 1.0).shares


def test_all_of_epsilon_is_used_where_it_is_shared():
    for kind in Kind:
        for score in (True, False):
            assert sum(proposed(kind, sizes(3, 50), 1.0, score).shares.values()) == pytest.approx(1)


def test_many_labels_get_fewer_sets():
    sets = [proposed(Kind.VOTE, sizes(labels, 1000), 1.0).sets for labels in LABELS]
    assert sets[0] == 2
    assert sets == sorted(sets, reverse=True)
    assert sets[-2:] == [1, 1]


@pytest.mark.parametrize(("given", "epsilon"), [({}, 1.0), ({"a": 0, "b": 5}, 1.0), ({"a": 5, "b": 5}, 0.0)])
def test_numbers_that_mean_nothing_are_refused(given, epsilon):
    with pytest.raises(UsageError):
        proposed(Kind.VOTE, given, epsilon)
