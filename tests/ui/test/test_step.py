"""Step 4: its cards, bundled test rows, forecasts, and the set under test."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import Tree
from dpicl_ui.generate.state import GenerateState
from dpicl_ui.test.cards import accuracies, answers, readers, score_card, subject
from dpicl_ui.test.measure import FileMeasurement, bundled_rows_for
from dpicl_ui.test.state import TestState, gate
from mechanisms.data.sources import EXAMPLES, read_table
from mechanisms.demos.findings import ArmScore, Score
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PRIVATE, PUBLIC_ONLY, ZERO_SHOT, Accuracy, Scorecard, best_reading
from mechanisms.evaluation.reader import Prediction
from mechanisms.records import Dataset, Demonstration, Record
from mechanisms.runs.work import Speed
from tests.toy_model import ToyModel
from tests.ui.generate.recording import HOSTILE, demo_set
from tests.ui.tabs import write
from tests.ui.test_drawing import scorecard
from tests.ui.trees import tags, text_of
from tests.word_model import WordModel

DATASET = Dataset("d", ("News", "Sport"), tuple(Record(f"text {i}", "News" if i % 2 else "Sport") for i in range(20)))

# Step 4's cards: which reading counts, what a private score says, and what a set of before without texts is.


SET = demo_set(Demonstration("one", "News"))
SCORE = Score({ZERO_SHOT: ArmScore(0.5, (0.45, 0.56)), "demonstrations": ArmScore(0.75, (0.71, 0.78))}, held_out=True)


def bars(tree: Tree | list[Tree]) -> list[float]:
    """Shares of all bars, in order."""
    if isinstance(tree, str):
        return []
    children = tree if isinstance(tree, list) else tree["children"]
    own = [] if isinstance(tree, list) else [tree.get("numbers", {}).get("share")]
    return [share for share in own if share is not None] + [share for child in children for share in bars(child)]


def arms_of(shown: list[Tree]) -> list[str]:
    [scores] = [each for each in shown if each.get("class") == "scores"]
    return [text_of(card) for card in scores["children"]]


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


def test_the_first_sentence_says_what_the_set_is_better_than_and_whose_gain_that_is():
    card = scorecard(ZERO_SHOT, Accuracy(750, 1000))
    alone = replace(card, raw=Accuracy(300, 1000), calibrated=Accuracy(600, 1000))
    own = replace(alone, name=PRIVATE, corrected=Accuracy(900, 1000))
    shown = text_of(accuracies([alone, own]))
    assert "These demonstrations are better than the model alone" in shown
    assert "reading +15 points, demonstrations +15 points" in shown
    level = text_of(accuracies([alone, replace(own, corrected=Accuracy(760, 1000))]))
    assert "not shown to differ from the model alone" in level
    assert "These demonstrations" not in text_of(accuracies([alone, replace(own, name=PUBLIC_ONLY)]))


def test_an_answer_is_the_one_that_the_set_is_read_with():
    read = Prediction(np.array([0.9, 0.1]), np.array([0.6, 0.4]), np.array([0.2, 0.8]))
    plain = replace(read, corrected=None)
    own, zero = (
        text_of(answers(("News", "Sport"), [(name, each)])) for name, each in ((PRIVATE, read), (ZERO_SHOT, plain))
    )
    assert bars(answers(("News", "Sport"), [(PRIVATE, read)])) == [0.2, 0.8]
    assert "measured prior" in own
    assert "empty queries: News (60%)" in own
    assert "Without calibration: News (90%)" in own
    assert "measured prior" not in zero
    assert "empty queries" not in zero


def test_a_private_score_needs_no_test_file():
    shown = text_of(score_card(replace(SET, score=SCORE), loaded=False))
    assert "on your own rows 71 to 78 of 100" in " ".join(shown.split())
    assert "45 to 56 of 100" in shown
    assert "took part in nothing" in shown
    assert "Too few rows" not in shown
    assert bars(score_card(replace(SET, score=SCORE), loaded=False)) == [0.5, 0.75, 0.5]
    assert "by the public sizes" in shown


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
    mean = (87 / 90 + 2 / 5) / 3
    assert "By balanced accuracy" in text_of(shown)
    assert bars(shown) == pytest.approx([mean, mean, 1 / 3])
    assert "raw 89%" in text_of(shown)
    assert "of all rows 90%" in text_of(shown)


def test_a_score_says_what_it_does_not_know():
    wide = Score({"demonstrations": ArmScore(0.7, (0.55, 0.8))}, held_out=False)
    shown = text_of(score_card(replace(SET, score=wide), loaded=True))
    assert "Too few rows" in shown
    assert "may have taken part in what was written" in shown
    assert "cannot be checked" in shown
    assert "your" not in shown.replace("Your demonstrations", "")


@pytest.mark.parametrize("of", [None, SET])
def test_without_a_score_there_is_no_card(of):
    assert score_card(of, loaded=False) == []


def test_an_arm_of_a_file_is_hostile_text():
    strange = Score({HOSTILE: ArmScore(0.5, (0.4, 0.6))}, held_out=True)
    shown = score_card(replace(SET, score=strange), loaded=True)
    assert HOSTILE in text_of(shown)
    assert "img" not in tags(shown)


NONE = {"among": 4, "chosen": "none", "calibration": "prior"}


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


def test_one_question_is_read_as_the_set_did_best_on_the_test_file():
    read = Prediction(np.array([0.9, 0.1]), np.array([0.6, 0.4]), np.array([0.2, 0.8]))
    best = best_reading(scorecard(PRIVATE, Accuracy(1, 10)))
    shown = answers(("News", "Sport"), [(PRIVATE, read)], best)
    assert best == "contextual"
    assert bars(shown) == [0.6, 0.4]
    assert "With the measured prior: Sport (80%)" in text_of(shown)
    assert best_reading(scorecard(PRIVATE, Accuracy(7, 10))) == "prior"  # of equal ones the measured one


# Bundled test rows are offered for the sets that they can test, and for no other.


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.path.stem)
def test_the_example_finds_its_own_rows_which_are_none_that_wrote(example):
    rows, mapping = read_table(example.path).frame, example.mapping
    path = bundled_rows_for(sorted(set(rows[mapping.label])))
    assert path == example.test
    others = read_table(path).frame
    assert set(others[mapping.label]) == set(rows[mapping.label])
    assert not set(others[mapping.text]) & set(rows[mapping.text])


def test_other_labels_are_offered_nothing():
    labels = set(read_table(EXAMPLES[0].path).frame[EXAMPLES[0].mapping.label])
    assert bundled_rows_for([*labels, "another"]) is None
    assert bundled_rows_for(sorted(labels)[1:]) is None


# What is said of a measurement's time before it begins is of the rows that it will read.


@pytest.mark.parametrize(("limit", "rows"), [(100, 100), (1000, 400)])
def test_the_rows_that_are_read_are_named_where_a_file_has_more(limit: int, rows: int):
    state = SimpleNamespace(classifying=SET, table=SimpleNamespace(frame=range(400)))
    told = object.__new__(FileMeasurement)
    loader = SimpleNamespace(speed=Speed(0.003, 0.003, 0.05))
    app: Any = SimpleNamespace(session=lambda _: SimpleNamespace(of=lambda _: state), loader=loader)
    told._app = app
    assert f"Reading {rows} of them takes" in text_of(told._told(limit, None))  # type: ignore[arg-type]


# Which set is under test, and whose figures are on the screen.

MADE, LOADED = demo_set(Demonstration("made", "News")), demo_set(Demonstration("loaded", "News"))


@pytest.fixture
def session() -> Session:
    tab = Session()
    write(tab, MADE, DATASET)
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
    scored = state.score(MADE, ("clinic",), DATASET, ())
    assert not gate(session).done
    state.show(scored.with_card(scorecard(ZERO_SHOT)))
    assert gate(session).done
    assert state.scored is not None
    assert state.scored.owners == ("clinic",)
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
