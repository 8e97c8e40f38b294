"""What is asked of a run: what is left open follows from public numbers, and what does not go together is refused."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from mechanisms.accounting import PrivacyTarget, fingerprint
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.errors import UsageError
from mechanisms.records import Dataset, Record
from mechanisms.runs.advice import MOST_CORRECTED_LABELS, proposed
from mechanisms.runs.defaults import MOST_WRITTEN_LABELS
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage
from mechanisms.runs.recipe_request import has_stages
from mechanisms.runs.request import DECLARED_COUNTS, DECLARED_SIZES
from mechanisms.runs.spec import RunSpec
from mechanisms.steps import mechanism_class

TARGET = PrivacyTarget(1.0, 1e-5)
SPEC = RunSpec(TARGET)


def data(each: int, *labels: str) -> Dataset:
    return Dataset("d", labels, tuple(Record(f"{label} {i}", label) for label in labels for i in range(each)))


DATA = data(9, "a", "b")


def test_a_run_of_which_nothing_is_said_is_the_proposal_for_its_public_sizes():
    request = SPEC.request(DATA)
    assert request.recipe == proposed(Kind.BOTH, {"a": 9, "b": 9}, 1.0)
    assert request.written.plan.subsets == 9, "no more rows than the smallest label has"
    assert DECLARED_COUNTS in request.public_inputs
    assert not has_stages(SPEC.request(data(9, "a"))), "texts of one kind have no stages"
    assert not has_stages(replace(SPEC, best_of=2).request(DATA))


def test_many_labels_are_voted_for_and_still_more_are_not_corrected():
    for labels, kind, corrected in (
        (MOST_WRITTEN_LABELS, Kind.BOTH, True),
        (MOST_WRITTEN_LABELS + 1, Kind.VOTE, True),
        (MOST_CORRECTED_LABELS + 1, Kind.VOTE, False),
    ):
        recipe = SPEC.request(data(3, *(f"label {i}" for i in range(labels)))).recipe
        assert recipe.kind is kind
        assert (Stage.CALIBRATE in recipe.shares) is (Stage.CHOOSE in recipe.shares) is corrected
        assert Stage.SCORE in recipe.shares


@pytest.mark.parametrize(
    "said",
    [
        {"mechanism": mechanism_class("noisy-max")()},
        {"tokens": 12},
        {"subsets": 2},
        {"shares": dict.fromkeys(Stage, 1 / len(Stage))},
    ],
)
def test_whoever_says_how_to_write_gets_many_labels_written_too(said):
    many = data(3, *(f"label {i}" for i in range(MOST_WRITTEN_LABELS + 1)))
    assert replace(SPEC, **said).request(many).recipe.kind is Kind.BOTH


def test_two_data_sets_with_the_same_public_numbers_get_the_same_request_but_for_their_content():
    other = Dataset("d", ("a", "b"), tuple(replace(each, text=each.text * 2) for each in DATA.records))
    assert SPEC.request(other) == SPEC.request(DATA).for_content(fingerprint(other).content)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("division", Division.ROLES), ("shares", dict.fromkeys(Stage, 1 / len(Stage))), ("drafts", 7), ("rounds", 2),
        ("sets", 1),
    ],
)  # fmt: skip
def test_what_is_said_of_the_stages_stands_in_them(field, value):
    assert field in {each.name for each in fields(Recipe)}
    assert getattr(replace(SPEC, **{field: value}).request(DATA).recipe, field) == value


def test_a_vote_does_not_look_at_settings_of_the_writing_that_it_does_not_have():
    closed = replace(SPEC, mechanism=mechanism_class("blended-logits")(), unit_rows=False, per_subset=2)
    assert replace(closed, recipe=Kind.VOTE).request(DATA).written is None
    with pytest.raises(UsageError, match="closed with subsets"):
        replace(closed, recipe=Kind.BOTH).request(DATA)


def test_measured_sizes_are_paid_before_the_stages_and_decide_how_many_rows_join():
    measured = MeasuredSizes({"a": 400, "b": 20}, 0.25, 1e-9, fingerprint(DATA).content)
    request = replace(SPEC, sizes=measured).request(DATA)
    assert request.recipe == proposed(Kind.BOTH, measured.sizes, 0.75)
    assert request.written.plan.subsets == 20
    assert not {DECLARED_COUNTS, DECLARED_SIZES} & set(request.public_inputs)
    with pytest.raises(UsageError, match="used up"):
        replace(SPEC, sizes=replace(measured, epsilon=1.0)).request(DATA)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"recipe": Kind.BOTH, "best_of": 2}, "best of several"),
        ({"sizes": "all"}, "a number for each label"),
        ({"sizes": {"a": 9}}, "declared size"),
        ({"score": False, "shares": dict.fromkeys(Stage, 1 / len(Stage))}, "Without a private score"),
        ({"shares": {Stage.WRITE: 0.9, Stage.VOTE: 0.9}}, "more than 1"),
        ({"recipe": Kind.VOTE, "shares": {Stage.WRITE: 0.5, Stage.VOTE: 0.5}}, "no stage"),
        ({"subsets": 0}, "subsets must lie"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(changes, words):
    with pytest.raises(UsageError, match=words) as refused:
        replace(SPEC, **changes).request(DATA)
    assert "\n" not in str(refused.value)
