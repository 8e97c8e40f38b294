"""What is said of a measurement's time before it begins is of the rows that it will read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dpicl_ui.test.measure import FileMeasurement
from mechanisms.runs.forecast import ModelSpeed
from tests.exports.sets import labelled
from tests.ui.trees import text_of


@pytest.mark.parametrize(("limit", "rows"), [(100, 100), (1000, 400)])
def test_the_rows_that_are_read_are_named_where_a_file_has_more(limit: int, rows: int):
    state = SimpleNamespace(classifying=labelled("a text", "another"), table=SimpleNamespace(frame=range(400)))
    told = object.__new__(FileMeasurement)
    loader = SimpleNamespace(speed=ModelSpeed(0.003, 0.003, 0.05))
    app: Any = SimpleNamespace(session=lambda _: SimpleNamespace(of=lambda _: state), loader=loader)
    told._app = app
    assert f"Reading {rows} of them takes" in text_of(told._told(limit, None))  # type: ignore[arg-type]
