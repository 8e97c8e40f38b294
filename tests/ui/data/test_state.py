"""Step 1 holds one value at a time: what is confirmed belongs to the columns that are there."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from dpicl_ui.data.state import Columns, Confirmed, DataState
from dpicl_ui.frame.sessions import Session
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.table import Table
from mechanisms.errors import DataError, UsageError
from tests.ui.privacy.test_form import DATASET

MAPPING = ColumnMapping("text", "label")


def table() -> Table:
    return Table(pd.DataFrame({"text": ["a", "b"] * 20, "label": ["x", "y"] * 20}))


@pytest.fixture
def state() -> DataState:
    made = Session().of(DataState)
    made.open(table(), ("Text", "Label"))
    return made


def confirmed(state: DataState) -> Columns:
    columns = state.read(MAPPING)
    state.confirm(Confirmed(columns, DATASET))
    assert state.confirmed is not None
    assert state.columns is columns
    return columns


@pytest.mark.parametrize("change", ["open", "read", "rechoose", "withdraw"])
def test_every_change_takes_back_what_was_confirmed_and_outdates_its_columns(state: DataState, change: str):
    columns = confirmed(state)
    if change == "open":
        state.open(table(), ("Text", "Label"))
    elif change == "read":
        state.read(replace(MAPPING, drop_duplicates=not MAPPING.drop_duplicates))
    else:
        getattr(state, change)()
    assert state.confirmed is None
    assert state.columns is not columns
    with pytest.raises(UsageError, match="confirm again"):
        state.confirm(Confirmed(columns, DATASET))
    assert state.confirmed is None


def test_what_is_confirmed_again_stays_the_same_and_what_differs_does_not(state: DataState):
    columns = confirmed(state)
    first = state.confirmed
    state.confirm(Confirmed(columns, replace(DATASET)))
    assert state.confirmed is first
    other = Confirmed(columns, replace(DATASET, name="renamed"))
    state.confirm(other)
    assert state.confirmed is other


def test_a_withdrawal_of_nothing_disturbs_nothing(state: DataState):
    columns = state.read(MAPPING)
    state.withdraw()
    assert state.columns is columns


def test_the_same_columns_read_again_are_the_ones_that_were_confirmed(state: DataState):
    columns = confirmed(state)
    assert state.read(MAPPING) is columns
    assert state.confirmed is not None


def test_columns_without_sense_leave_the_file_alone(state: DataState):
    confirmed(state)
    file = state.file
    with pytest.raises(DataError):
        state.read(ColumnMapping("text", "text"))
    assert (state.file, state.columns, state.confirmed) == (file, None, None)


@pytest.mark.parametrize("change", [lambda state: state.read(MAPPING), lambda state: state.rechoose()])
def test_without_a_file_there_is_nothing_to_choose(change):
    with pytest.raises(UsageError, match="upload it again"):
        change(Session().of(DataState))
