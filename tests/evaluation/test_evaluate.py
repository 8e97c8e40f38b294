"""Classification scores and their statistics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.demos.demo_set import (
    DEMONSTRATIONS,
    PUBLIC_ONLY,
    ZERO_SHOT,
    ArmScore,
    Baselines,
    PublicSet,
    Score,
    loads,
)
from mechanisms.evaluation.evaluate import (
    PRIVATE,
    Accuracy,
    MeanRecall,
    Progress,
    Scorecard,
    arms_of,
    evaluate,
    gain,
    verdict_of_score,
)
from mechanisms.evaluation.reader import Arm, LocalReader, as_read_by, readers_in_words, without_corrections
from mechanisms.records import Demonstration, PromptTemplate, Record
from mechanisms.runs.drafts import public_demonstrations
from tests.exports.sets import demo_set
from tests.toy_model import ToyModel

TEMPLATE = PromptTemplate("Classify.", "T", "L")
LABELS = ("red", "green", "blue")
PRIOR = {"red": -100.0, "green": 0.0, "blue": 100.0}
"""Says "blue" to everything."""


def test_wilson_interval_matches_its_formula():
    accuracy, z = Accuracy(45, 60), 1.959963984540054
    centre = (0.75 + z**2 / 120) / (1 + z**2 / 60)
    half = z / (1 + z**2 / 60) * (0.75 * 0.25 / 60 + z**2 / (4 * 60**2)) ** 0.5
    assert accuracy.interval == pytest.approx((centre - half, centre + half))


def test_confusion_counts_every_row_under_its_true_label():
    test = [Record(f"text {i}", LABELS[i % 3]) for i in range(20)] + [Record("unknown", "purple")]
    told = list(evaluate(LocalReader(ToyModel()), TEMPLATE, LABELS, [Arm("one", ()), Arm("two", (), PRIOR)], test))
    cards = [each for each in told if isinstance(each, Scorecard)]
    assert [card.name for card in cards] == ["one", "two"]
    for card in cards:
        assert card.confusion.sum(axis=1).tolist() == [7, 7, 6]
        assert (card.corrected or card.calibrated).correct == card.confusion.trace()
    assert cards[0].corrected is None
    assert max(each.done for each in told if isinstance(each, Progress)) <= 40


WRITTEN, PUBLIC = (Demonstration("a", "News"),), (Demonstration("b", "Sport"),)
OWN, WITHOUT = {"News": 0.5, "Sport": -0.5}, {"News": 0.1, "Sport": -0.1}


def test_a_set_stands_beside_what_was_measured_for_each():
    measured = replace(demo_set(*WRITTEN), prior=OWN, baselines=Baselines(WITHOUT, None))
    assert arms_of(measured, PUBLIC) == (
        Arm(ZERO_SHOT, (), WITHOUT),
        Arm(PUBLIC_ONLY, PUBLIC),
        Arm(PRIVATE, WRITTEN, OWN),
    )
    assert [arm.prior for arm in arms_of(demo_set(*WRITTEN), PUBLIC)] == [None, None, None]
    none = replace(demo_set(), prior=OWN, baselines=Baselines(WITHOUT, None))
    assert arms_of(none, ()) == (Arm(ZERO_SHOT, (), OWN),)


def test_the_public_set_of_a_run_is_read_in_its_own_words_with_its_own_correction():
    words = PromptTemplate("Sort.", "Text", "Label")
    brought = PublicSet(PUBLIC, words, {"News": 0.2, "Sport": -0.2})
    chosen = replace(demo_set(*WRITTEN), prior=OWN, baselines=Baselines(WITHOUT, brought))
    assert public_demonstrations(chosen, ToyModel()) == PUBLIC
    assert arms_of(chosen, PUBLIC)[1] == Arm(PUBLIC_ONLY, PUBLIC, brought.prior, words)
    assert arms_of(without_corrections(chosen), PUBLIC)[1] == Arm(PUBLIC_ONLY, PUBLIC, None, words)
    assert loads(chosen.dumps()).baselines == chosen.baselines


def test_balanced_accuracy_is_the_mean_recall_and_naming_the_commonest_label_gains_nothing_by_it():
    always = Scorecard("always", Accuracy(90, 100), None, None, np.array([[90, 0, 0], [8, 0, 0], [1, 0, 0]]), (0, 0, 1))
    assert always.majority == (0, Accuracy(90, 100))
    assert [each.value for each in always.recalls] == [1.0, 0.0, 0.0]
    assert always.balanced.value == pytest.approx(1 / 3)
    low, high = always.balanced.interval
    assert low < 1 / 3 < high
    fair = Scorecard("fair", Accuracy(10, 10), None, None, np.diag([9, 1, 0]))
    assert fair.recalls[2] is None  # no row of it
    assert fair.balanced.value == 1


def test_intervals_of_balanced_accuracy_hold_the_truth_as_often_as_they_say():
    generator, rates, rows, held = np.random.default_rng(2), np.array([0.9, 0.5, 0.2]), np.array([300, 60, 25]), 0
    for _ in range(2000):
        right = generator.binomial(rows, rates)
        low, high = MeanRecall(tuple(map(Accuracy, right.tolist(), rows.tolist()))).interval
        held += low <= rates.mean() <= high
    assert 0.93 < held / 2000 < 0.98


# Who reads a set, and what another model than its writer must not take over.

MEASURED_PRIOR = {"News": 0.5, "Sport": -0.5}
PLAIN = demo_set(Demonstration("one", "News"))
MEASURED = replace(PLAIN, prior=MEASURED_PRIOR, baselines=Baselines(MEASURED_PRIOR, None))


class Namesake(ToyModel):
    """Another model by the name of the writer."""

    sha256 = "1" * 64


def test_weights_decide_and_not_the_name():
    read = as_read_by(MEASURED, Namesake())
    assert (read.prior, read.baselines) == (None, Baselines(None, None))
    assert read == replace(MEASURED, prior=None, baselines=read.baselines)
    assert "contextual calibration" in readers_in_words(MEASURED, Namesake())


# The one sentence on a set: praise only where an interval allows it.

ARM = ArmScore(0.7, (0.65, 0.75))


def score(alone: tuple[float, float], public: tuple[float, float]) -> Score:
    gains = {ZERO_SHOT: ArmScore(sum(alone) / 2, alone), PUBLIC_ONLY: ArmScore(sum(public) / 2, public)}
    return Score({ZERO_SHOT: ARM, PUBLIC_ONLY: ARM, DEMONSTRATIONS: ARM}, True, gains=gains)


def test_each_difference_is_told_as_far_as_its_interval_allows():
    assert verdict_of_score(score((0.01, 0.2), (-0.1, 0.1)), False, 0.5) == (
        "These demonstrations are better than the model alone and naming the largest label every time; not shown to "
        "differ from public text."
    )
    assert "worse than public text" in verdict_of_score(score((0.01, 0.2), (-0.2, -0.01)), False, 0.5)
    assert "not shown to differ from naming" in verdict_of_score(score((0.01, 0.2), (0.01, 0.2)), False, 0.7)


interval = st.tuples(st.floats(-1, 1), st.floats(-1, 1)).map(sorted).map(tuple)


@given(alone=interval, public=interval, majority=st.floats(0, 1), held_out=st.booleans())
def test_nothing_is_praised_whose_interval_holds_zero(alone, public, majority, held_out):
    """Rows that may have chosen the set say less."""
    said = verdict_of_score(replace(score(alone, public), held_out=held_out), False, majority).split(";")
    words = "better than" if held_out else "ahead, on rows that may have taken part in the choice, of"
    praise = next((each for each in said if words in each), "")
    assert held_out or not any("better than" in each for each in said)
    for name, low in (("the model alone", alone[0]), ("public text", public[0]), ("naming", 0.65 - majority)):
        assert (name in praise) == (low > 0)


@pytest.mark.parametrize(("rates", "rows"), [((0.7, 0.6), 100), ((0.9, 0.9), 60), ((0.5, 0.2), 200)])
def test_nine_in_ten_intervals_of_a_difference_and_more_hold_it(rates, rows):
    rng, held = np.random.default_rng(1), 0
    for _ in range(400):
        one, other = (Accuracy(float(rng.binomial(rows, rate)), rows) for rate in rates)
        low, high = gain(one, other)
        held += low <= rates[0] - rates[1] <= high
    assert held >= 0.92 * 400
