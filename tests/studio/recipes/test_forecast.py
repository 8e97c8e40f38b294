"""What a run's forecast counts is what the run does: readings of private rows, and drafts that are written."""

from __future__ import annotations

import pytest

from mechanisms.studio.recipes.forecast import sets_read, units
from mechanisms.studio.recipes.recipe import Division, Kind, Stage
from mechanisms.studio.recipes.roles import divide
from mechanisms.studio.synthesis.forecast import measure_speed
from tests.studio.recipes.running import Embedding, Log, Reading, begun, data, planned, recipe, rows
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
