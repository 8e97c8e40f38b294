"""CONTRIBUTING.md: the journey of a row is there, and the mechanism that it works out keeps what it promises."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest
from hypothesis import given

from mechanisms.accounting import PrivacyTarget, claim
from mechanisms.noise import SeededRandomness
from mechanisms.sampling import SamplingPlan
from tests.conftest import ROOT
from tests.steps.inputs import CANDIDATES, distance, neighbours

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_journey_of_a_row_goes_through_functions_that_are_there():
    journey = PAGE[PAGE.index("## The journey") : PAGE.index("## Glossary")]
    steps = re.findall(r"`(\w+)`\s+\(`([\w/]+/\w+\.py)`\)", journey)
    assert len(steps) >= 10
    sources = {(name, file): (ROOT / file).read_text(encoding="utf-8") for name, file in steps}
    assert [step for step, source in sources.items() if not re.search(rf"(def|class) {step[0]}\b", source)] == []


@pytest.fixture(scope="module")
def worked(tmp_path_factory):
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path_factory.mktemp("worked") / "noisy_votes.py"
    path.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where dataclasses look up their annotations
    spec.loader.exec_module(module)
    yield module.MECHANISM
    del sys.modules[path.stem]


@pytest.mark.parametrize("unit_rows", [True, False])
def test_no_unit_moves_it_further_than_claimed(worked, unit_rows):
    mechanism = worked()

    @given(neighbours(unit_rows))
    def holds(pair):
        assert distance(mechanism, *pair) <= mechanism.sensitivity(unit_rows).on_lattice
        assert all(0 <= mechanism.step(each, SeededRandomness(1)).index < CANDIDATES for each in pair)

    holds()


@pytest.mark.slow
def test_it_calibrates_to_its_target(worked):
    plan = SamplingPlan(rows_per_token=20, tokens=10)
    calibrated = worked().calibrate(lambda event: plan.compose(event, {"a": 2000}, 1e-5), PrivacyTarget(1.0, 1e-5))
    assert 0.97 <= claim(plan.compose(calibrated.event, {"a": 2000}, 1e-5), 1e-5).epsilon <= 1.0
