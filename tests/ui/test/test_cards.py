"""Step 4's cards: the headline, which reading counts, what a private score says; and whose figures are shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import Tree
from dpicl_ui.generate.cards import score_card
from dpicl_ui.generate.state import GenerateState
from dpicl_ui.test.cards import accuracies, answers, headline_of, readers, subject
from dpicl_ui.test.state import Scored, TestState, gate
from mechanisms.demos.findings import ArmScore, Score
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PRIVATE, PUBLIC_ONLY, ZERO_SHOT, Accuracy, Scorecard
from mechanisms.evaluation.reader import Prediction
from mechanisms.records import Demonstration
from tests.toy_model import ToyModel
from tests.ui.generate.recording import HOSTILE, demo_set
from tests.ui.tabs import write
from tests.ui.test.tab import LETTERS, bars
from tests.ui.test_drawing import scorecard
from tests.ui.trees import tags, text_of
from tests.word_model import WordModel

SET = demo_set(Demonstration("one", "News"))
SCORE = Score({ZERO_SHOT: ArmScore(0.5, (0.45, 0.56)), "demonstrations": ArmScore(0.75, (0.71, 0.78))}, held_out=True)
NONE = {"among": 4, "chosen": "none", "calibration": "prior"}


def arms_of(shown: list[Tree]) -> list[str]:
    [scores] = [each for each in shown if each.get("class") == "scores"]
    return [text_of(card) for card in scores["children"]]


def headline(*cards: Scorecard) -> str:
    return text_of(headline_of(SET, Scored(SET, LETTERS, (), cards)))


def test_the_measured_prior_is_the_headline_where_all_arms_have_one():
    shown = accuracies([scorecard(PUBLIC_ONLY, Accuracy(8, 10)), scorecard(PRIVATE, Accuracy(9, 10))])
    assert bars(shown) == [0.8, 0.9, 0.5]  # the last is what naming one of two equally common labels finds
    *arms, naming = arms_of(shown)
    assert "commonest label" in naming
    assert all("measured prior" in each and "calibrated 70%" in each and "raw 30%" in each for each in arms)
    assert "90%  (59% to 99%)" in arms[1]


def test_arms_are_read_alike_where_one_of_them_has_no_prior():
    shown = accuracies([scorecard(PUBLIC_ONLY), scorecard(PRIVATE, Accuracy(9, 10))])
    assert bars(shown) == [0.7, 0.7, 0.5]
    public, own, _ = arms_of(shown)
    assert "measured prior" not in public + own
    assert "prior 90%" in own


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
    assert "measured prior" in text_of(own)
    assert "empty queries: News (60%)" in text_of(own)
    assert "Without calibration: News (90%)" in text_of(own)
    assert bars(zero) == [0.6, 0.4]
    assert "measured prior" not in text_of(zero)


def skewed(found: int) -> Scorecard:
    """Of 90 rows of one label and 10 of another so many are called the one, rightly or wrongly."""
    return Scorecard(PRIVATE, Accuracy(found, 100), None, None, np.array([[found, 90 - found], [10, 0]]))


def test_a_set_that_names_one_label_every_time_is_not_praised():
    shown = accuracies([skewed(90)], labels=("News", "Sport"))
    assert "no more labels than naming the commonest one" in text_of(shown)
    assert "balanced 50%" in text_of(shown)
    assert "0 of 10" in text_of(shown)
    better = Scorecard(PRIVATE, Accuracy(95, 100), None, None, np.array([[88, 2], [3, 7]]))
    assert "no more labels" not in text_of(accuracies([better], labels=("News", "Sport")))


def test_bars_show_the_figure_that_the_sentence_compares():
    confusion = np.array([[87, 1, 2], [3, 2, 0], [5, 0, 0]])
    alone = Scorecard(ZERO_SHOT, Accuracy(89, 100), None, None, confusion)
    shown = accuracies([alone, replace(alone, name=PRIVATE)])
    assert "By balanced accuracy" in headline(alone, replace(alone, name=PRIVATE))
    mean = (87 / 90 + 2 / 5) / 3
    assert bars(shown) == pytest.approx([mean, mean, 1 / 3])
    assert "raw 89%" in text_of(shown)
    assert "of all rows 90%" in text_of(shown)


def test_the_pairs_that_most_rows_are_lost_between_are_said_in_words():
    labels = [f"label {i}" for i in range(80)]
    counts = 9 * np.eye(80, dtype=np.int64)
    counts[3, 7], counts[7, 3], counts[0, 79] = 5, 1, 4
    shown = text_of(accuracies([replace(scorecard(PRIVATE), confusion=counts)], labels=labels))
    pairs = ("label 3  read as  label 7 : 5 rows", "label 0  read as  label 79 : 4", ": 1 row")
    places = [shown.index(pair) for pair in pairs]
    assert places == sorted(places)
    assert shown.count("read as") == 3
    right = replace(scorecard(PRIVATE), confusion=9 * np.eye(80, dtype=np.int64))
    assert "read as" not in text_of(accuracies([right], labels=labels))


def test_a_private_score_needs_no_test_file_and_says_what_it_does_not_know():
    shown = text_of(score_card(replace(SET, score=SCORE)))
    assert "71 to 78 of 100 of your own rows" in shown
    assert "took part in nothing" in shown
    wide = replace(SCORE, arms={"demonstrations": ArmScore(0.7, (0.55, 0.8))}, held_out=False)
    shown = text_of(score_card(replace(SET, score=wide), loaded=True))
    assert "Too few rows" in shown
    assert "may have taken part in what was written" in shown
    assert "cannot be checked" in shown
    assert "your" not in shown
    assert score_card(SET) == score_card(None) == []


def test_an_arm_of_a_file_is_hostile_text():
    strange = Score({HOSTILE: ArmScore(0.5, (0.4, 0.6))}, held_out=True)
    shown = score_card(replace(SET, score=strange), loaded=True)
    assert HOSTILE in text_of(shown)
    assert "img" not in tags(shown)


def test_a_set_of_before_without_demonstrations_is_told_as_that():
    none = replace(demo_set(), choice=NONE)
    shown = text_of(subject(none, loaded=True))
    assert "A set without demonstrations" in shown
    assert "measured prior" not in shown
    assert "measured prior" in text_of(subject(replace(none, prior={"News": 0.1, "Sport": -0.1}), loaded=True))
    assert "without demonstrations" not in text_of(subject(SET, loaded=False))


def test_another_reader_is_a_warning_in_plain_text():
    own, other = ToyModel(), ToyModel()
    other.name, other.sha256 = HOSTILE, "1" * 64
    made = replace(SET, prior={"News": 0.1, "Sport": -0.1})
    [read] = readers(made, own)
    assert "Written with toy, and read by it" in text_of(read)
    [warned] = readers(made, other)
    assert "warn" in warned["class"]
    assert f"read here by {HOSTILE}: the prior was measured" in text_of(warned)
    assert "img" not in tags(warned)


# Which set is under test, and whose figures are on the screen.

MADE, LOADED = demo_set(Demonstration("made", "News")), demo_set(Demonstration("loaded", "News"))


@pytest.fixture
def session() -> Session:
    tab = Session()
    write(tab, MADE, LETTERS)
    return tab


def test_a_loaded_set_is_tested_until_a_later_run_writes(session: Session):
    state, generate = session.of(TestState), session.of(GenerateState)
    assert state.tested is MADE
    state.load(LOADED)
    run = generate.begin()
    assert state.tested is LOADED  # it has written nothing yet
    generate.written = run
    assert (state.loaded, state.tested) == (None, MADE)
    state.load(LOADED)
    assert state.tested is LOADED


def test_figures_belong_to_the_set_they_were_measured_on(session: Session):
    state = session.of(TestState)
    scored = state.show(Scored(MADE, LETTERS, ()))
    assert not gate(session).done
    state.show(replace(scored, cards=(scorecard(ZERO_SHOT),)))
    assert gate(session).done
    state.load(LOADED)
    assert state.scored is None
    assert not gate(session).done


def test_a_set_without_demonstrations_has_an_arm_only_where_that_was_chosen(session: Session):
    state, empty = session.of(TestState), demo_set()
    with pytest.raises(UsageError, match="nothing to test"):
        state.arms(empty, WordModel())
    [arm] = state.arms(replace(empty, choice=NONE), WordModel())
    assert arm.name == ZERO_SHOT


def test_public_demonstrations_are_written_once_for_a_set(session: Session):
    state = session.of(TestState)
    models = [WordModel() for _ in range(3)]
    first, again, _ = (state.arms(of, model) for of, model in zip((MADE, MADE, LOADED), models, strict=True))
    assert first == again
    assert [arm.name for arm in first] == [ZERO_SHOT, PUBLIC_ONLY, PRIVATE]
    assert [bool(model.opened) for model in models] == [True, False, True]


def test_another_model_reads_without_the_writers_correction_and_writes_its_own_public_ones(session: Session):
    state, other = session.of(TestState), WordModel(sharpness=1.0)
    other.sha256 = "1" * 64
    measured = replace(MADE, prior={"News": 1.0, "Sport": 0.0})
    written, read = state.arms(measured, WordModel()), state.arms(measured, other)
    assert (written[-1].prior, read[-1].prior) == (measured.prior, None)
    assert other.opened  # two models may write the same three letters, once in 3,000 times
    assert [arm.name for arm in written] == [arm.name for arm in read]
