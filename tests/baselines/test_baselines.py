"""What was released, charged, certified and printed is what it was, for every case."""

from __future__ import annotations

import json

import pytest

from tests.baselines.cases import CASES, QUICK
from tests.baselines.record import EXPECTED, compared, machine


def test_every_baseline_is_of_a_case_and_every_case_has_one():
    assert len({case.name for case in CASES}) == len(CASES) >= 10
    assert {path.stem for path in EXPECTED.glob("*.json")} == {case.name for case in CASES}


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=() if case.name in QUICK else pytest.mark.slow) for case in CASES]
)
def test_it_is_as_it_was(case):
    here, there = machine(), json.loads((EXPECTED / f"{case.name}.json").read_text())["machine"]
    if here != there and case.name not in QUICK:
        pytest.skip(f"written on another kind of processor, where a near tie may end otherwise: {here}")
    assert list(compared(case))[:1] == []
