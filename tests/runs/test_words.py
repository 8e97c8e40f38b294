"""The stage "words": what a unit adds, what follows where noise is too small to matter, and what is told from noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, claim
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.demos.directions import Directions
from mechanisms.errors import UsageError
from mechanisms.inference.vocabulary import Vocabulary, common_words, vocabulary
from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Composed
from mechanisms.records import Dataset, Record
from mechanisms.runs import state as run_state
from mechanisms.runs.completion import complete
from mechanisms.runs.drafts import DraftRequest, Margins
from mechanisms.runs.events import DemoRefused, DemoStarted, SetsCompared, StageProgress, StageStarted
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.roles import divide
from mechanisms.runs.run import run
from mechanisms.runs.run_file import from_lines
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE, VOTE, WORDS, Split
from mechanisms.runs.stages import words as words_stage
from mechanisms.runs.stages.words import CLEARS, FEWEST_WORDS, MOST_WORDS, Word, WordsReleased, WordsStage, words_of
from mechanisms.runs.stages.write import NO_SENTENCE, OF_ANOTHER
from mechanisms.runs.state import RunState
from mechanisms.tallies import Prototypes
from mechanisms.tallies.tally import LATTICE
from tests.replay.contract import EXTREMES, replay
from tests.replay.tape import Tape
from tests.runs.running import LABELS, Embedding, Log, Reading, begun, data, planned, rows, secrets, spec
from tests.runs.test_resume import FILE, asked_for, cut_off, journal_at, resumed
from tests.steps.inputs import Noiseless
from tests.toy_embedder import ToyEmbedder

SAID = ("heart", "pulse", "chest"), ("skin", "fever", "cream")
"""Common words that the rows of the first label are about, and of the second."""


class Themed(ToyEmbedder):
    """Each of a few words has a direction of its own; all the others have one together."""

    name = "themed"

    def __init__(self, *said: str) -> None:
        self.said = [*said]
        self.dimensions, self.sha256 = len(said) + 1, "-".join(["themed", *said])

    def embed(self, texts):
        found = np.zeros((len(texts), self.dimensions))
        for vector, text in zip(found, texts, strict=True):
            for word in text.split() or ["nothing"]:
                vector[self.said.index(word) if word in self.said else -1] += 1
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)

    def embed_together(self, texts):
        return self.embed(texts)


def about(said: Sequence[Sequence[str]], count: int, labels: Sequence[str] = LABELS) -> Dataset:
    """Rows of each label about two of its words in turn."""
    texts = [
        (" ".join([of[i % len(of)], of[(i + 1) % len(of)], "today"]), y)
        for y, of in zip(labels, said, strict=True)
        for i in range(count)
    ]
    return Dataset("d", tuple(labels), tuple(Record(text, label) for text, label in texts))


THEMED = Themed(*SAID[0], *SAID[1])


def stage_for(
    dataset: Dataset, sizes: dict[str, int] | None = None, split: str = "epsilon", epsilon=8.0, **settings: object
) -> WordsStage:
    """The stage in a vote that asks for words before; with other sizes than the rows' number, where they are given."""
    asked = spec(
        "vote", split, (OPENINGS, CALIBRATE, SCORE), shares={WORDS: 0.6, VOTE: 0.4}, epsilon=epsilon, **settings
    )
    if sizes is None:
        plan = planned(dataset, asked)
    else:
        plan = Plan(spec=complete(asked, sizes), labels=dataset.labels, sizes=sizes, unit=dataset.unit)
    stage = plan.stages[WORDS]
    assert isinstance(stage, WordsStage)
    return stage


def state_of(stage: WordsStage, dataset: Dataset, embedder: Any, randomness: Any) -> RunState:
    parts = divide(dataset, stage.plan)
    return RunState(stage.plan, parts, Reading(), embedder, randomness, False, False)


def asked(stage: WordsStage, dataset: Dataset, embedder: Any = None, randomness: Any = None) -> WordsReleased:
    """What the stage releases; without noise, unless there is another source."""
    state = state_of(stage, dataset, embedder or THEMED, randomness or Noiseless())
    *progress, told = stage.ask(state)
    assert all(isinstance(each, StageProgress) for each in progress)
    assert isinstance(told, WordsReleased)
    stage.check(told)
    return told


def apart(told: WordsReleased) -> np.ndarray:
    """What of each label's mean lies across the mean over labels, as the release tells it."""
    return np.array([np.array(told.directions[label]) * told.lengths[label] for label in told.directions])


# Without noise.


@pytest.mark.parametrize("many", [1, 3], ids=["the number of rows", "three times as many declared"])
def test_without_noise_directions_are_those_of_the_sums_over_public_sizes(many):
    records = [each for i, each in enumerate(rows(90)) if each.label == "red" or i % 3]
    sizes = {"red": 45 * many, "blue": 30 * many}
    dataset, embedder = data(records), ToyEmbedder()
    told = asked(stage_for(dataset, sizes), dataset, embedder)
    means = np.array([embedder.embed([r.text for r in records if r.label == y]).sum(axis=0) / sizes[y] for y in LABELS])
    middle = means.mean(axis=0)
    across = np.eye(len(middle)) - np.outer(middle, middle) / (middle @ middle)
    assert apart(told) == pytest.approx((means - middle) @ across, abs=1e-4)
    assert np.linalg.norm([*told.directions.values()], axis=1) == pytest.approx(1, abs=1e-4)
    assert told.middle == pytest.approx(middle / np.linalg.norm(middle), abs=1e-4)
    assert (told.embedder, told.sha256) == (embedder.name, embedder.sha256)


@pytest.mark.parametrize(
    ("sentence", "sample", "says"),
    [
        ("Schreibe eine Nachricht über {label}.", "Wo bleibt das Paket? Es ist noch nicht da.", False),
        ("Write a German message about {label}.", "Wo bleibt das Paket? Es ist noch nicht da.", False),
        ("Write a message about {label}.", "Where is the parcel? It is not here yet.", True),
        ("", "Wo bleibt das Paket? Es ist noch nicht da.", True),  # the program asks in English
    ],
)
def test_drafts_in_another_language_get_no_english_words(sentence, sample, says):
    dataset = about(SAID, 200)
    stage = stage_for(dataset, sentence=sentence)
    state = state_of(stage, dataset, THEMED, Noiseless())
    state.samples = [sample] * 6
    *_, told = stage.ask(state)
    stage.check(told)
    assert told.foreign is not says
    assert [bool(words) for words in told.words.values()] == [says, says]
    assert ("public words are English" in told.lines()[0]) is not says


def test_a_label_of_which_few_take_part_does_not_lie_against_what_all_rows_say():
    """Everybody says "today"; of one label half of the units that it is declared to have take part. That all say it is
    no word of the other one."""
    whole = about(SAID, 200)
    few = replace(whole, records=whole.records[100:])
    told = asked(stage_for(few, dict.fromkeys(LABELS, 200)), few)
    for label in LABELS:
        assert np.array(told.directions[label]) @ np.array(told.middle) == pytest.approx(0, abs=1e-4)
    assert {each.word for each in told.words[LABELS[1]]} == {*SAID[1]}


@pytest.mark.parametrize("split", list(Split))
def test_without_noise_words_are_those_that_rows_are_about(split):
    dataset = about(SAID, 200)
    told = asked(stage_for(dataset, split=split), dataset)
    for label, said in zip(LABELS, SAID, strict=True):
        assert {each.word for each in told.words[label]} == {*said}
        assert all(each.clears > CLEARS for each in told.words[label])
        assert all(each.word in " ".join(told.lines()) for each in told.words[label])


def test_only_the_rows_of_its_own_role_say_something():
    dataset = about(SAID, 100)
    stage = stage_for(dataset, split="roles")
    log = Log()
    with_numbers = replace(
        dataset, records=tuple(replace(r, text=f"{r.text} secret {i}") for i, r in enumerate(dataset.records))
    )
    stage = stage_for(with_numbers, split="roles")
    asked(stage, with_numbers, Embedding(log))
    read = set().union(*(found for kind, found in log if kind == "read"))
    assert read == secrets(each.text for each in divide(with_numbers, stage.plan)[WORDS].records)
    assert 0 < len(read) < len(dataset.records)


def test_fewer_than_three_words_are_none():
    for said in ((("heart", "pulse"), SAID[1]), ((*SAID[0], "blood"), SAID[1])):
        dataset = about(said, 200)
        told = asked(stage_for(dataset), dataset, Themed(*said[0], *said[1]))
        assert len(told.words["red"]) == (0 if len(said[0]) < FEWEST_WORDS else len(said[0]))
        assert len(told.words["blue"]) == 3
        assert ("no word clears" in told.lines()[0]) == (len(said[0]) < FEWEST_WORDS)


def test_a_label_speaks_for_itself_where_its_name_lies_along_its_direction():
    """ "red" is a word of its rows, "blue" a word of nobody's."""
    dataset = about((("red", *SAID[0]), SAID[1]), 200)
    told = asked(stage_for(dataset), dataset, Themed("red", *SAID[0], *SAID[1]))
    assert told.named == ("red",)


@pytest.mark.parametrize(("kind", "named"), [("fever", ()), ("heart", ("red",)), ("message", ("red",))])
def test_the_kind_of_text_does_not_speak_for_a_label(kind, named):
    """A prompt for a "fever about blue" lies along the direction of "blue"; its name alone does not."""
    dataset, embedder = about((("red", *SAID[0]), SAID[1]), 200), Themed("red", *SAID[0], *SAID[1])
    assert asked(stage_for(dataset, kind=kind), dataset, embedder).named == named


@pytest.mark.parametrize(
    ("name", "named"), [("red so", ("red",)), ("red so so so so so so so", ())], ids=["far", "near"]
)
def test_a_name_speaks_for_its_label_only_as_far_as_a_word_must(name, named):
    """Both names lie along the direction of "red"; the one that says little else than "so" not far enough."""
    dataset, embedder = about((("red", *SAID[0]), SAID[1]), 200), Themed("red", *SAID[0], *SAID[1])
    told = asked(stage_for(dataset, label_words={"red": name}), dataset, embedder)
    assert Directions(told.embedder, told.sha256, told.directions).nearest([name], embedder).tolist() == [0]
    assert told.named == named


# What a unit adds.


def users(*labels: str, others: int = 6) -> tuple[Dataset, Dataset]:
    """Users with rows of both labels, and one more with rows of these."""
    records = [Record(f"The {y} of user {i}", y, f"user {i}") for i in range(others) for y in LABELS]
    mine = [Record(f"My {y} note {i}", y, "me") for i, y in enumerate(labels)]
    return data([*records, *mine], by_user=True), data(records, by_user=True)


def singles(label: str) -> tuple[Dataset, Dataset]:
    records = rows(12)
    return data([*records, Record("My own note", label)]), data(records)


PAIRS = {
    "a row": singles("red"),
    "a row of the last label": singles("blue"),
    "a user with one row": users("red"),
    "a user with rows of both labels": users("red", "blue", "red", "blue"),
    "a user with many rows": users(*["blue"] * 30, "red"),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_unit_adds_a_vector_of_length_one_at_most_over_all_labels_together(pair):
    one, other = pair
    stage = stage_for(one, dict.fromkeys(LABELS, 50))
    found = []
    for dataset in (one, other):
        tape = Tape()
        asked(stage, dataset, ToyEmbedder(), tape)
        [draw] = tape.draws
        assert draw.scale == pytest.approx(LATTICE * stage.tally.noise_multiplier)
        found.append(draw.values / LATTICE)
    assert 0.99 < np.linalg.norm(found[0] - found[1]) <= 1
    assert np.count_nonzero((found[0] - found[1]).reshape(len(LABELS), -1).any(axis=1)) == 1


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("source", EXTREMES, ids=["likely", "low", "high"])
def test_where_the_noisy_sums_are_the_same_all_that_is_told_is_the_same(pair, source):
    """Means are divided by public sizes: a count that differs shows nowhere."""
    one, other = pair
    stage = stage_for(one, dict.fromkeys(LABELS, 50))

    def release(dataset, tape):
        return asked(stage, dataset, ToyEmbedder(), tape)

    cost = replay(release, one, other, source=source).cost(stage.tally.event)
    assert 0.98 < cost.noise <= 1


@pytest.mark.parametrize("split", list(Split))
def test_sums_are_divided_by_the_public_sizes_of_the_role_measured_ones_too(split):
    dataset = about(SAID, 60)
    asked_for_it = spec("vote", split, (OPENINGS, CALIBRATE, SCORE), shares={WORDS: 0.25, VOTE: 0.75})
    sizes = {"red": 400, "blue": 100}
    declared = plan_for(asked_for_it.with_(sizes=sizes), dataset).stages[WORDS]
    plan = planned(dataset, asked_for_it)
    measured = plan_for(asked_for_it, dataset, MeasuredSizes(sizes, 0.3, 1e-8, plan.content)).stages[WORDS]
    role = 0.25 if split is Split.ROLES else 1.0
    for stage in (declared, measured):
        assert stage.counted == pytest.approx([role * 400, role * 100])


# The noise.


UNEVEN = {"red": 30, "blue": 30, "green": 120}
EVEN = {"red": 40, "blue": 40, "green": 40}


class Alike(ToyEmbedder):
    """Any two texts say the same."""

    name, sha256 = "alike", "alike"

    def embed(self, texts):
        return np.tile(np.eye(self.dimensions, dtype=np.float32)[0], (len(texts), 1))


@pytest.mark.parametrize("sizes", [EVEN, UNEVEN], ids=["equal sizes", "unequal sizes"])
def test_the_deviation_that_is_told_is_that_of_the_noise(sizes):
    """Of the place of any unit vector across the mean over labels, by its closed form too."""
    records = tuple(Record(f"Note {i} of {label}", label) for label, size in sizes.items() for i in range(size))
    everybody, embedder = Dataset("d", tuple(sizes), records), Alike(32)
    stage = stage_for(everybody, sizes)
    found = np.array([apart(asked(stage, everybody, embedder, SeededRandomness(seed))) for seed in range(80)])
    assert found[:, :, 0] == pytest.approx(0, abs=0.1), "all rows lie there, and no direction does"
    simulated = found[:, :, 1:].std(axis=(0, 2))  # every other coordinate is the place of a unit vector
    assert found.mean(axis=(0, 2)) == pytest.approx(0, abs=5 * simulated.max() / 50)
    of_mean = {label: stage.tally.noise_multiplier / size for label, size in sizes.items()}
    count = len(sizes)
    for place, label in enumerate(sizes):
        others = sum(of_mean[other] ** 2 for other in sizes if other != label)
        wanted = math.sqrt((of_mean[label] * (count - 1) / count) ** 2 + others / count**2)
        assert stage.deviations[place] == pytest.approx(wanted)
        assert simulated[place] == pytest.approx(wanted, rel=0.06)
        if sizes == EVEN:
            assert wanted == pytest.approx(of_mean[label] * math.sqrt((count - 1) / count))
    told = asked(stage, everybody, embedder, SeededRandomness(1))
    assert [*told.noise.values()] == pytest.approx(stage.deviations)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 30.0])
def test_noise_is_rounded_up_and_costs_no_more_than_it_may(epsilon):
    """By both accountants; machines that differ in last digits state the same."""
    stage = stage_for(about(SAID, 60), epsilon=epsilon)
    noise, share = stage.tally.noise_multiplier, stage.plan.epsilon(WORDS)
    exact = Prototypes.costing(PrivacyTarget(share, stage.plan.spec.delta), 2).noise_multiplier
    assert exact <= noise <= 1.0011 * exact
    assert float(f"{noise:.4g}") == noise
    paid = claim(Composed("dataset", (("all", stage.events),)), stage.plan.spec.delta)
    assert 0.97 * share < paid.epsilon <= share
    assert paid.check == pytest.approx(paid.epsilon, rel=0.02)


def test_a_word_that_says_nothing_clears_its_noise_seldom():
    """Of 17,900 words one in every second label at four deviations, so that three of them hardly ever do."""
    nobody, embedder = data([]), ToyEmbedder(64)
    stage, public = stage_for(nobody, dict.fromkeys(LABELS, 300)), vocabulary(embedder)
    chance, cleared, given_words = math.erfc(CLEARS / math.sqrt(2)) / 2, 0, 0
    runs = 150
    for seed in range(runs):
        told = asked(stage, nobody, embedder, SeededRandomness(seed))
        places = public.places @ apart(told).T
        cleared += int((places > CLEARS * stage.deviations).sum())
        given_words += sum(map(bool, told.words.values()))
    expected = chance * len(public.words) * len(LABELS) * runs
    assert 0.5 * expected < cleared < 2 * expected
    assert given_words <= 0.05 * len(LABELS) * runs


def test_what_is_clear_of_noise_is_measured_in_its_deviations():
    dataset = about(SAID, 200)
    told = [asked(stage_for(dataset, dict.fromkeys(LABELS, size)), dataset) for size in (200, 800)]
    for label in LABELS:
        # Declared to be four times as many, they have means and noise of a fourth.
        assert told[1].lengths[label] == pytest.approx(told[0].lengths[label] / 4, abs=1e-5)
        assert told[1].noise[label] == pytest.approx(told[0].noise[label] / 4)
        one, other = ({each.word: each.clears for each in each.words[label]} for each in told)
        assert one == pytest.approx(other, abs=0.11)
        vectors = dict(zip(THEMED.said, THEMED.embed(THEMED.said), strict=True))
        for word, clears in one.items():
            place = float(vectors[word] @ apart(told[0])[LABELS.index(label)])
            assert clears == pytest.approx(place / told[0].noise[label], rel=0.01, abs=0.06)


# Which words: post-processing of released directions.


unit = st.lists(st.floats(-1, 1), min_size=3, max_size=3).map(np.array).filter(lambda v: np.linalg.norm(v) > 0.1)


@given(st.lists(unit, min_size=2, max_size=4), st.lists(unit, min_size=1, max_size=30), st.floats(1, 60))
def test_words_clear_their_noise_belong_to_one_label_and_are_unlike(directions, places, clear):
    labels = [f"label {i}" for i in range(len(directions))]
    found = Directions.of(ToyEmbedder(3), labels, np.array(directions))
    vectors = np.array([each / np.linalg.norm(each) for each in places], dtype=np.float32)
    public = Vocabulary(tuple(f"word{i}" for i in range(len(places))), vectors)
    words = words_of(found, np.array([0.6, 0.8, 0.0]), np.full(len(labels), clear), public)
    assert [*words] == labels
    told = [each.word for of in words.values() for each in of]
    assert len(told) == len({*told})
    for i, of in enumerate(words.values()):
        assert len(of) == 0 or FEWEST_WORDS <= len(of) <= MOST_WORDS
        at = [public.words.index(each.word) for each in of]
        own = vectors[at].astype(float) @ found.matrix.T
        assert (own[:, i] * clear > CLEARS - 1e-3).all()
        assert (own.argmax(axis=1) == i).all()
        alike = vectors[at] @ vectors[at].T - np.eye(len(at))
        assert len(at) == 0 or alike.max() < 0.7 + 1e-4


def test_of_words_that_say_the_same_as_clearly_the_common_one_stands_first():
    labels, places = ("red", "blue"), np.eye(6, dtype=np.float32)[[0, 1, 2, 3]]
    directions = Directions.of(ToyEmbedder(6), labels, np.array([[1.0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 0]]))
    [*told] = words_of(directions, np.zeros(6), np.array([90.0, 90.0]), Vocabulary(("a", "b", "c", "d"), places))["red"]
    assert [each.word for each in told] == ["a", "b", "c", "d"]


def test_of_words_that_say_the_same_as_clearly_that_which_is_like_all_rows_stands_first():
    labels, places = ("red", "blue"), np.eye(6, dtype=np.float32)[[0, 1, 2, 3]]
    directions = Directions.of(ToyEmbedder(6), labels, np.array([[1.0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 0]]))
    public = Vocabulary(("a", "b", "c", "d"), places)
    [*told] = words_of(directions, np.eye(6)[2], np.array([90.0, 90.0]), public)["red"]
    assert [each.word for each in told] == ["c", "a", "b", "d"]


def test_however_far_a_word_clears_its_noise_it_is_told():
    """With millions of rows and a large epsilon the noise is a billionth of what is found."""
    directions = Directions.of(ToyEmbedder(4), LABELS, np.eye(4)[[0, 3]])
    near = np.array([[1.0, 0, 0, 0], [0.7, 0.7, 0, 0], [0.7, 0, 0.7, 0]], dtype=np.float32)
    [*told] = words_of(directions, np.zeros(4), np.array([1e10, 1e10]), Vocabulary(("a", "b", "c"), near))["red"]
    assert [each.clears for each in told] == [1e6] * 3


# What a file may tell.


def honest() -> tuple[WordsStage, WordsReleased]:
    dataset = about(SAID, 200)
    stage = stage_for(dataset)
    return stage, asked(stage, dataset)


def one_of(of: dict[str, Any], value: Any) -> dict[str, Any]:
    return of | {LABELS[0]: value}


def test_a_release_that_cannot_have_been_told_is_refused():
    stage, told = honest()
    first = told.directions[LABELS[0]]
    [word, *_] = told.words[LABELS[0]]
    clear = told.words[LABELS[0]]
    for event, match in (
        (replace(told, noise=one_of(told.noise, told.noise[LABELS[0]] / 2)), "noise"),
        (replace(told, noise={LABELS[0]: told.noise[LABELS[0]]}), "other labels"),
        (replace(told, directions=told.directions | {"more": first}), "other labels"),
        (replace(told, directions=dict(reversed(told.directions.items()))), "other labels"),
        (replace(told, lengths={"x": 1.0, "y": 1.0}), "other labels"),
        (replace(told, words={LABELS[0]: told.words[LABELS[0]]}), "other labels"),
        (replace(told, named=("green",)), "other labels"),
        (replace(told, directions=one_of(told.directions, (*first, 0.0))), "unit vectors"),
        (replace(told, directions=one_of(told.directions, tuple(2 * each for each in first))), "unit vectors"),
        (replace(told, directions=one_of(told.directions, tuple(each / 2 for each in first))), "unit vectors"),
        (replace(told, middle=told.middle[:-1]), "unit vectors"),
        (replace(told, words=one_of(told.words, (*clear[:-1], Word("Mrs. Smith", 9.0)))), "public list"),
        (replace(told, words=one_of(told.words, (*clear[:-1], replace(word, clears=CLEARS - 0.1)))), "public list"),
        (replace(told, words=one_of(told.words, clear[: FEWEST_WORDS - 1])), "public list"),
    ):
        with pytest.raises(UsageError, match=match):
            stage.check(event)


def test_words_that_are_told_are_of_the_public_list():
    dataset = about((("zyzzyva", *SAID[0]), SAID[1]), 200)
    assert "zyzzyva" not in common_words()
    told = asked(stage_for(dataset), dataset, Themed("zyzzyva", *SAID[0], *SAID[1]))
    assert {each.word for each in told.words["red"]} == {*SAID[0]}


def test_a_single_label_has_no_words():
    alone = Dataset("d", ("red",), tuple(r for r in rows(60) if r.label == "red"))
    asked_for_it = spec("vote", "epsilon", (OPENINGS, CALIBRATE, SCORE), shares=None, score=False)
    left = planned(alone, asked_for_it)
    assert WORDS not in left.stages
    assert VOTE in left.stages
    with pytest.raises(UsageError, match="leave out the stage 'words'"):
        stage_for(alone)


# In a run.

FOUND = dict(zip(LABELS, (tuple(Word(each, 9.0) for each in said) for said in SAID), strict=True))


@pytest.fixture
def found(monkeypatch):
    """Whatever rows say, these words are found."""
    monkeypatch.setattr(words_stage, "words_of", lambda *_: FOUND)
    return FOUND


class Prompted(Reading):
    """Remembers the sentences that ask for texts."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def open(self, prefix, rows, length, room):
        shown = bytes(prefix).decode("ascii", "replace")
        for each in rows:
            whole = shown + bytes(each).decode("ascii", "replace")
            if "Write one note" in whole:
                self.asked.append(whole[whole.index("Write one note") :].partition("\n")[0])
        return super().open(prefix, rows, length, room)


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("split", list(Split))
@pytest.mark.parametrize("recipe", ["tokens", "vote", "both"])
def test_texts_of_a_label_are_asked_for_with_its_words_and_public_ones_without(recipe, split, monkeypatch):
    wanted_of: list[tuple[DraftRequest, Any]] = []
    plain = run_state.write_drafts

    def noted(model, wanted, gate, randomness, taken=(), order=None):
        wanted_of.append((wanted, order))
        return plain(model, wanted, gate, randomness, taken, order)

    monkeypatch.setattr(run_state, "write_drafts", noted)
    model, records = Prompted(), data(rows(60))
    told = list(begun(records, planned(records, spec(recipe, split)), model=model))
    place = next(i for i, event in enumerate(told) if isinstance(event, WordsReleased))
    assert all(not isinstance(event, DemoStarted | SetsCompared) for event in told[:place])
    for label, said in zip(LABELS, SAID, strict=True):
        mine = [(wanted, order) for wanted, order in wanted_of if wanted.label == label]
        own = [each for each in mine if each[0].words]
        public = [each for each in mine if not each[0].words]
        assert all(set(wanted.words) == {*said} and isinstance(order, Margins) for wanted, order in own)
        assert all(wanted.public and not isinstance(order, Margins) for wanted, order in public)
        assert public
        assert own or recipe == "tokens"
        for event in (each for each in told if isinstance(each, DemoStarted) and each.label == label):
            assert set(event.words) <= {*said}
            assert len(event.words) == 2
        # No label is asked for with another's words.
        others = {each for of in SAID for each in of} - {*said}
        sentences = [each for each in model.asked if f"about {label}" in each]
        assert not [each for each in sentences if others & set(each.replace(",", "").split())]
    assert any("with words like" in each for each in model.asked)
    assert any("with words like" not in each for each in model.asked)


@pytest.mark.usefixtures("found")
def test_what_rows_wrote_of_another_label_is_refused_and_stands_nowhere(monkeypatch):
    monkeypatch.setattr("mechanisms.runs.text.Gate.reason", lambda gate, text: None)
    records = data(rows(60))
    of_another: dict[str, bool] = {}

    def judged(margins, label, text):
        return of_another.setdefault(text, len(of_another) % 2 == 0)

    monkeypatch.setattr(Margins, "of_another_label", judged)
    told = list(begun(records, planned(records, spec("tokens", written=3, shots=2))))
    # A toy's text may be empty, and is then judged by nobody.
    refused = [event for event in told if isinstance(event, DemoRefused) and event.reason != NO_SENTENCE]
    assert {each.reason for each in refused} == {OF_ANOTHER}
    assert len(refused) == sum(of_another.values())
    made = told[-1].demo_set
    assert not {each.text for each in made.demonstrations} & {text for text, other in of_another.items() if other}
    assert OF_ANOTHER in {each.reason for each in made.refused}


@pytest.mark.usefixtures("found")
def test_the_prompt_says_the_words_for_the_sets_own_arm_alone():
    """Rows read zero-shot and behind public text as if nothing had been released."""

    class Shown(Reading):
        def __init__(self) -> None:
            super().__init__()
            self.shown: set[str] = set()

        def answer(self, prefix, query, label):
            self.shown.add(prefix)
            return super().answer(prefix, query, label)

    model, records = Shown(), data(rows(60))
    *_, ended = begun(records, planned(records, spec("vote")), model=model)
    made = ended.demo_set
    assert made.words == {label: tuple(each.word for each in of) for label, of in FOUND.items()}
    saying = {shown for shown in model.shown if "red: notes about heart, pulse, chest" in shown}
    own = [each for each in model.shown if any(d.text in each for d in made.demonstrations)]
    assert saying
    assert {*own} == saying
    assert all("about skin, fever, cream" in each for each in saying)
    assert len(model.shown - saying) == 2, "zero-shot, and public text"
    assert made.template.instruction not in ("", made.prompt.instruction)
    assert made.prompt.instruction.startswith(made.template.instruction)
    assert made.baselines.public_only.template in (None, made.template)


def test_a_set_without_words_has_the_prompt_that_it_had():
    records = data(rows(60))
    *_, ended = begun(records, planned(records, spec("vote", without=(WORDS,))))
    assert (ended.demo_set.words, ended.demo_set.directions) == (None, None)
    assert ended.demo_set.prompt == ended.demo_set.template


# Resumed.


@pytest.mark.usefixtures("found")
def test_a_run_that_goes_on_has_the_words_that_it_had(tmp_path, monkeypatch):
    """And asks nobody for them again."""
    before = cut_off("both", tmp_path / FILE, lambda event: isinstance(event, DemoStarted))
    [told] = (event for event in before if isinstance(event, WordsReleased))
    begun_with = before[-1].words
    assert begun_with
    monkeypatch.setattr(words_stage, "words_of", lambda *_: pytest.fail("asked again"))
    monkeypatch.setattr(WordsStage, "ask", lambda *_: pytest.fail("asked again"))
    after = resumed("both", tmp_path / FILE)
    [again] = (event for event in after if isinstance(event, WordsReleased))
    assert again == told
    made = after[-1].demo_set
    assert made.words == {label: tuple(each.word for each in of) for label, of in FOUND.items()}
    assert made.directions.vectors == told.directions
    starts = {(event.label, event.number): event.words for event in after if isinstance(event, DemoStarted)}
    assert starts[before[-1].label, before[-1].number] == begun_with
    assert all(set(words) <= {each.word for each in FOUND[label]} for (label, _), words in starts.items())
    read = from_lines((tmp_path / FILE).read_text())
    assert told in read
    assert (read[-1].demo_set.words, read[-1].demo_set.directions) == (made.words, made.directions)


@pytest.mark.usefixtures("found")
def test_a_run_that_goes_on_reads_no_row_for_words_again(tmp_path):
    private, plan = asked_for("vote")
    cut_off("vote", tmp_path / FILE, lambda event: isinstance(event, StageStarted) and event.stage == VOTE)
    log = Log()
    with closing(journal_at(tmp_path / FILE)) as journal:
        list(run(plan, private, Reading(log), PrivacyLedger(), journal=journal, embedder=Embedding(log)))
    read = set().union(*(found for kind, found in log if kind == "read"))
    assert not read & secrets(each.text for each in divide(private, plan)[WORDS].records)
