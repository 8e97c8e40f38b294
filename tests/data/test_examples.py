"""The bundled example files: large, even, without a row twice, and with test files of other messages."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from mechanisms.asking import in_words
from mechanisms.data.sources import DESK, EXAMPLES, Example, read_table
from mechanisms.files import bundled

TESTS_A_LABEL = 50
_LONG = 4
"""Letters of a word that tells what a text is about."""


def rows_of(example: Example, test: bool = False) -> list[tuple[str, str]]:
    frame = read_table(example.test if test else example.path).frame
    return list(zip(frame[example.mapping.text], frame[example.mapping.label], strict=True))


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower().replace("'", ""))


@pytest.fixture(params=EXAMPLES, ids=lambda each: each.path.stem)
def example(request: pytest.FixtureRequest) -> Example:
    return request.param


def test_an_example_has_enough_rows_of_each_label(example):
    counts = Counter(label for _, label in rows_of(example))
    assert sum(counts.values()) >= 2_400
    assert min(counts.values()) >= 550
    assert max(counts.values()) < 1.2 * min(counts.values())


def test_a_test_file_has_as_many_rows_of_each_label(example):
    labels = {label for _, label in rows_of(example)}
    assert Counter(label for _, label in rows_of(example, test=True)) == dict.fromkeys(labels, TESTS_A_LABEL)


@pytest.mark.parametrize("test", [False, True], ids=["rows", "test rows"])
def test_no_text_stands_twice(example, test):
    texts = Counter(" ".join(words(text)) for text, _ in rows_of(example, test))
    assert not [text for text, times in texts.items() if times > 1]


def test_no_row_of_a_test_file_is_told_in_the_example(example):
    """Case, signs and spaces aside, and short words, too: no row has all the others of a test row."""
    rows = [set(words(text)) for text, _ in rows_of(example)]
    long = {text: {word for word in words(text) if len(word) >= _LONG} for text, _ in rows_of(example, test=True)}
    assert not [text for text, said in long.items() if any(said <= row for row in rows)]


def test_the_readme_of_the_examples_names_every_file_and_its_licence():
    readme = bundled("examples/README.md").read_text("utf-8")
    for each in EXAMPLES:
        assert f"`{each.path.name}`: {len(rows_of(each)):,} " in readme
        assert f"`{each.test.name}`: {len(rows_of(each, test=True))} other messages" in readme
    assert "Licence: CC0-1.0" in readme


# The first example, whose labels say nothing.


@pytest.mark.parametrize("test", [False, True], ids=["rows", "test rows"])
def test_no_message_to_the_desk_says_what_its_label_is_called(test):
    rows = rows_of(DESK, test)
    assert {label for _, label in rows} == {f"Queue {number}" for number in range(1, 5)}
    assert not [text for text, label in rows if in_words(label).split()[0] in text.lower()]
    assert all(5 <= len(text.split()) <= 45 for text, _ in rows)


def test_the_program_is_told_nothing_of_the_desks_labels():
    assert EXAMPLES[0] is DESK
    assert not DESK.wording.words


def test_some_customers_write_to_the_desk_more_than_once_and_to_several_queues():
    frame = read_table(DESK.path).frame
    queues = frame.groupby(DESK.mapping.unit)[DESK.mapping.label]
    assert 1_400 <= len(queues) <= 1_600
    assert (queues.size() > 1).sum() >= 400
    assert (queues.nunique() > 1).sum() >= 300
