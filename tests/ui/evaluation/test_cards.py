"""Step 4's cards: the headline, which reading counts, what a private score says; and whose figures are shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpicl_ui.evaluation.cards import accuracies, answers, headline_of
from dpicl_ui.evaluation.state import EvaluationState, SetFigures, status
from dpicl_ui.frame.services import Session
from dpicl_ui.frame.tree import Tree
from dpicl_ui.generate.cards import score_card
from dpicl_ui.generate.state import GenerateState
from mechanisms.demos.demo_set import DIRECTIONS, PUBLIC_ONLY, ZERO_SHOT, ArmScore, Score
from mechanisms.evaluation.classifier import Prediction
from mechanisms.evaluation.evaluate import BOTH, PRIVATE, Accuracy, Scorecard
from mechanisms.records import Demonstration
from tests.ui.evaluation.tab import DIRECTED, LETTERS, bars
from tests.ui.generate.recording import HOSTILE, demo_set
from tests.ui.tabs import tags, text_of, write
from tests.ui.test_drawing import scorecard
from tests.word_model import WordModel

SET = demo_set(Demonstration("one", "News"))
SCORE = Score({ZERO_SHOT: ArmScore(0.5, (0.45, 0.56)), "demonstrations": ArmScore(0.75, (0.71, 0.78))}, held_out=True)


def arms_of(shown: list[Tree]) -> list[str]:
    [scores] = [each for each in shown if each.get("class") == "scores"]
    return [text_of(card) for card in scores["children"]]


def headline(*cards: Scorecard) -> str:
    return text_of(headline_of(SET, SetFigures(SET, LETTERS, (), cards)))


def test_the_measured_prior_is_the_headline_where_all_arms_have_one():
    shown = accuracies([scorecard(PUBLIC_ONLY, Accuracy(8, 10)), scorecard(PRIVATE, Accuracy(9, 10))])
    assert bars(shown) == [0.8, 0.9, 0.5]  # the last is what naming one of two equally common labels finds
    *arms, naming = arms_of(shown)
    assert "largest label" in naming
    assert all(
        "measured correction" in each and "empty queries 70%" in each and "uncorrected 30%" in each for each in arms
    )
    assert "90%  (59% to 99%)" in arms[1]


def test_one_sentence_says_what_the_set_is_better_than_and_the_list_whose_gain_that_is():
    card = scorecard(ZERO_SHOT, Accuracy(750, 1000))
    alone = replace(card, raw=Accuracy(300, 1000), calibrated=Accuracy(600, 1000))
    own = replace(alone, name=PRIVATE, corrected=Accuracy(900, 1000))
    assert headline(alone, own).startswith("On the test file: These demonstrations are better than the model alone")
    gained = "Of the gain over zero-shot, +15 points come from the correction and +15 from the demonstrations."
    assert gained in text_of(accuracies([alone, own]))
    assert gained not in text_of(accuracies([alone, replace(own, name=PUBLIC_ONLY)]))
    assert "not shown to differ from the model alone" in headline(alone, replace(own, corrected=Accuracy(760, 1000)))


def test_before_a_file_is_measured_the_headline_is_the_private_score_or_says_what_to_do():
    assert "not measured yet" in headline(scorecard(ZERO_SHOT))
    assert headline_of(None, None) == []
    gains = {"zero-shot": ArmScore(0.25, (0.15, 0.33))}
    said = text_of(headline_of(replace(SET, score=replace(SCORE, gains=gains)), None))
    assert said.startswith("On its own rows, under noise: These demonstrations are better than the model alone")


def test_an_answer_is_the_one_that_the_set_is_read_with():
    read = Prediction(np.array([0.9, 0.1]), np.array([0.6, 0.4]), np.array([0.2, 0.8]))
    plain = replace(read, corrected=None)
    own, zero = (answers(("News", "Sport"), [(name, each)]) for name, each in ((PRIVATE, read), (ZERO_SHOT, plain)))
    assert bars(own) == [0.2, 0.8]
    assert "measured correction" in text_of(own)
    assert "empty queries: News (60%)" in text_of(own)
    assert "Without a correction: News (90%)" in text_of(own)
    assert bars(zero) == [0.6, 0.4]
    assert "measured correction" not in text_of(zero)


def test_directions_have_one_figure_which_no_correction_changes():
    found = Accuracy(9, 10)
    directed = replace(scorecard(DIRECTIONS, found), raw=found, calibrated=found)
    shown = accuracies([scorecard(ZERO_SHOT, Accuracy(5, 10)), directed, scorecard(PRIVATE, Accuracy(8, 10))])
    _, alone, _, _ = arms_of(shown)
    assert alone.count("90%") == 1
    assert "correction" not in alone
    assert "empty queries" not in alone
    assert "For labels alone, the directions look better than this model" in text_of(shown)


@pytest.mark.parametrize("name", [DIRECTIONS, BOTH])
def test_hostile_labels_stay_text_whatever_reads(name):
    read = Prediction.by_places(np.array([0.3, -0.3]))
    shown = answers((HOSTILE, "Sport"), [(name, read)])
    assert text_of(shown).count(HOSTILE) >= 2
    assert "img" not in tags(shown)
    assert bars(shown) == pytest.approx([1.0, 0.0], abs=1e-2)


@pytest.mark.parametrize(("gain", "better"), [((-0.3, -0.1), True), ((-0.3, 0.1), False)])
def test_where_directions_are_shown_to_read_better_the_owner_is_told_to_take_them(gain, better):
    gains = {DIRECTIONS: ArmScore(sum(gain) / 2, gain)}
    said = text_of(score_card(replace(DIRECTED, score=replace(SCORE, gains=gains))))
    assert ("To find labels only, use the directions" in said) is better


def skewed(found: int) -> Scorecard:
    """Of 90 rows of one label and 10 of another so many are called the one, rightly or wrongly."""
    return Scorecard(PRIVATE, Accuracy(found, 100), None, None, np.array([[found, 90 - found], [10, 0]]))


def test_a_set_that_names_one_label_every_time_is_not_praised():
    shown = accuracies([skewed(90)], labels=("News", "Sport"))
    assert "no more labels than naming the largest label" in text_of(shown)
    assert "balanced 50%" in text_of(shown)
    assert "0 of 10" in text_of(shown)
    better = Scorecard(PRIVATE, Accuracy(95, 100), None, None, np.array([[88, 2], [3, 7]]))
    assert "no more labels" not in text_of(accuracies([better], labels=("News", "Sport")))


def test_an_arm_of_a_file_is_hostile_text():
    strange = Score({HOSTILE: ArmScore(0.5, (0.4, 0.6))}, held_out=True)
    shown = score_card(replace(SET, score=strange), loaded=True)
    assert HOSTILE in text_of(shown)
    assert "img" not in tags(shown)


# Which set is under test, and whose figures are on the screen.

MADE, LOADED = demo_set(Demonstration("made", "News")), demo_set(Demonstration("loaded", "News"))


@pytest.fixture
def session() -> Session:
    tab = Session()
    write(tab, MADE, LETTERS)
    return tab


def test_a_loaded_set_is_tested_until_a_later_run_writes(session: Session):
    state, generate = session.of(EvaluationState), session.of(GenerateState)
    assert state.tested is MADE
    state.load(LOADED)
    run = generate.begin()
    assert state.tested is LOADED  # it has written nothing yet
    generate.run_of_set = run
    assert (state.loaded, state.tested) == (None, MADE)
    state.load(LOADED)
    assert state.tested is LOADED


def test_figures_belong_to_the_set_they_were_measured_on(session: Session):
    state = session.of(EvaluationState)
    scored = state.show(SetFigures(MADE, LETTERS, ()))
    assert not status(session).done
    state.show(replace(scored, cards=(scorecard(ZERO_SHOT),)))
    assert status(session).done
    state.load(LOADED)
    assert state.scored is None
    assert not status(session).done


def test_public_demonstrations_are_written_once_for_a_set(session: Session):
    state = session.of(EvaluationState)
    models = [WordModel() for _ in range(3)]
    first, again, _ = (state.arms(of, model) for of, model in zip((MADE, MADE, LOADED), models, strict=True))
    assert first == again
    assert [arm.name for arm in first] == [ZERO_SHOT, PUBLIC_ONLY, PRIVATE]
    assert [bool(model.opened) for model in models] == [True, False, True]


def test_another_model_reads_without_the_writers_correction_and_writes_its_own_public_ones(session: Session):
    state, other = session.of(EvaluationState), WordModel(sharpness=1.0)
    other.sha256 = "1" * 64
    measured = replace(MADE, prior={"News": 1.0, "Sport": 0.0})
    written, read = state.arms(measured, WordModel()), state.arms(measured, other)
    assert (written[-1].prior, read[-1].prior) == (measured.prior, None)
    assert other.opened  # two models may write the same three letters, once in 3,000 times
    assert [arm.name for arm in written] == [arm.name for arm in read]
