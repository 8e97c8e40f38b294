"""What the comparison of recipes says of its runs: weights, the skewed set, and praise that public rows take back."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from mechanisms.demos.findings import DEMONSTRATIONS, PUBLIC_ONLY, ZERO_SHOT, ArmScore, Score
from mechanisms.evaluation.evaluate import verdict_of_score
from mechanisms.records import Dataset, Record, default_template
from mechanisms.tallies import Weighing
from research.benchmarks.both_or_vote import NAMING, PEOPLE, Material, checked, naming, rate, skewed
from research.benchmarks.praise import SETTINGS, praised, said

OTHERS = [f"label {number}" for number in range(11)]


def task() -> Material:
    test = [Record(str(place), label) for place, label in enumerate("aaaabb")]
    labels = ("a", "b")
    return Material(Dataset("task", labels, test), test, np.array([0.2] * 4 + [0.1] * 2), default_template(labels))


def test_the_skewed_set_has_twelve_labels_of_the_shares_that_are_told_and_is_always_the_same():
    rows = [Record(f"{label} {number}", label) for label in (*PEOPLE, *OTHERS) for number in range(300)]
    train, test = skewed(rows, rows, 1000, 240)
    private, public = Counter(each.label for each in train), Counter(each.label for each in test)
    assert len(private) == 12
    assert private["Person"] / len(train) == pytest.approx(0.6, abs=0.01)
    assert len({private[label] for label in OTHERS}) == 1
    assert set(public.values()) == {20}
    assert (train, test) == skewed(rows, rows, 1000, 240)


def test_rows_count_by_their_weights_and_labels_alike():
    right = np.array([True] * 4 + [False] * 2)
    assert rate(task(), right, Weighing.ROWS) == pytest.approx(0.8)
    assert rate(task(), right, Weighing.LABELS) == pytest.approx(0.5)
    assert naming(task(), Weighing.ROWS) == pytest.approx(0.8)
    assert naming(task(), Weighing.LABELS) == pytest.approx(0.5)


def test_public_rows_take_back_what_they_do_not_bear_out():
    wrong, right, half = np.zeros(6, bool), np.ones(6, bool), np.array([True] * 4 + [False] * 2)
    gains = {ZERO_SHOT: ArmScore(0.2, (0.1, 0.3)), PUBLIC_ONLY: ArmScore(0.2, (0.1, 0.3))}
    arms = dict.fromkeys((ZERO_SHOT, PUBLIC_ONLY, DEMONSTRATIONS), ArmScore(0.85, (0.78, 0.9)))
    score = Score(arms, True, gains=gains)
    read = {ZERO_SHOT: {"prior": wrong}, PUBLIC_ONLY: {"prior": right}, DEMONSTRATIONS: {"prior": half}}
    found = {each["than"]: each for each in checked(task(), score, False, 0.8, read)}
    assert found[ZERO_SHOT] == {"than": ZERO_SHOT, "said": "better", "gain": 0.8, "holds": True}
    assert found[PUBLIC_ONLY] == {"than": PUBLIC_ONLY, "said": "better", "gain": -0.2, "holds": False}
    assert found[NAMING]["holds"] is None
    assert {each["said"] for each in found.values() if each["than"] != NAMING} == {"better"}
    assert praised(verdict_of_score(score, False, 0.8)) == ["model alone", "public text"]


def test_a_large_lead_is_praised_and_what_is_behind_is_not():
    ahead = np.zeros((128, 3), bool)
    ahead[:, 2] = True
    each, all_three = np.ones(128), ["model alone", "public text", "largest label"]
    # Noise spoils one sentence in twenty; ten of nineteen are in one test of 10^8.
    lead, behind = ([praised(said(SETTINGS[0], right, each)) for _ in range(19)] for right in (ahead, ~ahead))
    assert lead.count(all_three) > 9
    assert behind.count([]) > 9
