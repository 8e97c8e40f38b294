"""The presets of step 2 describe runs in stages: as they are proposed, or as an expert set them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpicl_ui.privacy.form import PrivacyForm, RecipeForm
from mechanisms.accounting import fingerprint
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.demos.demo_set import MEASURED_SIZES
from mechanisms.errors import UsageError
from mechanisms.records import Dataset, Record
from mechanisms.runs.advice import proposed
from mechanisms.runs.recipe import Division, Kind, Stage
from mechanisms.runs.request import DECLARED_COUNTS
from tests.ui.privacy.test_form import DATASET, OWN, TOKENS, VALUES

FIRST = VALUES[: -len(TOKENS)]
SIZES = DATASET.counted_sizes()
BY_USER = Dataset("d", ("a", "b"), tuple(Record("t", label, f"u{i}") for label in "ab" for i in range(30)), "who")


def by_hand(kind: str = "vote", no_score: bool = False, **changes: object) -> list[object]:
    stages = {"division": "roles", "drafts": 12, "rounds": 2, "sets": 4, "tokens": 25}
    shares = {"write": 0, "vote": 40, "calibrate": 20, "choose": 20, "score": 20}
    named = {**stages, **shares, **changes}
    return [kind, no_score, True, *(named[name] for name in (*stages, *shares))]


def form(*recipe: object) -> PrivacyForm:
    return PrivacyForm.read(*FIRST, *recipe)


@pytest.mark.parametrize("kind", [Kind.VOTE, Kind.BOTH])
@pytest.mark.parametrize("no_score", [False, True])
def test_a_preset_is_what_the_planner_proposes(kind, no_score):
    request = form(kind.value, no_score, *TOKENS[2:]).spec(DATASET).staged(DATASET)
    assert request.recipe == proposed(kind, SIZES, 1.0, not no_score)
    assert (Stage.SCORE in request.recipe.shares) is not no_score
    assert (request.written is not None) is (kind is Kind.BOTH)
    assert request.tokens == 40


def test_a_request_in_stages_is_of_the_same_data_and_settings_as_one_token_by_token():
    filled = form("vote", False, *TOKENS[2:])
    ours, theirs = filled.spec(DATASET).staged(DATASET), filled.spec(DATASET).writing(DATASET)
    for name in ("labels", "template", "target", "sizes", "content", "by_user", "max_record_tokens", "public_inputs"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.shots == theirs.plan.shots
    assert filled.spec(BY_USER).staged(BY_USER).by_user


def test_what_is_set_by_hand_is_taken():
    recipe = form(*by_hand()).spec(DATASET).staged(DATASET).recipe
    assert (recipe.drafts, recipe.rounds, recipe.sets, recipe.division) == (12, 2, 4, Division.ROLES)
    assert recipe.shares == {Stage.VOTE: 0.4, Stage.CALIBRATE: 0.2, Stage.CHOOSE: 0.2, Stage.SCORE: 0.2}
    assert form(*by_hand(tokens=25)).spec(DATASET).staged(DATASET).tokens == 25


def test_shares_that_are_hidden_do_not_count():
    recipe = form(*by_hand(no_score=True, write=30, vote=60)).spec(DATASET).staged(DATASET).recipe
    assert set(recipe.shares) == {Stage.VOTE, Stage.CALIBRATE, Stage.CHOOSE}


def test_numbers_that_are_not_asked_for_do_not_matter():
    assert RecipeForm.read("vote", False, False, None, *[None] * 9).stages is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vote": 90}, "more than 1"),
        ({"vote": -1}, "must lie in"),
        ({"vote": 0}, "needs a share"),
        ({"calibrate": 0}, "needs the stage 'calibrate'"),
        ({"score": None}, "share of 'score' needs a number"),
        ({"drafts": 2.5}, "whole number"),
        ({"rounds": 99}, "rounds must lie"),
        ({"tokens": 1}, "tokens must lie"),
    ],
)
def test_stages_that_make_no_recipe_are_refused_in_one_line(changes, words):
    with pytest.raises(UsageError, match=words) as refused:
        form(*by_hand(**changes)).spec(DATASET).staged(DATASET)
    assert "\n" not in str(refused.value)


def test_settings_that_vote_does_not_have_cannot_close_it():
    closed = replace(form("vote", False, *TOKENS[2:]), mechanism="blended-logits", unit_rows=False)
    assert closed.spec(DATASET).staged(DATASET).written is None
    with pytest.raises(UsageError, match="closed with subsets"):
        replace(closed, recipe=replace(closed.recipe, kind="both")).spec(DATASET).staged(DATASET)


@pytest.mark.parametrize("kind", ["vote", "both"])
def test_measured_sizes_are_those_of_all_stages_and_are_paid_first(kind):
    measured = MeasuredSizes({"a": 3000, "b": 4000}, 0.25, 1e-9, fingerprint(DATASET).content)
    request = form(kind, False, *TOKENS[2:]).spec(DATASET, measured).staged(DATASET)
    assert request.sizes == measured.sizes
    assert request.recipe == proposed(Kind(kind), measured.sizes, 0.75)
    assert request.epsilon(Stage.CHOOSE) == 0.75
    for each in (request, *([request.written] if request.written else [])):
        assert each.public_inputs.count(MEASURED_SIZES) == 1
        assert DECLARED_COUNTS not in each.public_inputs


def test_counting_may_have_used_up_epsilon():
    measured = MeasuredSizes(SIZES, 1.0, 1e-9, fingerprint(DATASET).content)
    with pytest.raises(UsageError, match="used up epsilon"):
        form("vote", False, *TOKENS[2:]).spec(DATASET, measured).staged(DATASET)


def test_parameters_of_mechanisms_are_not_mistaken_for_stages():
    assert form(*by_hand()).parameters == tuple(OWN)
