"""Names of a prompt's fields: suggested by columns that say something, never taken from them."""

from __future__ import annotations

import pytest

from mechanisms.data.columns import field_name, suggested_names
from mechanisms.data.sources import EXAMPLES
from mechanisms.errors import UsageError

NEUTRAL = suggested_names("", "")
HOSTILE = "<img src=x onerror='window.hacked=1'> ${message} {{department}}"


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("message", "Message"),
        ("Customer_Message", "Message"),
        ("reviews", "Review"),
        ("reviewBody", "Review"),
        ("ticket-question", "Question"),
        ("NEWS", "Article"),
        ("SMSText", "Message"),
        ("query", "Question"),
        ("tweet", "Tweet"),
        ("abstract", "Abstract"),
    ],
)
def test_a_column_that_says_what_its_texts_are_is_heard(column, name):
    assert suggested_names(column, "label")[0][0] == name


@pytest.mark.parametrize(
    ("column", "name"),
    [("department", "Department"), ("topic_id", "Topic"), ("question type", "Type"), ("kind", "Kind")],
)
def test_a_column_that_says_what_its_labels_are_is_heard(column, name):
    assert suggested_names("text", column)[1][0] == name


@pytest.mark.parametrize("column", ["text", "label", "col1", "", "0", "Unnamed: 3", "previewed", "\x00", "文", "class"])
def test_a_column_that_says_nothing_gets_the_neutral_names(column):
    texts, labels = suggested_names(column, column)
    assert (texts[0], labels[0]) == ("Text", "Label")


@pytest.mark.parametrize("column", ["message", HOSTILE, "Patient Smith's note", "review\n\nLabel: bad", "s" * 10**6])
def test_no_suggestion_is_a_columns_own_text(column):
    texts, labels = suggested_names(column, column)
    assert (set(texts), set(labels)) == tuple(map(set, NEUTRAL))
    assert (len(texts), len(labels)) == tuple(map(len, NEUTRAL))
    assert {"Text", "Label"} <= {*texts, *labels}


def test_the_examples_have_names_that_could_be_suggested():
    for example in EXAMPLES:
        texts, labels = suggested_names(example.mapping.text, example.mapping.label)
        assert example.fields[0] in texts
        assert example.fields[1] == labels[0]


def test_a_typed_name_becomes_one_line():
    assert field_name("  Letter\n to  us ") == "Letter to us"


@pytest.mark.parametrize("given", ["", " \n", None, ["a"], 3, "x" * 41])
def test_a_name_that_is_none_is_refused(given):
    with pytest.raises(UsageError, match="1 to 40 characters"):
        field_name(given)
