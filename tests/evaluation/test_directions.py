"""A set's directions: in a file as they were, and read alone, or together with a model."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import log_softmax, softmax

from mechanisms import api
from mechanisms.demos.demo_set import DEMONSTRATIONS, DIRECTIONS, ArmScore, DemoSet, Score, loads
from mechanisms.demos.directions import Directions, margins
from mechanisms.errors import UsageError
from mechanisms.evaluation.by_directions import WEIGHT, By, joined
from mechanisms.evaluation.evaluate import BOTH, PRIVATE
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record, saying_words
from mechanisms.runs.spec import WORDS, Recipe, Split
from mechanisms.runs.verification import verify
from tests.certificates.recipes import certified, planned, shares_of
from tests.runs.running import Reading
from tests.toy_embedder import ToyEmbedder

LABELS, EMBEDDER = ("b", "a"), ToyEmbedder(32)
"""Labels in an order of their own."""
TEXTS = ["sea sea sea", "hill hill", "the sea", "a hill of hill", "sea of a hill sea"]
TRUE = ["b", "a", "b", "a", "b"]
WORDS_SAID = {"b": ("sea", "wave", "ship"), "a": ()}


def directions(labels=LABELS, embedder=EMBEDDER) -> Directions:
    near = embedder.embed(["sea", "hill"]).astype(np.float64)
    return Directions.of(embedder, labels, near - near.mean(axis=0))


@pytest.fixture(scope="module")
def without() -> DemoSet:
    """Of a run with the stage "words", which has found nothing so far."""
    sizes, shares = {"b": 450, "a": 520}, {WORDS: 0.3} | shares_of(Recipe.VOTE, "openings")
    made = certified(planned(Recipe.VOTE, Split.ROLES, sizes=sizes, shares=shares, instruction="Sort."))
    return replace(made, demonstrations=(Demonstration("one sea", "b"), Demonstration("one hill", "a")))


@pytest.fixture
def with_them(without) -> DemoSet:
    return replace(without, directions=directions(), words=WORDS_SAID)


class Never(Reading):
    """Is not to be asked."""

    def open(self, prefix, rows, length, room):
        raise AssertionError("the language model was asked")


class Saying(Reading):
    """Says the same of every text with words: the first label, as clearly as it is told to."""

    def __init__(self, clearly: float) -> None:
        super().__init__()
        self.clearly = clearly

    def answer(self, prefix, query, label):
        told = "sea" in query or "hill" in query
        return 0.0 if label == LABELS[0] or not told else -self.clearly


@pytest.fixture(autouse=True)
def embedder(monkeypatch):
    monkeypatch.setattr(api, "load_embedder", lambda: EMBEDDER)
    monkeypatch.setattr(api, "default_model", lambda: pytest.fail("no model was named"))


# In a file.


@given(arrays.arrays(np.float64, (2, 5), elements=st.floats(-9, 9).map(lambda each: round(each, 6))))
def test_directions_come_back_from_a_file_as_they_were(vectors):
    made = Directions.of(ToyEmbedder(5), LABELS, vectors)
    document = json.loads(json.dumps(made.to_json()))
    assert Directions.from_json(document, LABELS) == made
    for row, vector in zip(vectors, made.matrix, strict=True):
        length = np.linalg.norm(row)
        assert np.linalg.norm(vector) == pytest.approx(1 if length else 0, abs=1e-4)
        assert row == pytest.approx(length * vector, abs=2e-5 * length + 1e-12)


def test_a_set_comes_back_with_its_words_and_directions(with_them):
    read = loads(with_them.dumps())
    assert (read.words, read.directions) == (WORDS_SAID, with_them.directions)
    assert verify(read).problems == ()
    assert loads(replace(with_them, words=None, directions=None).dumps()).directions is None


def test_the_order_of_a_files_fields_means_nothing(with_them):
    document = json.loads(with_them.dumps())
    vectors = document["directions"]["vectors"]
    document["directions"]["vectors"] = dict(reversed(vectors.items()))
    read = loads(json.dumps(document))
    assert list(read.directions.vectors) == list(LABELS)
    assert api.classify(read, TEXTS, by=By.DIRECTIONS) == TRUE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["directions"].pop("embedder"), "directions"),
        (lambda d: d["directions"].update(vectors={"b": [1.0]}), "directions"),
        (lambda d: d["directions"].update(vectors=3), "directions"),
        (lambda d: d["directions"]["vectors"].update(b=[]), "directions"),
        (lambda d: d["directions"]["vectors"].update(b=[2.0] + [0.0] * 31), "directions"),
        (lambda d: d["directions"]["vectors"].update(b=[0.5] + [0.0] * 31), "not unit vectors"),
        (lambda d: d["directions"]["vectors"].update(b=[1.0]), "not unit vectors"),
        (lambda d: d["directions"]["vectors"].update(c=[1.0] + [0.0] * 31), "not those of its labels"),
        (lambda d: d["words"].update(b=["sea"] * 9), "words"),
        (lambda d: d["words"].update(b=[3]), "words"),
        (lambda d: d.update(words=[]), "words"),
    ],
)
def test_what_is_no_direction_and_no_word_is_refused(with_them, change, message):
    document = json.loads(with_them.dumps())
    change(document)
    with pytest.raises(UsageError, match=message):
        loads(json.dumps(document))


def test_words_and_directions_that_nobody_paid_for_are_found(with_them):
    made = certified(planned(Recipe.VOTE, Split.ROLES))
    for name, value in (("words", WORDS_SAID), ("directions", directions(made.labels))):
        [problem] = verify(replace(made, **{name: value})).problems
        assert problem == f"{name}: nobody has paid for it: this run has no stage 'words'."
    [problem] = verify(replace(with_them, words={"b": ("sea",)})).problems
    assert problem.startswith("words: every label")


# Read.


def test_margins_are_how_far_the_own_direction_is_ahead():
    places = np.array([[0.5, 0.2, -0.1], [0.1, 0.4, 0.4], [0.0, 0.3, 0.6]])
    assert margins(places, np.array([0, 1, 0])) == pytest.approx([0.3, 0.0, -0.6])


def test_another_embedding_model_is_refused(with_them, monkeypatch):
    monkeypatch.setattr(api, "load_embedder", lambda: ToyEmbedder(16))
    for by in (By.DIRECTIONS, By.BOTH):
        with pytest.raises(UsageError, match="belong to the embedding model"):
            api.classify(with_them, TEXTS, Saying(1.0), by=by)
    with pytest.raises(UsageError, match="belong to the embedding model"):
        api.evaluate(with_them, Dataset("d", LABELS, (Record("the sea", "b"),)), Saying(1.0))
    assert api.classify(with_them, TEXTS, Saying(1.0), by="model") == ["b"] * len(TEXTS)


def test_directions_classify_without_a_language_model(with_them):
    assert api.classify(with_them, TEXTS, by="directions") == TRUE
    assert api.classify(with_them, TEXTS, Never(), by=By.DIRECTIONS) == TRUE
    for text, each in zip(TEXTS, api.predictions(with_them, TEXTS, by="directions"), strict=True):
        [place] = with_them.directions.places([text], EMBEDDER)
        assert each.answer == pytest.approx(softmax(WEIGHT * place))


@pytest.mark.parametrize("by", [By.DIRECTIONS, By.BOTH, "both"])
def test_a_set_without_directions_is_read_by_its_model_alone(without, by):
    with pytest.raises(UsageError, match="no directions"):
        api.classify(without, TEXTS, Saying(1.0), by=by)
    assert api.classify(without, TEXTS, Saying(1.0)) == ["b"] * len(TEXTS)
    with pytest.raises(ValueError, match="other"):
        api.classify(without, TEXTS, Saying(1.0), by="other")


def test_both_together_follow_whoever_is_surer(with_them):
    assert api.classify(with_them, TEXTS, Saying(0.01), by="both") == TRUE
    assert api.classify(with_them, TEXTS, Saying(100.0), by="both") == ["b"] * len(TEXTS)
    [of_model] = api.predictions(with_them, TEXTS[1:2], Saying(2.0), by="model")
    [together] = api.predictions(with_them, TEXTS[1:2], Saying(2.0), by="both")
    [place] = with_them.directions.places(TEXTS[1:2], EMBEDDER)
    for one, other in ((of_model.raw, together.raw), (of_model.calibrated, together.calibrated)):
        assert other == pytest.approx(softmax(np.log(one) + WEIGHT * place))
    assert together.corrected is None


numbers = arrays.arrays(np.float64, (3, 4), elements=st.floats(-30, 30))


@given(numbers, arrays.arrays(np.float64, (3, 4), elements=st.floats(-1, 1)))
def test_what_is_joined_are_probabilities_and_nothing_that_says_nothing_changes_them(scores, places):
    found = joined(scores, places)
    assert found.sum(axis=1) == pytest.approx(1)
    assert joined(scores, np.full_like(places, 0.3)) == pytest.approx(softmax(scores, axis=1))
    assert joined(scores + 7, places) == pytest.approx(found), "a constant of a text counts for nothing"
    assert joined(log_softmax(scores, axis=1), places) == pytest.approx(found)
    alone = joined(np.zeros_like(places), places)
    assert np.take_along_axis(alone, places.argmax(axis=1)[:, None], 1)[:, 0] == pytest.approx(alone.max(axis=1))


def scored(made: DemoSet, gain: tuple[float, float]) -> DemoSet:
    middle = sum(gain) / 2
    arms = {DEMONSTRATIONS: ArmScore(0.7, (0.6, 0.8)), DIRECTIONS: ArmScore(0.7 - middle, (0.5, 0.99))}
    return replace(made, score=Score(arms, True, gains={DIRECTIONS: ArmScore(middle, gain)}))


@pytest.mark.parametrize(("gain", "by"), [((-0.3, -0.1), "directions"), ((-0.2, 0.1), "model"), ((0.1, 0.2), "model")])
def test_without_a_wish_a_set_is_read_by_what_its_private_score_shows_to_be_better(with_them, gain, by):
    made = scored(with_them, gain)
    assert api.read_by(made, None) == by
    assert api.classify(made, TEXTS, Saying(100.0)) == (TRUE if by == "directions" else ["b"] * len(TEXTS))
    assert api.read_by(made, "model") is By.MODEL
    assert api.read_by(replace(made, directions=None), None) is By.MODEL
    assert api.read_by(replace(made, score=None), None) is By.MODEL


def test_an_evaluation_tells_the_directions_and_both_together_where_there_are_some(with_them, without):
    test = Dataset("d", LABELS, tuple(map(Record, TEXTS, TRUE)))
    told = api.evaluate(with_them, test, Saying(0.01))
    assert {DIRECTIONS, BOTH} <= set(told)
    assert told[DIRECTIONS].own_accuracy.value == told[BOTH].own_accuracy.value == 1
    assert told[PRIVATE].own_accuracy.value < 1
    assert not {DIRECTIONS, BOTH} & set(api.evaluate(without, test, Saying(0.01)))


# Said.


def test_a_prompt_says_the_words_that_are_known_and_nothing_where_none_are(with_them):
    template = PromptTemplate("Sort.", "Note", "Topic")
    assert (
        saying_words(template, {"b": tuple("abcdefgh"), "a": ()}).instruction == "Sort.\nb: notes about a, b, c, d, e"
    )
    assert saying_words(template, {}) == saying_words(template, {"b": (), "a": ()}) == template
    assert with_them.prompt == saying_words(with_them.template, WORDS_SAID)
    assert "sea, wave, ship" in with_them.prompt.instruction
    assert "a:" not in with_them.prompt.instruction.splitlines()[-1]
    assert replace(with_them, words=None).prompt == with_them.template
