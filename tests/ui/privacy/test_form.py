"""The form of step 2 describes a request; mechanisms bring their own parameters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dpicl_ui.privacy.form import PrivacyForm, RecipeForm, described, private_mechanisms
from mechanisms.runs.advice import proposed
from mechanisms.runs.recipe import Division, Kind, Stage
from mechanisms.runs.request import DECLARED_COUNTS, FILE_FORMAT

from mechanisms.accounting import fingerprint
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.demos.demo_set import MEASURED_SIZES
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.records import Dataset, Record
from mechanisms.sampling import Scheme
from mechanisms.steps import mechanism_names

DATASET = Dataset("d", ("a", "b"), tuple(Record("t", label) for label in "ab" for _ in range(30)))
OWN = [parameter.default for _, parameter in described()]
TOKENS = ["tokens", False, False, "roles", 32, 1, 3, 40, 0, 0, 0, 0, 0]
"""No stages."""
VALUES = [
    1.0,
    1e-5,
    "gaussian",
    "per-demonstration",
    True,
    8,
    2,
    4,
    1,
    1,
    20,
    16,
    "Classify.",
    "Text",
    "Topic",
    "private",
    2,
    "none",
    *OWN,
    *TOKENS,
]


def test_the_form_becomes_a_request():
    request = PrivacyForm.read(*VALUES).spec(DATASET).writing(DATASET)
    assert request.plan.subsets == 8
    assert request.plan.per_subset == 1
    assert request.sizes == {"a": 30, "b": 30}
    assert {DECLARED_COUNTS, FILE_FORMAT} <= set(request.public_inputs)
    assert request.template.label == "Topic"
    assert request.min_tokens == min(8, request.plan.tokens)


def test_subsets_take_their_size_from_the_form():
    values = [*VALUES]
    values[4] = False
    assert PrivacyForm.read(*values).spec(DATASET).writing(DATASET).plan.per_subset == 2


@pytest.mark.parametrize("position", [0, 1, 5, 7])
@pytest.mark.parametrize("value", [None, "", "many", float("nan")])
def test_a_missing_number_is_named_in_one_line(position, value):
    values = [*VALUES]
    values[position] = value
    with pytest.raises(UsageError, match=r"needs a number\.$"):
        PrivacyForm.read(*values)


def test_the_best_of_several_are_paid_for_where_there_are_no_stages():
    form = replace(PrivacyForm.read(*VALUES), shots=2, best_of=3)
    request = form.spec(DATASET).writing(DATASET)
    assert (request.plan.shots, request.kept) == (6, 2)
    assert PrivacyForm.read(*VALUES).spec(DATASET).writing(DATASET).kept is None
    written = replace(form, recipe=RecipeForm("both", score=True)).spec(DATASET).staged(DATASET).written
    assert (written.plan.shots, written.kept) == (2, None)


def test_half_a_token_is_refused():
    values = [*VALUES]
    values[7] = 4.5
    with pytest.raises(UsageError, match="whole number"):
        PrivacyForm.read(*values)


def with_transform(**changes):
    """The form with plausible token amplification, some of its parameters changed."""
    own = [changes.get(parameter.name, parameter.default) for _, parameter in described()]
    return PrivacyForm.read(*VALUES[:17], "pta", *own, *TOKENS)


def test_a_transform_takes_its_parameters_from_the_form():
    transform = with_transform(alpha=0.5, base=False).spec(DATASET).writing(DATASET).transform
    assert (transform.name, transform.alpha, transform.base) == ("pta", 0.5, False)


def test_a_hidden_transform_is_left_out():
    closed = next(each.name for each in private_mechanisms() if not each.takes_transform)
    assert replace(with_transform(), mechanism=closed).spec(DATASET).writing(DATASET).transform.name == "none"


def test_disjoint_batches_are_a_choice():
    values = [*VALUES]
    values[3] = "disjoint"
    assert PrivacyForm.read(*values).spec(DATASET).writing(DATASET).plan.scheme is Scheme.DISJOINT


def test_a_closed_combination_is_refused_with_its_reason():
    form = replace(PrivacyForm.read(*VALUES), mechanism="blended-logits", unit_rows=False)
    with pytest.raises(UsageError, match="closed with subsets"):
        form.spec(DATASET).writing(DATASET)


def test_baselines_are_no_choice():
    names = {each.name for each in private_mechanisms()}
    assert names
    assert not names & {"public", "non-private"}
    assert names < set(mechanism_names())


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [each.name for each in private_mechanisms()])
def test_calibration_solves_for_what_the_form_does_not_ask_for(mechanism):
    request = replace(PrivacyForm.read(*VALUES), mechanism=mechanism).spec(DATASET).writing(DATASET)
    calibrated = request.calibrated().mechanism
    changed = [
        p.name for p in parameters(calibrated) if getattr(calibrated, p.name) != getattr(request.mechanism, p.name)
    ]
    assert calibrated.calibrated in changed
    asked = {parameter.name for owner, parameter in described() if owner.name == mechanism}
    assert asked == {p.name for p in parameters(calibrated)} - {calibrated.calibrated}


# The presets of step 2 describe runs in stages: as they are proposed, or as an expert set them.

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
