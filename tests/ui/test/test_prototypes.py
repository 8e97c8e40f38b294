"""Class prototypes in step 4: their cost, when it is charged, and where their figure stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpicl_ui.test.cards import PROTOTYPES
from mechanisms.errors import UsageError
from mechanisms.records import Dataset, Record
from tests.ui.tabs import confirm
from tests.ui.test.tab import EMBEDDER, LABELS, LETTERS, SESSIONS, SET, Tab, rows
from tests.ui.trees import text_of

NAME = PROTOTYPES[0]


@pytest.fixture
def tab(tmp_path: Path) -> Tab:
    EMBEDDER.count = 0
    return Tab(tmp_path)


def test_the_price_and_what_then_is_left_are_shown_before_anything_is_charged(tab: Tab):
    words, free = tab.price()
    assert free
    assert "costs epsilon 0.5 at delta 1e-05 for one row" in words
    assert "then stands at 0.5 of 10" in words
    assert "user" not in words
    assert (tab.spent, EMBEDDER.count) == ((0, 0), 0)


def test_they_are_paid_for_once_and_kept(tab: Tab):
    tab.release()
    runs, epsilon = tab.spent
    assert (runs, epsilon) == (1, pytest.approx(0.5, rel=0.01))
    words, free = tab.price()
    assert "Released with epsilon 0.5" in words
    assert not free
    with pytest.raises(UsageError, match="nothing was charged"):
        tab.release(2.0)
    confirm(tab.session, Dataset("letters", LABELS, LETTERS.records))  # the same file, opened once more
    assert not tab.price()[1]
    tab.measure()
    assert tab.spent == (1, epsilon)


@pytest.mark.parametrize("before", [True, False])
def test_their_figure_stands_beside_the_others_on_the_same_rows(tab: Tab, before: bool):
    first, second = (tab.release, tab.measure) if before else (tab.measure, tab.release)
    first()
    shown = text_of(second()[tab.measurement.scores])
    found = tab.scored.prototypes
    assert found is not None
    assert found.total == tab.scored.cards[0].raw.total == 20
    assert found.value > 0.7
    assert "Your demonstrations" in shown
    assert NAME in shown


def test_what_would_be_wasted_is_not_charged(tab: Tab):
    table, tab.state.table = tab.state.table, None
    with pytest.raises(UsageError, match="test file first"):
        tab.release()
    tab.state.table = table
    with pytest.raises(UsageError, match="Epsilon"):
        tab.release("much")
    tab.state.load(replace(SET, labels=("News", "Weather")))
    with pytest.raises(UsageError, match="labels"):
        tab.release()
    SESSIONS.drop(tab.request)
    with pytest.raises(UsageError, match="step 1"):
        tab.release()
    assert "step 1" in tab.price()[0]
    assert (tab.spent[0], EMBEDDER.count) == (0, 0)


def test_a_stop_before_it_begins_charges_nothing(tab: Tab):
    tab.offer._order(0.5, tab.request)
    tab.offer.job.halt(tab.request)
    with pytest.raises(UsageError, match="Nothing was charged"):
        list(tab.offer._release(tab.request))
    assert (tab.spent[0], EMBEDDER.count) == (0, 0)
    assert list(tab.offer._release(tab.request)) == []  # the order is gone


def begun(tab: Tab) -> Any:
    """A release that is charged, and has read no row."""
    tab.offer._order(0.5, tab.request)
    running = tab.offer._release(tab.request)
    next(running)
    next(running)
    return running


@pytest.mark.parametrize("how", ["a stop", "a closed tab"])
def test_what_ends_it_while_rows_are_read_releases_nothing_and_stays_spent(tab: Tab, how: str):
    running, state = begun(tab), tab.prototypes
    assert state.busy
    tab.offer.job.halt(tab.request) if how == "a stop" else SESSIONS.drop(tab.request)
    with pytest.raises(UsageError, match="stays spent"):
        list(running)
    assert (state.released, state.busy) == (None, False)
    assert EMBEDDER.count < len(LETTERS.records)
    assert tab.spent == (1, pytest.approx(0.5, rel=0.01))


def test_data_that_changed_after_the_button_was_pressed_is_not_charged(tab: Tab):
    tab.offer._order(0.5, tab.request)
    confirm(tab.session, Dataset("others", LABELS, rows(40)))
    with pytest.raises(UsageError, match="has changed. Nothing was charged"):
        list(tab.offer._release(tab.request))
    assert tab.ledger.snapshot("others", "record").runs == tab.spent[0] == 0


def test_for_users_one_row_each_counts_and_the_price_is_theirs(tmp_path: Path):
    EMBEDDER.count = 0
    users = tuple(record for i in range(30) for record in rows(6, f"user {i}"))
    tab = Tab(tmp_path, Dataset("letters", LABELS, users, "who"))
    words, free = tab.price()
    assert free
    assert "one user (column 'who')" in words
    assert "One row of each user counts" in words
    tab.release()
    assert tab.spent == (1, pytest.approx(0.5, rel=0.01))
    assert EMBEDDER.count == 30


def test_rows_that_turn_out_to_be_private_get_no_further_figure(tab: Tab):
    confirm(tab.session, Dataset("strangers", LABELS, rows(30)))
    tab.measure()
    mine = [Record(row.text, row.label) for row in tab.scored.test.records]
    confirm(tab.session, Dataset("letters", LABELS, (*LETTERS.records, *mine)))
    tab.offer._order(0.5, tab.request)
    list(tab.offer._release(tab.request))
    with pytest.raises(UsageError, match="measure again"):
        list(tab.measurement.add_prototypes(tab.request))
    assert tab.scored.prototypes is None
