"""One level for all intervals: another one changes every figure, every sentence and every file, and nothing is left."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from mechanisms import confidence
from mechanisms.demos.demo_set import DemoSet, Score, loads
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import Accuracy
from mechanisms.exports.certificate_page import label_of_facts
from mechanisms.runs.stages.score import ScoreReleased
from mechanisms.tallies import ScoreTally as Tally
from tests.conftest import ROOT
from tests.runs.running import begun, data, planned, rows

OTHER = 0.5
"""No interval of the program is of this level."""
pytestmark = pytest.mark.usefixtures("any_text_passes")


def width(interval: tuple[float, float]) -> float:
    return interval[1] - interval[0]


def estimate() -> float:
    found = Tally(1.0, False).accuracy(np.array([40.0, 60.0]), 0)
    return found.high - found.low


def difference() -> float:
    found = Tally(1.0, False).difference(np.array([10.0, 30.0, 20.0, 40.0]), 0, 1)
    return found.high - found.low


WIDTHS = {
    "a private accuracy": estimate,
    "a private difference": difference,
    "an accuracy on a test file": lambda: width(Accuracy(40, 100).interval),
    "what a score is expected to tell": lambda: (
        planned(data(rows(40)), recipe="vote", epsilon=100.0).stages["score"].margin
    ),
}


@pytest.mark.parametrize("of", WIDTHS)
def test_every_interval_is_of_the_one_level(of, monkeypatch):
    as_it_is = WIDTHS[of]()
    monkeypatch.setattr(confidence, "LEVEL", OTHER)
    assert WIDTHS[of]() < as_it_is


def released() -> tuple[Score, DemoSet]:
    """A score of a run, and the set that it stands in."""
    dataset = data(rows(40))
    told = list(begun(dataset, planned(dataset, recipe="vote", split="epsilon")))
    [score] = [event.score for event in told if isinstance(event, ScoreReleased)]
    return score, told[-1].demo_set


def test_a_file_says_the_level_of_its_intervals_and_keeps_it(monkeypatch):
    monkeypatch.setattr(confidence, "LEVEL", OTHER)
    score, made = released()
    document = json.loads(made.dumps())
    assert document["score"]["level"] == OTHER
    monkeypatch.undo()
    assert loads(made.dumps()).score == score
    remarks = [fact.remark for part in label_of_facts(loads(made.dumps())) for fact in part.facts]
    assert any("50% interval" in each for each in remarks if each)
    del document["score"]["level"]
    with pytest.raises(UsageError, match="required fails at score"):
        loads(json.dumps(document))


def test_the_pages_say_the_level_that_there_is():
    for page in ("docs/tallies.md", "docs/evaluate.md"):
        text = (ROOT / page).read_text("utf-8")
        assert set(re.findall(r"(\d+%)(?:\s|-)+(?:Wilson\s+)?interval", text)) == {confidence.percent()}, page
