"""What is asked of a run: what is left open follows from public sizes, and what does not go together is refused."""

from __future__ import annotations

from itertools import count, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.accounting import claim, fingerprint
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.errors import UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Composed
from mechanisms.public_inputs import DECLARED_COUNTS, DECLARED_SIZES
from mechanisms.records import RECORD, Dataset, Record
from mechanisms.runs.completion import (
    FEWEST_DRAFTS,
    FEWEST_FOR_WORDS,
    MOST_CORRECTED_LABELS,
    MOST_DRAFTS,
    MOST_PROMPTED,
    complete,
    fewest_for_roles,
)
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.spec import (
    CALIBRATE,
    OPENINGS,
    SCORE,
    SETTINGS,
    SOURCES,
    VOTE,
    WORDS,
    WRITE,
    Group,
    Recipe,
    RunSettings,
    RunSpec,
    Split,
)
from mechanisms.runs.stages import stages_in_order
from mechanisms.runs.stages.score import ScoreStage
from mechanisms.runs.work import Speed, measure_speed
from mechanisms.sampling import Scheme
from mechanisms.tallies import Weighing
from tests.conftest import nightly_but
from tests.told_settings import check_told
from tests.toy_model import ToyModel

SPEC = RunSpec()


def test_editors_are_told_the_settings_that_there_are():
    check_told(RunSettings, RunSpec)


def data(each: int, *labels: str) -> Dataset:
    return Dataset("d", labels, tuple(Record(f"{label} {i}", label) for label in labels for i in range(each)))


DATA = data(9, "a", "b")


def sizes(labels: int, each: int) -> dict[str, int]:
    return {f"label {i}": each for i in range(labels)}


# One model: every setting has its words, and says what is wrong in one line.


def test_every_setting_has_its_words_and_a_flag_of_its_own():
    assert all(each.field.title and each.field.description and each.group in Group for each in SETTINGS.values())
    assert len({each.flag for each in SETTINGS.values()}) == len(SETTINGS)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"epsilon": 0}, "Epsilon"),
        ({"epsilon": float("nan")}, "Epsilon"),
        ({"delta": 1.0}, "Delta"),
        ({"mechanism": "mine"}, "no mechanism"),
        ({"mechanism": "blended-logits", "transform": "pta"}, "works on logits"),
        ({"parameters": {"step-epsilon": 1.0}}, "no parameter"),
        ({"parameters": {"noise-multiplier": -1.0}}, "must lie between"),
        ({"subsets": 1000, "per_subset": 1000}, "100000 rows"),
        ({"sizes": {"a": 1}, "count_epsilon": 0.1}, "not both"),
        ({"kind": " "}, "kind of text"),
        ({"text_field": " "}, "must not be empty"),
        ({"shares": {"choose": 0.5}}, "no stage 'choose'"),
        ({"shares": {WRITE: 0.9, VOTE: 0.9}}, "more than 1"),
        ({"recipe": "vote", "shares": {WRITE: 0.5, VOTE: 0.5}}, "has no stage 'write'"),
        ({"recipe": "both", "shares": {VOTE: 0.5}}, "needs a share for the stage 'write'"),
        ({"score": False, "shares": {VOTE: 0.5, SCORE: 0.5}}, "Without a private score"),
        ({"rounds": 2}, "no setting 'rounds'"),
        ({"scheme": "disjoint"}, "Sampling"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(values, words):
    for refuse in (RunSpec.of, SPEC.with_):
        with pytest.raises(UsageError, match=words) as refused:
            refuse(**values)
        assert str(refused.value).isprintable()


# What follows from public sizes.


public_sizes = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=2), st.integers(1, 10**6), min_size=1, max_size=40
)
asked = st.fixed_dictionaries(
    {},
    optional={
        "epsilon": st.floats(0.01, 20),
        "recipe": st.sampled_from(Recipe),
        "split": st.sampled_from(Split),
        "score": st.booleans(),
        "shots": st.integers(1, 50),
        "drafts": st.integers(2, 256),
        "tokens": st.integers(1, 100),
        "subsets": st.integers(1, 300),
        "scheme": st.sampled_from(Scheme),
        "weighing": st.sampled_from(Weighing),
        "mechanism": st.sampled_from(["gaussian", "noisy-max", "adadpsyn", "blended-logits"]),
    },
)


@settings(max_examples=300)
@given(asked, public_sizes)
def test_whatever_is_asked_and_whatever_the_sizes_nothing_is_left_open(values, of):
    found = complete(RunSpec.of(**values), of)
    for name, value in values.items():
        assert getattr(found, name) == value, "what was said stands"
    left = {name for name in RunSpec.model_fields if getattr(found, name) is None}
    assert left <= {"sizes", "count_epsilon", "per_subset", "instruction"}
    assert sum(found.shares.values()) <= 1 + 1e-9
    assert all(share > 0 for share in found.shares.values())
    assert set(found.shares) & {WRITE, VOTE} == SOURCES[found.recipe]
    assert list(found.shares) == [name for name in stages_in_order() if name in found.shares], "in the order of a run"
    assert found.score or SCORE not in found.shares
    assert found.min_tokens <= found.tokens
    if "drafts" not in values:
        assert max(FEWEST_DRAFTS, 2 * found.shots) <= found.drafts <= max(MOST_DRAFTS, 2 * found.shots)
    if "subsets" not in values:
        assert found.subsets <= max(4, min(of.values()))
    if found.recipe is not Recipe.TOKENS and len(of) > 1:
        judged = found.shots <= MOST_PROMPTED
        assert (SCORE in found.shares) == (judged and found.score)
        assert (CALIBRATE in found.shares) == (judged and len(of) <= MOST_CORRECTED_LABELS)
        assert (WORDS in found.shares) == (min(of.values()) * found.epsilon >= FEWEST_FOR_WORDS)
        assert OPENINGS not in found.shares
    assert complete(found, of) == found, "what is complete stays as it is"


@settings(max_examples=60)
@given(asked, public_sizes, st.booleans(), st.booleans())
def test_a_run_without_token_steps_costs_at_most_its_epsilon(values, of, by_user, measured):
    """Its noise follows from epsilon; that of token steps is calibrated, in the test below."""
    spec = complete(RunSpec.of(**values | {"recipe": "vote", "epsilon": values.get("epsilon", 1.0) + 0.02}), of)
    counted = MeasuredSizes(of, 0.01, 1e-9, "") if measured else None
    plan = Plan(spec=spec, labels=tuple(of), sizes=of, unit="user:who" if by_user else "record", measured=counted)
    assert plan.claim().epsilon <= spec.epsilon * (1 + 1e-9)
    assert plan.claim().delta == spec.delta


CALIBRATED = [
    {},
    {"split": "roles", "scheme": "per-token", "tokens": 3},
    {"split": "epsilon", "mechanism": "noisy-max", "tokens": 3},
    {"recipe": "tokens"},
    {"recipe": "tokens", "per_subset": 2, "subsets": 5},
    {"recipe": "both", "split": "roles", "epsilon": 0.2},
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "by_user", "measured"), nightly_but(product(CALIBRATED, (False, True), (False, True)), every=3), ids=str
)
def test_a_calibrated_run_costs_its_epsilon_and_no_more(values, by_user, measured):
    of = {"a": 700, "b": 3000}
    counted = MeasuredSizes(of, 0.05, 1e-9, "") if measured else None
    unit = "user:who" if by_user else "record"
    plan = Plan(spec=complete(RunSpec.of(**values), of), labels=tuple(of), sizes=of, unit=unit, measured=counted)
    ready = plan.calibrated()
    assert 0.9 * plan.spec.epsilon < ready.claim().epsilon <= plan.spec.epsilon * (1 + 1e-9)


def test_roles_from_the_number_of_units_on_at_which_each_is_large_enough():
    for labels in (2, 4, 14, 150):
        fewest = fewest_for_roles(labels)
        others = {f"label {i}": 1 for i in range(1, labels)}
        assert complete(SPEC, {"a": fewest - labels, **others}).split is Split.EPSILON
        assert complete(SPEC, {"a": fewest - labels + 1, **others}).split is Split.ROLES
    assert fewest_for_roles(4) < fewest_for_roles(10) < fewest_for_roles(20) == fewest_for_roles(1000)


# For a data set.


def test_two_data_sets_with_the_same_public_numbers_get_the_same_plan_but_for_their_content():
    other = Dataset("d", ("a", "b"), tuple(Record(each.text * 2, each.label) for each in DATA.records))
    one = plan_for(SPEC.with_(sizes="counted"), DATA)
    assert plan_for(SPEC.with_(sizes="counted"), other) == one.for_content(fingerprint(other).content)
    assert DECLARED_COUNTS in one.public_inputs
    assert one.spec.subsets == 9, "no more rows than the smallest label has"


def test_sizes_have_to_be_said():
    with pytest.raises(UsageError, match="how large each label is"):
        plan_for(SPEC, DATA)
    for wrong in ({"a": 9}, {"a": 9, "b": 9, "c": 9}):
        with pytest.raises(UsageError, match="declared size"):
            plan_for(SPEC.with_(sizes=wrong), DATA)
    assert DECLARED_SIZES in plan_for(SPEC.with_(sizes={"a": 900, "b": 20}), DATA).public_inputs


def test_measured_sizes_are_paid_before_the_stages_and_decide_how_many_rows_join():
    measured = MeasuredSizes({"a": 400, "b": 20}, 0.25, 1e-9, fingerprint(DATA).content)
    plan = plan_for(SPEC, DATA, measured)
    assert plan.spec.subsets == 20
    assert sum(plan.epsilon(stage) for stage in plan.stages) <= 0.75 * (1 + 1e-9)
    assert not {DECLARED_COUNTS, DECLARED_SIZES} & set(plan.public_inputs)
    with pytest.raises(UsageError, match="used up"):
        plan_for(SPEC, DATA, MeasuredSizes(measured.sizes, 1.0, 1e-9, measured.content))
    with pytest.raises(UsageError, match="measured on another file"):
        plan_for(SPEC, DATA, MeasuredSizes(measured.sizes, 0.25, 1e-9, "another file"))


@pytest.mark.parametrize("stage", [name for name, stage in stages_in_order().items() if name not in SOURCES["both"]])
@pytest.mark.parametrize("each", [200, 20_000])
def test_a_stage_that_is_not_usual_runs_only_with_a_share(stage, each, monkeypatch):
    monkeypatch.setattr(stages_in_order()[stage], "usual", False)
    assert stage not in complete(SPEC, sizes(2, each)).shares
    asked = complete(SPEC.with_(recipe="both", shares={"write": 0.4, "vote": 0.3, stage: 0.3}), sizes(2, each))
    assert stage in asked.shares


@pytest.mark.parametrize("name", ["public", "non-private"])
def test_a_recipe_does_not_write_without_privacy(name):
    with pytest.raises(UsageError, match="choose a private mechanism"):
        complete(SPEC.with_(recipe="both", mechanism=name), sizes(2, 100))


def test_a_vote_does_not_look_at_settings_of_the_writing_that_it_does_not_have():
    closed = SPEC.with_(mechanism="blended-logits", per_subset=2, sizes="counted")
    assert WRITE not in plan_for(closed.with_(recipe="vote"), DATA).stages
    with pytest.raises(UsageError, match="not available with subsets"):
        _ = plan_for(closed.with_(recipe="both"), DATA).mechanism


# What is said of a run before it runs: its claim, its warnings, its work; all from public numbers.

LABELS = ("a", "b")
SPEED = Speed(1e-3, 2e-3, 1e-3)


def plan_of(recipe: str = "vote", size: int = 3000, by_user: bool = False, sizes=None, **settings: Any) -> Plan:
    sizes = sizes or dict.fromkeys(LABELS, size)
    spec = complete(RunSpec.of(**{"delta": 1e-6, "recipe": recipe} | settings), sizes)
    return Plan(spec=spec, labels=tuple(sizes), sizes=sizes, unit="user:who" if by_user else RECORD)


def score_of(plan: Plan) -> ScoreStage:
    stage = plan.stages[SCORE]
    assert isinstance(stage, ScoreStage)
    return stage


@pytest.mark.parametrize("split", Split)
@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize("sizes", [{"a": 200, "b": 30}, {"a": 5, "b": 200}])
def test_a_stage_is_told_by_its_dearest_list(split, by_user, sizes):
    """Labels of unequal sizes are sampled at unequal rates; the smallest may be sampled whole, with fewer events."""

    def price(events) -> float:
        return claim(Composed("role", (("one", events),)), 1e-5).epsilon

    plan = plan_of("both", by_user=by_user, sizes=sizes, split=split, parameters={"noise-multiplier": 20.0})
    told = {each.name: price((each.event,)) for each in plan.stage_records()}
    assert set(told) == set(plan.stages)
    for name in plan.shares:
        dearest = max(price(events) for _, events in plan.stages[name].charges())
        assert told[name] == pytest.approx(dearest, rel=1e-3)


def test_few_rows_are_warned_of_and_many_are_not():
    few = [each for _, each in plan_of(size=30).warnings()]
    assert any("winners may be chance" in each for each in few)
    assert any("correction may be chance" in each for each in few)
    assert any("wider than 20 points" in each for each in few)
    assert not [*plan_of(size=3000).warnings()]


def test_tokens_that_few_rows_decide_are_warned_of():
    noisy, quiet = (plan_of("both", parameters={"noise-multiplier": noise}).warnings() for noise in (100.0, 1.0))
    assert any("decide few tokens" in each for _, each in noisy)
    assert not any("decide few tokens" in each for _, each in quiet)


@pytest.mark.parametrize(("labels", "said"), [(MOST_CORRECTED_LABELS, False), (MOST_CORRECTED_LABELS + 1, True)])
def test_many_labels_are_told_of_prototypes_before_the_run(labels, said):
    plan = plan_of(sizes={f"label {i}": 100 for i in range(labels)})
    assert any("Class prototypes" in each for _, each in plan.warnings()) is said


def test_the_margin_is_about_what_the_score_gives():
    plan = plan_of()
    rows, tally = round(plan.units(SCORE)), score_of(plan).tally
    randomness, rng, halves = SeededRandomness(1), np.random.default_rng(2), []
    for _ in range(30):
        right = rng.random((rows, 3)) < 0.5
        estimate = tally.accuracy(tally.release(tally.cells(right), randomness), 0)
        halves.append((estimate.high - estimate.low) / 2)
    assert score_of(plan).margin == pytest.approx(float(np.mean(halves)), rel=0.1)


# The work of a run.


def seconds(plan: Plan) -> float:
    return SPEED.seconds(plan.work)


@pytest.mark.parametrize(
    "longer",
    [
        {"drafts": 60},
        {"draft_tokens": 80},
        {"max_record_tokens": 128},
        {"recipe": "both", "mechanism": "gaussian"},
        {"split": "epsilon"},
        {"shots": 4},
    ],
    ids=str,
)
def test_more_work_takes_longer(longer):
    assert seconds(plan_of(**longer)) > seconds(plan_of())


@pytest.mark.parametrize(("tick", "lengths"), [(0.1, [16, 16, 64, 64]), (1.0, [16, 16])], ids=["fast", "slow"])
def test_a_model_is_measured_behind_its_first_pass(tick, lengths):
    ticks = count()
    model = ToyModel()
    speed = measure_speed(model, clock=lambda: tick * next(ticks))
    assert speed.position == pytest.approx(tick / (32 * lengths[-1]))
    assert speed.token == pytest.approx(tick / (32 * 4))
    assert [length for _, length, _ in model.opened] == lengths, "the first pass takes memory"
