"""Classification scores, with which correction they are read, and their statistics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

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
from mechanisms.errors import UsageError
from mechanisms.evaluation.classifier import CONTENT_FREE, Classifier
from mechanisms.evaluation.evaluate import PRIVATE, Accuracy, MeanRecall, Progress, Scorecard, arms_of, evaluate
from mechanisms.evaluation.reader import Arm, LocalReader, as_read_by, readers_in_words, without_corrections
from mechanisms.evaluation.verdict import gain, verdict_of_score
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
        Arm(PRIVATE, WRITTEN, OWN, measured.prompt),
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
    for _ in range(1000):
        right = generator.binomial(rows, rates)
        low, high = MeanRecall(tuple(map(Accuracy, right.tolist(), rows.tolist()))).interval
        held += low <= rates.mean() <= high
    assert 0.93 < held / 1000 < 0.98


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
    words = "better than" if held_out else "ahead, on rows that may have taken part in the run, of"
    praise = next((each for each in said if words in each), "")
    assert held_out or not any("better than" in each for each in said)
    for name, low in (("the model alone", alone[0]), ("public text", public[0]), ("naming", 0.65 - majority)):
        assert (name in praise) == (low > 0)


@pytest.mark.parametrize(("rates", "rows"), [((0.7, 0.6), 100), ((0.9, 0.9), 60), ((0.5, 0.2), 200)])
def test_nine_in_ten_intervals_of_a_difference_and_more_hold_it(rates, rows):
    rng, held = np.random.default_rng(1), 0
    for _ in range(400):
        one, other = (Accuracy(int(rng.binomial(rows, rate)), rows) for rate in rates)
        low, high = gain(one, other)
        held += low <= rates[0] - rates[1] <= high
    assert held >= 0.92 * 400


# Scores of labels: whose numbers they are.

SHOWN = (Demonstration("x", "red"),)
CORRECTION = {"red": 0.5, "green": -1.0, "blue": 0.25}


class Words(ToyModel):
    """Every label is one token, but for "green"."""

    def encode(self, text):
        return [1] if text == " red" else [2] if text == " blue" else super().encode(text)


def classifier(model=None, labels=LABELS, **changes) -> Classifier:
    return Classifier(model or ToyModel(), TEMPLATE, labels, SHOWN, **changes)


@pytest.mark.parametrize("model", [ToyModel(), Words()])
def test_scores_are_the_label_probabilities_of_the_model(model):
    [scores] = Classifier(model, TEMPLATE, LABELS, ()).log_probabilities(["hello"])
    prompt = model.encode("Classify.\n\nT: hello\nL:")
    expected = [model.open([], [prompt], len(prompt), 8).score(model.encode(" " + label))[0] for label in LABELS]
    assert scores == pytest.approx(log_softmax(expected))


def test_each_reading_is_the_raw_one_with_its_correction():
    """Zhao et al. 2021 divide the probabilities by the mean over content-free queries; a prior is added to the logs."""
    made = classifier(prior=CORRECTION)
    [prediction] = made.predict(["hello"])
    empty = softmax(made.log_probabilities(CONTENT_FREE), axis=1).mean(axis=0)
    assert made.contextual == pytest.approx(-np.log(empty))
    divided = prediction.raw / empty
    assert prediction.calibrated == pytest.approx(divided / divided.sum())
    multiplied = prediction.raw * np.exp(list(CORRECTION.values()))
    assert prediction.corrected == pytest.approx(multiplied / multiplied.sum())
    assert prediction.answer is prediction.corrected


def test_the_prior_is_read_by_label_and_not_by_order():
    turned = dict(reversed(CORRECTION.items()))
    corrected = [next(classifier(prior=prior).predict(["hello"])).corrected for prior in (CORRECTION, turned)]
    assert np.array_equal(*corrected)


@pytest.mark.parametrize("prior", [{"red": 0.0}, {**CORRECTION, "purple": 0.0}])
def test_a_correction_of_other_labels_is_refused(prior):
    with pytest.raises(UsageError, match="one number for each label"):
        classifier(prior=prior)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 72])
def test_every_batch_has_the_same_shape_however_many_texts_there_are(count):
    model = ToyModel()
    scores = classifier(model).log_probabilities([f"text {i}" for i in range(count)])
    assert scores.shape == (count, 3)
    assert len(model.opened) == -(-count // 32)
    assert {rows for rows, _, _ in model.opened} <= {32}
    assert len(set(model.opened)) <= 1


def test_short_texts_are_computed_in_a_shorter_shape_whatever_else_is_read():
    short, long = ["short", "a text"], ["much longer than two thirds of the cap", "and so is this text"]
    alone, together = ToyModel(), ToyModel()
    expected = classifier(alone, max_query_tokens=24).log_probabilities(short)
    made = classifier(together, max_query_tokens=24).log_probabilities([long[0], *short, long[1], "in the middle"])
    assert np.array_equal(made[1:3], expected)
    assert [length for _, length, _ in together.opened] == [alone.opened[0][1] + more for more in (0, 8, 16)]


def test_a_row_depends_on_its_text_alone():
    texts = [f"text {i}" for i in range(20)] + ["x" * 90, "y" * 60]
    made = classifier(Words())
    expected = dict(zip(texts, made.log_probabilities(texts), strict=True))
    for others in (texts[::-1], texts[7:], ["another", *texts[3:5]]):
        for text, row in zip(others, made.log_probabilities(others), strict=True):
            assert text not in expected or np.array_equal(row, expected[text])


@pytest.mark.parametrize(("largest", "expected"), [(32, 32), (16, 16), (7, 4), (2, 2), (0, 1)])
def test_a_batch_has_as_many_rows_as_are_alike_and_one_where_none_are(largest, expected):
    class Uneven(ToyModel):
        def alike(self, prefix, rows, length, room):
            return rows <= largest

    model = Uneven()
    classifier(model).log_probabilities(["a", "b"])
    assert {rows for rows, _, _ in model.opened} == {expected}


def test_an_overflow_stays_in_its_row_and_is_not_warned_of(recwarn):
    class Overflowing(ToyModel):
        def open(self, prefix, rows, length, room):
            session = super().open(prefix, rows, length, room)
            plain = session._row
            session._row = lambda tokens: plain(tokens) * (np.inf if ord("!") in tokens else 1)
            return session

    made = classifier(Overflowing(), labels=("red", "!"))
    scores = made.log_probabilities(["fine", "too much!"])
    assert np.isfinite(scores[0]).all()
    assert not np.isfinite(scores[1]).all()
    assert not recwarn.list
