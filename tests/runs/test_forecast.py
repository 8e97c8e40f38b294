"""What a run in stages reads: its forecast, and what units contribute."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mechanisms.runs.advice import proposed
from mechanisms.runs.forecast import ModelSpeed, Work, measure_speed
from mechanisms.runs.reading_forecast import text_tokens
from mechanisms.runs.recipe import Division, Kind, Stage, divide
from mechanisms.runs.recipe_forecast import seconds_by_part, units, work_by_part
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest

from mechanisms.accounting import PrivacyTarget, fingerprint
from mechanisms.inference.models.embeddings import MAX_TOKENS
from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, Demonstration, Record, default_template
from mechanisms.runs.events import CandidateSet, Drafting, StageStarted
from mechanisms.runs.judging import Reader, of_units, preferences, right
from mechanisms.runs.run import synthesize
from mechanisms.runs.stage import stage_of
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class
from tests.recipes.running import LABELS, TEMPLATE, Embedding, Log, Reading, begun, data, ledger, planned, recipe, rows
from tests.recipes.test_drafts import Speaking
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel, ToySession

# What a run's forecast counts is what the run does: readings of private rows, and drafts that are written.


JUDGING = (Stage.CALIBRATE, Stage.CHOOSE, Stage.SCORE)


@pytest.mark.parametrize("division", Division)
@pytest.mark.parametrize("without", [(), (Stage.SCORE,), (Stage.CHOOSE,), (Stage.CHOOSE, Stage.CALIBRATE)])
def test_rows_are_read_about_as_often_as_is_foreseen(division, without):
    records = data(rows(240))
    request, log = planned(records, recipe(Kind.VOTE, division, without)), Log()
    for _ in begun(records, request, model=Reading(log), embedder=Embedding(Log())):
        pass
    done = sum(len(found) for kind, found, *_ in log if kind == "read")
    stages = [stage for stage in JUDGING if stage in request.recipe.shares]
    parts = divide(records, request.recipe)  # whose role is which is left to chance, and known here
    sets = {stage: sum(each.records for each in stage_of(request, stage).reads()) for stage in stages}
    # Calibrators are read again where a choice was made.
    foreseen = sum(sets[stage] * len(parts[stage].records) / units(request, stage) for stage in stages)
    assert 0.6 * foreseen <= done <= 1.4 * foreseen
    expected, deviation = sum(units(request, stage) for stage in stages), 240**0.5 / 2
    assert sum(len(parts[stage].records) for stage in stages) == pytest.approx(expected, abs=6 * deviation)


def test_a_model_is_measured_behind_its_first_passes():
    shapes = []

    class Told(ToyModel):
        def open(self, prefix, rows, length, room):
            shapes.append((len(rows), length, room))
            return super().open(prefix, rows, length, room)

    measure_speed(Told())
    many, one = shapes[:2]
    assert many[0] > one[0] == 1
    assert shapes.count(many) == 3, "before it counts, then alone, then behind a prefix"
    assert shapes.index(one) < len(shapes) - 1 - shapes[::-1].index(one)


def test_labels_of_more_tokens_and_more_demonstrations_take_longer_to_judge_by():
    speed = ModelSpeed(1e-3, 1e-4, 1e-2)

    def judged(names) -> dict[Stage, float]:
        sizes = dict.fromkeys(names, 4000 // len(names))
        made = proposed(Kind.VOTE, sizes, 1.0)
        made = RecipeRequest(
            labels=tuple(names),
            template=TEMPLATE,
            recipe=replace(made, sets=1, shares={Stage.VOTE: 0.5} | dict.fromkeys(JUDGING, 0.1)),
            target=PrivacyTarget(1.0, 1e-5),
            sizes=sizes,
            content="x",
        )
        parts = seconds_by_part(made, speed)
        return {stage: parts[stage] / made.recipe.shares[stage] for stage in (Stage.VOTE, *JUDGING)}

    short, long, many = (
        judged([f"{each}{i:02}" for i in range(count)]) for each, count in (("a", 4), ("a" * 40, 4), ("a", 80))
    )
    for stage in JUDGING:
        assert short[stage] < long[stage]
        assert 2 * short[stage] < many[stage]
    ballots = 1.2  # of more labels there are more drafts to embed
    assert short[Stage.VOTE] == pytest.approx(long[Stage.VOTE])
    assert many[Stage.VOTE] < 2 * ballots * short[Stage.VOTE], "no demonstrations for a voter"


def test_a_declared_length_counts_as_the_length_of_all_texts():
    sizes = dict.fromkeys(("a", "b"), 1000)
    usual = RecipeRequest(
        labels=("a", "b"),
        template=TEMPLATE,
        recipe=proposed(Kind.VOTE, sizes, 1.0),
        target=PrivacyTarget(1.0, 1e-5),
        sizes=sizes,
        content="x",
    )
    speed = ModelSpeed(1e-3, 1e-4, 1e-2, embedded=1e-3)
    short, mixed, long = (seconds_by_part(replace(usual, max_record_tokens=cap), speed) for cap in (64, 96, 98))
    for stage in (Stage.CHOOSE, Stage.SCORE):
        assert long[stage] > 1.1 * mixed[stage], "none of half that length"
    assert long[Stage.VOTE] > mixed[Stage.VOTE] > short[Stage.VOTE]
    assert text_tokens(10 * MAX_TOKENS) == MAX_TOKENS, "the embedding model's own cap"


class Counted:
    """What was asked of a toy model and a toy embedder, in the forecast's own terms, by part of the run."""

    def __init__(self) -> None:
        self.part: Stage | None = None
        self.work: dict[Stage | None, Work] = {}

    def add(self, **asked: float) -> None:
        self.work[self.part] = self.work.get(self.part, Work()) + Work(**asked)


class CountingSession(ToySession):
    def __init__(self, count, prefix, rows, length, sharpness) -> None:
        super().__init__([[*prefix, *row] for row in rows], sharpness)
        self.count, self.behind = count, len(prefix) + length

    def logits(self, columns=None, rows=slice(None)):
        if columns is None:
            self.count.add(words=len(self.rows[rows]))
        return super().logits(columns, rows)

    def advance(self, tokens) -> None:
        self.count.add(rows=len(tokens), steps=1)
        super().advance(tokens)

    def scores(self, continuations):
        paths = {tuple(each[:i]) for each in continuations for i in range(1, len(each))}
        rows, nodes = len(self.rows), len(paths)
        self.count.add(positions=rows * nodes, pairs=rows * nodes * self.behind, words=rows * (1 + nodes))
        return np.zeros((rows, len(continuations)))


class Counting(Speaking):
    """Its prompts' tokens are words of four letters and a half, as the forecast takes them to be."""

    def __init__(self, count: Counted) -> None:
        super().__init__(sharpness=1.0, busy=128)
        self.count, self.known = count, set[tuple[int, ...]]()

    def encode(self, text: str) -> list[int]:
        whole = super().encode(text)
        return [each % 97 + 11 for each in whole[:: max(1, round(4.5))]] or []

    def open(self, prefix, rows, length, room):
        if tuple(prefix) not in self.known:
            self.known.add(tuple(prefix))
            self.count.add(positions=len(prefix), pairs=len(prefix) ** 2 / 2)
        self.count.add(positions=len(rows) * length, pairs=len(rows) * length * len(prefix))
        return CountingSession(self.count, prefix, rows, length, self.sharpness)


class CountingEmbedder(ToyEmbedder):
    def __init__(self, count: Counted) -> None:
        super().__init__()
        self.count = count

    def embed(self, texts):
        self.count.add(embedded=sum(len(each) / 4.5 for each in texts))
        return super().embed(texts)


SPEED = ModelSpeed(3e-3, 3.3e-3, 0.06, 2e-6, 1.2e-3, 3.5e-4, 128)
"""As one core measured it."""


def small(labels: int, words: int, largest: float | None = None) -> Dataset:
    """A small file of a shape: so many labels, with texts of so many short words."""
    names = [f"lab{i:02}" for i in range(labels)]
    weights = [largest or 1 / labels] + [(1 - (largest or 1 / labels)) / (labels - 1)] * (labels - 1)
    rows = [name for name, weight in zip(names, weights, strict=True) for _ in range(max(4, int(300 * weight)))]
    texts = (" ".join(f"w{(i * 7 + k) % 90:02}" for k in range(words)) for i in itertools.count())
    return Dataset("d", tuple(names), tuple(Record(text, name) for text, name in zip(texts, rows, strict=False)))


@pytest.mark.parametrize(
    "records",
    [small(4, 60), small(5, 180), small(12, 180, 0.6), small(77, 10)],
    ids=["4 labels", "5 labels, long texts", "12 skewed labels", "77 labels"],
)
def test_a_forecast_is_what_the_stages_then_ask_of_the_models(records):
    count, sizes = Counted(), records.counted_sizes()
    target, content = PrivacyTarget(1.0, 1e-5), fingerprint(records).content
    template = default_template(records.labels)
    noisy = mechanism_class("gaussian")(noise_multiplier=9.0)
    made = replace(proposed(Kind.BOTH, sizes, 1.0), drafts=4)
    plan = SamplingPlan(subsets=4, tokens=8)
    written = SynthesisRequest(
        labels=records.labels,
        template=template,
        plan=plan,
        mechanism=noisy,
        target=target,
        sizes=sizes,
        content=content,
        candidates=8,
    )
    request = RecipeRequest(
        labels=records.labels,
        template=template,
        recipe=made,
        target=target,
        sizes=sizes,
        content=content,
        written=written,
        tokens=24,
    )
    log = ledger()
    foreseen = work_by_part(request, SPEED.together)
    model, embedder = Counting(count), CountingEmbedder(count)
    for event in synthesize(records, request, model, log, SeededRandomness(1), embedder=embedder):
        if isinstance(event, StageStarted):
            count.part = event.stage
        elif isinstance(event, Drafting):
            count.part = None
    took = sum(work.seconds(SPEED) for work in count.work.values())
    assert 2 / 3 * took < sum(work.seconds(SPEED) for work in foreseen.values()) < 4 / 3 * took


# What units contribute: bounded whatever the model says, and each unit's by its own records.

ANY = st.floats(allow_nan=True, allow_infinity=True)
SETS = (CandidateSet("none", (), TEMPLATE), CandidateSet("voted 1", (Demonstration("a rose", "red"),), TEMPLATE))


def some_units(count: int, size: int = 1):
    return [tuple(Record(f"{LABELS[i % 2]} secret {i} {j}", LABELS[i % 2]) for j in range(size)) for i in range(count)]


def read(reader: Reader, candidate: CandidateSet, wanted):
    reading, told = reader.read(candidate, wanted), []
    while True:
        try:
            told.append(next(reading))
        except StopIteration as ended:
            return ended.value, told


@given(arrays(np.float64, (4, 3), elements=ANY), arrays(np.float64, 3, elements=st.floats(-20, 20)))
def test_whatever_the_model_says_a_record_adds_at_most_one(scores, offset):
    found = preferences(scores, offset)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert (found.sum(axis=1) <= 1 + 1e-12).all()
    truth = np.array([0, 1, 2, 0])
    for row in range(4):  # a row's numbers are its own
        assert (preferences(scores[row : row + 1], offset)[0] == found[row]).all()
        assert right(scores[row : row + 1], offset, truth[row : row + 1])[0] == right(scores, offset, truth)[row]
        assert not right(scores, offset, truth)[row] or np.isfinite(scores[row]).all()
        if not np.isfinite(scores[row].max()):
            assert found[row].sum() == 0


def test_right_is_the_likeliest_label_under_the_correction():
    scores = np.log(np.array([[0.7, 0.3], [0.4, 0.6]]))
    assert right(scores, np.zeros(2), np.array([0, 0])).tolist() == [True, False]
    assert right(scores, np.log([1.0, 9.0]), np.array([0, 1])).tolist() == [False, True]
    assert preferences(scores, np.log([1.0, 9.0]))[0] == pytest.approx([7 / 34, 27 / 34])


def test_units_are_means_of_their_own_records():
    wanted = [*some_units(2, size=3), *some_units(1)]
    of_records = np.arange(14.0).reshape(7, 2)
    found = of_units(of_records, wanted)
    assert found.tolist() == [of_records[:3].mean(axis=0).tolist(), of_records[3:6].mean(axis=0).tolist(), [12, 13]]
    assert of_units(np.empty((0, 5)), []).shape == (0, 5)


def test_reading_keeps_the_order_of_units_and_tells_how_far_it_is():
    reader = Reader(Reading(Log()), LABELS, 64)
    wanted = some_units(50, size=3)
    scores, told = read(reader, SETS[0], wanted)
    assert scores.shape == (150, 2)
    assert (scores.argmax(axis=1) == reader.truth(wanted)).all()
    assert told == sorted(set(told))
    assert told[-1] == 150
    alone, _ = read(reader, SETS[0], wanted[7:8])
    assert (alone == scores[21:24]).all()
    assert read(reader, SETS[0], [])[0].shape == (0, 2)


def test_a_set_has_one_classifier_that_shows_its_demonstrations():
    class Shown(Reading):
        prefixes: ClassVar[set[str]] = set()

        def answer(self, prefix, query, label):
            self.prefixes.add(prefix)
            return super().answer(prefix, query, label)

    model = Shown(Log())
    reader = Reader(model, LABELS, 64)
    for candidate in SETS:
        assert reader.under(candidate) is reader.under(candidate)
        read(reader, candidate, some_units(2))
    assert sorted("a rose" in prefix for prefix in model.prefixes) == [False, True]
