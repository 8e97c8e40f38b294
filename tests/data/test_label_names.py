"""Labels under other names: one to one, row by row, and public."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.data.columns import ColumnMapping, inspect, to_dataset
from mechanisms.data.label_names import (
    checked_names,
    named,
    names_in_lines,
    names_of,
    proposed_names,
    read_names,
)
from mechanisms.errors import UsageError
from tests.data.files import table

LABELS = ("card_arrival", "pin=lost", "other")
NAMES = (("card_arrival", "Card arrival"), ("pin=lost", "PIN"))


def test_a_file_under_names_is_the_file_that_had_them_all_along():
    rows = [(f"t{i}", (*LABELS, "unlisted")[i % 4]) for i in range(20)]
    mapping = ColumnMapping("text", "label", label_names=NAMES)
    renamed = [(text, dict(NAMES).get(label, label)) for text, label in rows]
    labels = named(LABELS, NAMES)
    assert labels == ("Card arrival", "PIN", "other")
    there = to_dataset(table(rows), mapping, "d", labels)
    expected = to_dataset(table(renamed), ColumnMapping("text", "label"), "d", labels)
    assert list(there.content()) == list(expected.content())
    assert there.counted_sizes() == expected.counted_sizes() == dict.fromkeys(labels, 5)
    assert set(inspect(table(rows), mapping).counts) == {*labels, "unlisted"}


@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), max_size=5))
def test_names_are_one_to_one_or_refused(pairs):
    try:
        names = checked_names(pairs)
    except UsageError:
        return
    assert len({label for label, _ in names}) == len(names) == len({name for _, name in names})
    assert all(name == name.strip() and name for _, name in names)


def test_a_name_that_is_another_label_is_refused_and_two_may_change_places():
    with pytest.raises(UsageError, match="name is also another label"):
        named(("a", "b"), (("a", "b"),))
    assert named(("a", "b"), (("a", "b"), ("b", "a"))) == ("b", "a")


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["card_payment_fee", "refund"], ["Card payment fee", "Refund"]),
        (["cardPaymentFee", "changePIN"], ["Card payment fee", "Change PIN"]),
        (["OfficeHolder", "Company"], ["Office Holder", "Company"]),
        (["MeanOfTransportation", "Artist"], ["Mean Of Transportation", "Artist"]),
        (["HAM", "SPAM_MAIL", "1"], ["HAM", "Spam mail", "1"]),
        (["SPORTS", "USA", "World"], ["Sports", "USA", "World"]),
        (["World", "Sports", "sci-fi"], None),
        (["Card payment fee", "Mobile YouTube app", "PIN"], None),
        (["iPhone", "eBay"], None),
        (["A", "_", "文", "0"], None),
        ([], None),
    ],
)
def test_labels_that_are_written_for_programs_are_proposed_names(labels, names):
    of = dict(proposed_names(labels))
    assert [of.get(each, each) for each in labels] == (names or labels)
    assert bool(of) == (names is not None)


@given(st.lists(st.text("aAbB_ =\n", min_size=1, max_size=5).map(str.strip).filter(bool), unique=True, max_size=8))
def test_proposed_names_tell_all_labels_apart_and_can_be_used(labels):
    names = proposed_names(labels)
    assert len(set(named(labels, names))) == len(labels)
    assert {label for label, _ in checked_names(names)} == {label for label, name in names if label != name}
    assert all(names_of([name], names) == ((label, name),) for label, name in names)


def test_names_that_keep_another_label_apart_are_needed_too():
    swapped = (("a", "b"), ("b", "a"), ("c", "d"))
    assert names_of(["b"], swapped) == (("a", "b"), ("b", "a"))
    assert names_of(["d"], swapped) == (("c", "d"),)
    assert names_of(["e"], swapped) == ()


def test_every_way_of_saying_names_says_the_same():
    assert read_names('{"card_arrival": "Card arrival", "pin=lost": "PIN"}') == NAMES
    assert read_names("card_arrival=Card arrival, pin=lost=PIN") == NAMES
    assert names_in_lines("card_arrival = Card arrival\n\npin=lost = PIN\nother = other\n") == NAMES


@pytest.mark.parametrize("said", ["a", "a=", "a=X,b=X", "a=X,a=Y", f"a={'x' * 101}", "{"])
def test_what_names_nothing_gets_one_line(said):
    with pytest.raises(UsageError) as refused:
        read_names(said)
    assert "\n" not in str(refused.value)
