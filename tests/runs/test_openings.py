"""Openings: what a row votes for, which of them are used, and where they stand from there on."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.errors import UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.runs.drafts import allotted
from mechanisms.runs.events import DemoStarted
from mechanisms.runs.plan import Plan
from mechanisms.runs.run import divide
from mechanisms.runs.spec import CALIBRATE, OPENINGS, SCORE
from mechanisms.runs.stages.openings import AskForOpenings, OpeningsReleased, listed
from mechanisms.tallies import Beginnings
from tests.runs.running import LABELS, Log, Reading, begun, data, planned, rows, spec

NO_NOISE = 90.0
"""An epsilon at which a whole vote of noise has probability e^-90."""


def plan_of(records=None, **settings) -> Plan:
    records = data(rows(60)) if records is None else records
    return planned(records, spec("vote", "epsilon", (CALIBRATE, SCORE), **settings))


def stage_of(plan: Plan) -> AskForOpenings:
    stage = plan.stages[OPENINGS]
    assert isinstance(stage, AskForOpenings)
    return stage


def released(plan: Plan, records, **rest) -> OpeningsReleased:
    return next(event for event in begun(records, plan, **rest) if isinstance(event, OpeningsReleased))


# What a row votes for.


def test_openings_of_a_kind_are_a_part_of_all_and_where_no_kind_is_named_all_compete():
    every, messages, reviews = listed("utterance"), listed("chat message"), listed("sentence from a film review")
    assert {*messages} | {*reviews} < {*every}
    assert not {"Hello", "Can you"} - {*messages}
    assert not {"Hello", "Can you"} & {*reviews}


@pytest.mark.parametrize("many", [1, 100], ids=["pooled", "by label"])
def test_without_noise_the_counts_are_those_of_its_role(many):
    """Nobody else's rows, each once."""
    starts = ["My", "The", "I have", "Nothing"]
    records = data([replace(each, text=f"{starts[i % 4]} {each.text}") for i, each in enumerate(rows(200))])
    sizes = dict.fromkeys(LABELS, many * 100)
    plan = planned(records, spec("vote", "roles", (CALIBRATE, SCORE), epsilon=NO_NOISE / 30 if many > 1 else NO_NOISE))
    plan = replace(plan, sizes=sizes)
    found = released(plan, records)
    assert set(found.counts) == ({*LABELS} if stage_of(plan).by_label else {""})
    assert (many > 1) <= stage_of(plan).by_label
    if plan.spec.epsilon < NO_NOISE:
        return
    mine = Beginnings(found.openings)
    for label, counts in found.counts.items():
        part = divide(records, plan)[OPENINGS].records
        votes = Counter(mine.place(each.text) for each in part if label in ("", each.label))
        del votes[None]
        assert {i: count for i, count in enumerate(counts) if count} == votes


# Which of them are used: post-processing of the released counts.


counts_of = st.lists(st.floats(-50, 500), min_size=4, max_size=12)


@given(counts_of, counts_of)
def test_what_is_used_clears_the_noise_and_has_its_share(one, other):
    plan = plan_of(sizes=dict.fromkeys(LABELS, 30))
    stage, names = stage_of(plan), tuple(f"o{i}" for i in range(4))
    counts = np.array((one + other)[:4])
    used = stage.used(names, {"": counts})
    assert used["red"] == used["blue"], "pooled"
    clear = {name for name, count in zip(names, counts, strict=True) if count > stage.clear_of_noise(len(names))}
    assert set(used["red"]) in (clear, set())
    if used["red"]:
        assert sum(used["red"].values()) == pytest.approx(1)
        best = max(used["red"], key=lambda each: used["red"][each])
        assert counts[names.index(best)] == max(counts)


def test_little_that_clears_the_noise_is_not_used():
    stage = stage_of(plan_of(sizes=dict.fromkeys(LABELS, 3000)))
    names, high = tuple("abcd"), 400.0
    assert stage.used(names, {label: np.array([high, high, 0, 0]) for label in ("", *LABELS)})["red"] == {}
    assert len(stage.used(names, {label: np.array([high, high, high, 0]) for label in ("", *LABELS)})["red"]) == 3
    few = {label: np.array([30.0, 30, 30, 0]) for label in ("", *LABELS)}
    assert stage.used(names, few)["red"] == {}, "they stand for hardly any of the voters"


@pytest.mark.parametrize("size", [30, 20_000], ids=["pooled", "by label"])
def test_a_release_that_does_not_follow_from_its_counts_is_refused(size):
    stage = stage_of(plan_of(sizes=dict.fromkeys(LABELS, size)))
    names, groups = ("I", "My", "The", "We"), LABELS if stage.by_label else ("",)
    counts = {group: np.array([4.0 * size, 2.0 * size, 1.0 * size, 0.0]) for group in groups}
    told = {group: tuple(each.tolist()) for group, each in counts.items()}
    honest = OpeningsReleased(names, told, stage.tally.deviation, stage.used(names, counts))
    assert honest.used["red"]
    stage.check(honest)
    some = groups[0]
    for event, words in (
        (replace(honest, noise=honest.noise / 2), "noise"),
        (replace(honest, used=honest.used | {"red": {}}), "do not follow"),
        (replace(honest, used={"red": honest.used["red"]}), "do not follow"),
        (replace(honest, used=honest.used | {"blue": {"forged": 1.0}}), "do not follow"),
        (replace(honest, counts=honest.counts | {some: (1.0, 2.0)}), "counts"),
        (replace(honest, counts=honest.counts | {"more": honest.counts[some]}), "counts"),
        (replace(honest, counts=honest.counts | {some: (0.0,) * 4}), "do not follow"),
    ):
        with pytest.raises(UsageError, match=words):
            stage.check(event)


# Where they stand.


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0.01, 1), min_size=1, max_size=8), st.integers(1, 60))
def test_openings_are_allotted_in_proportion_to_their_weights(weights, count):
    drawn, total = Counter(allotted(weights, count, SeededRandomness(1))), sum(weights.values())
    assert drawn.total() == count
    for name, weight in weights.items():
        assert abs(drawn[name] - count * weight / total) <= 1 + 1e-6


WEIGHTS = {"My": 0.5, "The": 0.25, "We": 0.25}


class Prompted(Reading):
    """Remembers what stands in each row of a public prompt for a text."""

    def __init__(self) -> None:
        super().__init__()
        self.public: list[str] = []

    def open(self, prefix, rows, length, room):
        shown = bytes(prefix).decode("ascii", "replace")
        if "Write one note" in shown and not any(b"secret" in bytes(row) for row in rows):
            self.public += [f"{shown}{bytes(row).decode('ascii', 'replace')}" for row in rows]
        return super().open(prefix, rows, length, room)


@pytest.mark.parametrize("recipe", ["vote", "both"])
def test_drafts_of_every_label_begin_with_openings_that_were_released(recipe, monkeypatch):
    """Of the first label too, whose drafts are tried before anybody has paid."""
    monkeypatch.setattr(AskForOpenings, "used", lambda *arguments: dict.fromkeys(LABELS, WEIGHTS))
    model, records = Prompted(), data(rows(60))
    model.log = Log()
    plan = planned(records, spec(recipe, "roles", (CALIBRATE, SCORE)))
    for event in begun(records, plan, model=model):
        if isinstance(event, OpeningsReleased):
            model.public.clear()
        if isinstance(event, DemoStarted):
            assert event.opening in WEIGHTS
    for label in LABELS:
        asked = [each for each in model.public if f"about {label}" in each]
        begun_with = [each.rpartition("Note:")[2].strip() for each in asked]
        ends = {opening for opening in WEIGHTS for text in begun_with if text.startswith(opening)}
        assert all(text.startswith(tuple(WEIGHTS)) for text in begun_with if text), label  # blank: how the model writes
        assert set(ends) == {*WEIGHTS}, label
