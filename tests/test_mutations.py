"""Mutated files of every kind that a user brings."""

from __future__ import annotations

import pytest

from tests.mutating import GOOD, REFUSED, TARGETS, outcomes

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", TARGETS)
def test_a_mutated_file_is_read_or_refused_in_one_line(kind):
    found = outcomes(kind, 60, seed=1, seconds=20)
    assert set(found) <= set(GOOD), found
    if kind != "json lines":  # of which each line is read by itself, so that hardly a mutation spoils the file
        assert found[REFUSED] > 5  # the mutations reach what readers look at
