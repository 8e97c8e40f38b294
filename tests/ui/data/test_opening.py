"""What is proposed for a file."""

from __future__ import annotations

import pytest

from dpicl_ui.data.source import LONGEST_NAME, proposed_name


@pytest.mark.parametrize(
    "file",
    [
        "train.csv",
        "Test (1).xlsx",
        "data_2024-01-31.csv",
        "Sheet1.xlsx",
        "EXPORT-final-v2.parquet",
        "x/y/7.csv",
        "a.csv",
    ],
)
def test_a_file_name_that_says_nothing_is_no_name_of_a_data_set(file):
    assert proposed_name(file) == ""


@pytest.mark.parametrize(("file", "name"), [("/tmp/clinic train.csv", "clinic train"), ("日本語.csv", "日本語")])
def test_another_one_is(file, name):
    assert proposed_name(file) == name
    assert len(proposed_name("long name " * 30)) == LONGEST_NAME
