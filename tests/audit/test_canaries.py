"""Canaries: exposed to the last bit where they stand in the prompt, and not at all where nothing follows from them."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest

from mechanisms.accounting import PrivacyTarget
from mechanisms.audit.extraction import FORMAT, canary_attack, distinct_secrets, exposure, planted, writes
from mechanisms.audit.membership import NOTHING, RELEASED, ROWS
from mechanisms.errors import UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record
from mechanisms.runs.request import NO_FILE, SynthesisRequest
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class
from tests.audit.test_membership import finds_nothing
from tests.toy_model import ToyModel

LABELS = ("red", "blue")
TEMPLATE = PromptTemplate("Sort.", "Note", "Topic")
DATA = Dataset("d", LABELS, tuple(Record(f"a text {i}", LABELS[i % 2]) for i in range(12)))
PUBLIC = (Demonstration("a public text", "red"), Demonstration("another", "blue"))


class Session:
    def __init__(self, prefix) -> None:
        self.prefix = bytes(prefix).decode()

    def score(self, continuation):
        text = bytes(continuation).decode()
        taste = hashlib.sha256(f"{text}{self.prefix}".encode()).digest()[0] / 256
        return np.array([taste + 2.0 * (f"{FORMAT}{text}" in self.prefix)])


class Recalling(ToyModel):
    """Finds a secret likelier where it stands in the prompt."""

    def open(self, prefix, rows, length, room):
        if bytes(rows[0]).decode().endswith(FORMAT):
            return Session(prefix)
        return super().open(prefix, rows, length, room)


def attacked(write, data=DATA, canaries=10, candidates=120):
    found = canary_attack(Recalling(), TEMPLATE, data, write, canaries, candidates, SeededRandomness(1))
    return {each.shown: each for each in found}


def leak(dataset):
    return [Demonstration(row.text, row.label) for row in dataset.records if FORMAT in row.text]


def test_a_leak_is_found_to_the_last_bit():
    found = attacked(leak)
    for shown in (ROWS, RELEASED):
        assert found[shown].verbatim == 10
        assert set(found[shown].bits) == {found[shown].most} == {math.log2(121)}
        assert found[shown].ranks.area == 1.0
    assert found[NOTHING].verbatim == 0
    assert finds_nothing(found[NOTHING].ranks)


def test_demonstrations_that_no_canary_was_used_for_expose_none():
    found = attacked(lambda dataset: PUBLIC)[RELEASED]
    assert found.verbatim == 0
    assert finds_nothing(found.ranks)
    assert found.most > max(found.bits)
    assert np.mean(found.bits) < 3  # 1.44 in the long run


def test_ties_are_no_exposure():
    same = exposure(RELEASED, (), ["1", "2"], np.zeros(2), np.zeros(63))
    assert same.bits == (0.0, 0.0)


def test_canaries_are_units_of_their_own_and_the_file_stays_as_it_is():
    seen = []
    attacked(lambda dataset: seen.append(dataset) or PUBLIC)
    [joined] = seen
    assert len(joined.records) == len(DATA.records) + 10
    assert {label: len(units) for label, units in joined.units.items()} == {"red": 11, "blue": 11}
    assert len(DATA.records) == 12
    secrets = distinct_secrets(50, SeededRandomness(2))
    assert len(set(secrets)) == 50
    users = Dataset("d", LABELS, tuple(Record("t", "red", "u") for _ in range(3)), "who")
    assert len({row.unit for row in planted(users, secrets)}) == 50


@pytest.mark.parametrize("name", [pytest.param("gaussian", marks=pytest.mark.slow), "non-private"])
def test_demonstrations_are_written_from_the_file_with_the_canaries(name):
    request = SynthesisRequest(
        labels=LABELS,
        template=TEMPLATE,
        plan=SamplingPlan(subsets=4, tokens=3),
        mechanism=mechanism_class(name)(),
        target=PrivacyTarget(2.0, 1e-5),
        sizes=dict.fromkeys(LABELS, 1),
        content=NO_FILE,
        candidates=10,
    )
    found = attacked(writes(request, ToyModel(), SeededRandomness(3)))[RELEASED]
    assert found.verbatim == 0


def test_too_few_canaries_are_refused():
    with pytest.raises(UsageError):
        attacked(leak, canaries=1)
