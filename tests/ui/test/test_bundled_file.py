"""Bundled test rows are offered for the sets that they can test, and for no other."""

from __future__ import annotations

import pytest

from dpicl_ui.test.measure import bundled_rows_for
from mechanisms.data.sources import ANSWERED_EXAMPLES, EXAMPLES, read_table


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.path.stem)
def test_the_example_finds_its_own_rows_which_are_none_that_wrote(example):
    rows, mapping = read_table(example.path).frame, example.mapping
    path = bundled_rows_for(sorted(set(rows[mapping.label])))
    assert path == example.test
    others = read_table(path).frame
    assert set(others[mapping.label]) == set(rows[mapping.label])
    assert not set(others[mapping.text]) & set(rows[mapping.text])


def test_other_labels_are_offered_nothing():
    labels = set(read_table(EXAMPLES[0].path).frame[EXAMPLES[0].mapping.label])
    assert bundled_rows_for([*labels, "another"]) is None
    assert bundled_rows_for(sorted(labels)[1:]) is None
    assert bundled_rows_for([ANSWERED_EXAMPLES[0].kind]) is None
