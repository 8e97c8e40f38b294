"""Every lie is found by the test that names what it breaks, and the worst of them within `make quick`.

`make test` runs all of these tests, and plants the worst lies; `make nightly` plants all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.lies.planting import ROOT, TESTS_FAILED, Processes, planted

pytestmark = pytest.mark.slow

TABLE = (ROOT / "tests/lies/table.txt").read_text(encoding="utf-8")
LIES = planted(TABLE)
FOUND = ("assert", "AssertionError", "LeakError", "DID NOT RAISE", "UsageError")
"""In the first line of what a test says that has found something."""


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with Processes() as made:
        yield made


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.says)
def test_a_lie_fits_the_program(lie):
    for change in lie.changes:
        assert change.path.read_text(encoding="utf-8").count(change.old) == 1, (
            "the program has moved on: so must the lie"
        )


@pytest.mark.parametrize(
    "lie", [pytest.param(lie, id=lie.says, marks=() if lie.worst else pytest.mark.nightly) for lie in LIES]
)
def test_a_lie_is_found(lie, processes, record_property):
    ended, said = processes.pytest(lie, lie.killer)
    assert ended == TESTS_FAILED, said
    [first, *_] = (line for line in said.splitlines() if line.startswith("E  "))
    assert any(word in first for word in FOUND), f"a crash finds nothing: {first}"
    record_property("lie", (lie.says, lie.killer, "quick" if lie.worst else "test"))


def test_where_nothing_is_planted_such_tests_pass(processes):
    killers = [*dict.fromkeys(lie.killer for lie in LIES)]  # all of them are tests of the suite themselves
    ended, said = processes.pytest(None, *killers[::10])
    assert ended == 0, said


def test_there_are_enough_of_them():
    assert len(LIES) == TABLE.count("\n## ") >= 40
    assert sum(len(lie.changes) for lie in LIES) == TABLE.count("\nin ")
    assert sum(lie.worst for lie in LIES) >= 10
    left_out = tuple(re.findall(r"--ignore (\S+)", (ROOT / "Makefile").read_text(encoding="utf-8")))
    assert not any(lie.killer.startswith(left_out) for lie in LIES if lie.worst), "not in `make quick`"
    assert len({lie.says for lie in LIES}) == len(LIES)
