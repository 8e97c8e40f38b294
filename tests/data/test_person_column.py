"""The column of people is proposed by its name, where people have several rows."""

from __future__ import annotations

import pandas as pd
import pytest

from mechanisms.data.columns import guess_person
from mechanisms.data.sources import EXAMPLES, read_table
from mechanisms.data.table import Table

REPEATED = [f"P-{i % 40}" for i in range(100)]


def _table(columns: dict[str, list[str]]) -> Table:
    return Table(pd.DataFrame(columns))


@pytest.mark.parametrize(
    "name", ["patient", "user_id", "userId", "CustomerID", "customer no", "reviewerName", "userid", "Sender e-mail"]
)
def test_a_column_named_for_people_is_proposed_where_they_repeat(name: str):
    assert guess_person(_table({"text": ["t"] * 100, name: REPEATED}), ("text",)) == name


@pytest.mark.parametrize("name", ["patient_age", "customer segment", "user type", "paid", "id", "employer", "number"])
def test_what_else_is_said_of_people_is_no_person(name: str):
    assert guess_person(_table({"text": ["t"] * 100, name: REPEATED}), ("text",)) is None


@pytest.mark.parametrize(
    "cells",
    [
        [f"P-{i}" for i in range(100)],  # nobody wrote twice
        ["agent", "customer"] * 50,  # roles
        ["", *REPEATED[1:70], *[""] * 30],  # rows without a person would be left out
    ],
)
def test_a_column_that_identifies_no_one_twice_is_not(cells: list[str]):
    assert guess_person(_table({"text": ["t"] * 100, "patient": cells}), ("text",)) is None


def test_a_column_that_is_the_text_or_the_label_is_not():
    table = _table({"author": REPEATED, "customer": REPEATED})
    assert guess_person(table, ("author",)) == "customer"
    assert guess_person(table, ("author", "customer")) is None


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.path.stem)
def test_the_examples_protect_whom_a_file_of_ones_own_would(example):
    table, mapping = read_table(example.path), example.mapping
    assert guess_person(table, (mapping.text, mapping.label)) == mapping.unit
