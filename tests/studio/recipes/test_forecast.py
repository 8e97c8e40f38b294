"""What a run's forecast counts is what the run does: readings of private rows, and drafts that are written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mechanisms.accounting import PrivacyTarget
from mechanisms.studio.recipes.advice import proposed
from mechanisms.studio.recipes.forecast import seconds_by_part, sets_read, units
from mechanisms.studio.recipes.recipe import Division, Kind, Stage
from mechanisms.studio.recipes.request import RecipeRequest
from mechanisms.studio.recipes.roles import divide
from mechanisms.studio.synthesis.forecast import ModelSpeed, measure_speed
from tests.studio.recipes.running import TEMPLATE, Embedding, Log, Reading, begun, data, planned, recipe, rows
from tests.toy_model import ToyModel

JUDGING = (Stage.CALIBRATE, Stage.CHOOSE, Stage.SCORE)


@pytest.mark.parametrize("division", Division)
@pytest.mark.parametrize("without", [(), (Stage.SCORE,), (Stage.CHOOSE,), (Stage.CHOOSE, Stage.CALIBRATE)])
def test_rows_are_read_about_as_often_as_is_foreseen(division, without):
    records = data(rows(60))
    request, log = planned(records, recipe(Kind.VOTE, division, without)), Log()
    for _ in begun(records, request, model=Reading(log), embedder=Embedding(Log())):
        pass
    read = sum(len(found) for kind, found, *_ in log if kind == "read")
    stages = [stage for stage in JUDGING if stage in request.recipe.shares]
    parts = divide(records, request.recipe)  # whose role is which is left to chance, and known here
    foreseen = sum(len(parts[stage].records) * sets_read(request, stage) for stage in stages)
    assert 0.6 * foreseen <= read <= foreseen
    expected, deviation = sum(units(request, stage) for stage in stages), 60**0.5 / 2
    assert sum(len(parts[stage].records) for stage in stages) == pytest.approx(expected, abs=6 * deviation)


def test_a_model_is_measured_behind_its_first_passes():
    shapes = []

    class Told(ToyModel):
        def open(self, prefix, rows, length, room):
            shapes.append((len(rows), length, room))
            return super().open(prefix, rows, length, room)

    measure_speed(Told())
    many, one = shapes[:2]
    assert shapes == [many, one, many, one]
    assert many[0] > one[0] == 1


def test_labels_of_more_tokens_and_more_demonstrations_take_longer_to_judge_by():
    speed = ModelSpeed(1e-3, 1e-4, 1e-2)

    def judged(names) -> dict[Stage, float]:
        sizes = dict.fromkeys(names, 4000 // len(names))
        made = proposed(Kind.VOTE, sizes, 1.0)
        made = RecipeRequest(tuple(names), TEMPLATE, replace(made, sets=1), PrivacyTarget(1.0, 1e-5), sizes, "x")
        parts = seconds_by_part(made, speed)
        # For each row that a stage reads: of many labels more rows vote.
        return {stage: parts[stage] / made.recipe.shares[stage] for stage in (Stage.VOTE, *JUDGING)}

    short, long, many = (
        judged([f"{each}{i:02}" for i in range(count)]) for each, count in (("a", 4), ("a" * 40, 4), ("a", 80))
    )
    for stage in JUDGING:
        assert short[stage] < long[stage]
        assert 2 * short[stage] < many[stage]
    assert short[Stage.VOTE] == long[Stage.VOTE] == pytest.approx(many[Stage.VOTE]), "no demonstrations for a voter"
