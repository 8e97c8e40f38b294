"""Metrics, comparisons, the verdict, and figures of texts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.demos.findings import DEMONSTRATIONS, PUBLIC_ONLY, ZERO_SHOT, ArmScore, Score
from mechanisms.evaluation.evaluate import Accuracy, gain, verdict_of_score

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


@given(alone=interval, public=interval, majority=st.floats(0, 1))
def test_nothing_is_praised_whose_interval_holds_zero(alone, public, majority):
    said = verdict_of_score(score(alone, public), False, majority).split(";")
    praise = next((each for each in said if "better than" in each), "")
    for name, low in (("the model alone", alone[0]), ("public text", public[0]), ("naming", 0.65 - majority)):
        assert (name in praise) == (low > 0)


def test_without_demonstrations_the_model_alone_is_what_is_judged():
    kept = Score({ZERO_SHOT: ARM, PUBLIC_ONLY: ARM}, True, gains={PUBLIC_ONLY: ArmScore(0.1, (0.02, 0.2))})
    assert verdict_of_score(kept, True, None) == "The model without demonstrations is better than public text."


@given(alone=interval, public=interval, majority=st.floats(0, 1))
def test_rows_that_may_have_chosen_a_set_praise_nothing(alone, public, majority):
    chosen = replace(score(alone, public), held_out=False)
    said = verdict_of_score(chosen, False, majority)
    assert "better than" not in said
    assert ("ahead, on rows that may have taken part in the choice, of" in said) == (
        max(alone[0], public[0], 0.65 - majority) > 0
    )


def test_too_few_rows_say_nothing():
    wide = Score({DEMONSTRATIONS: ArmScore(0.5, (0.3, 0.7))}, True)
    assert verdict_of_score(wide, False, 0.1) == ""


@pytest.mark.parametrize(("rates", "rows"), [((0.7, 0.6), 100), ((0.9, 0.9), 60), ((0.5, 0.2), 200)])
def test_nine_in_ten_intervals_of_a_difference_and_more_hold_it(rates, rows):
    rng, held = np.random.default_rng(1), 0
    for _ in range(400):
        one, other = (Accuracy(float(rng.binomial(rows, rate)), rows) for rate in rates)
        low, high = gain(one, other)
        held += low <= rates[0] - rates[1] <= high
    assert held >= 0.92 * 400
