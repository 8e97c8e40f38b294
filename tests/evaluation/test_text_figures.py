"""Figures of texts: closed forms, and what a repetition changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.errors import UsageError
from mechanisms.evaluation.text_figures import text_figures

texts = st.lists(st.tuples(st.sampled_from("AB"), st.text("ab c", max_size=12)), min_size=1, max_size=8)


def test_by_hand():
    found = text_figures(
        [("A", "My card is gone."), ("A", "my card is gone"), ("B", "My card is gone!"), ("B", "Why?")]
    )
    assert (found.texts, found.words, found.vocabulary, found.repeated) == (4, (1, 4.0, 4), 5, 1)


@given(texts)
def test_a_text_once_more_is_one_repetition_and_no_new_word(given):
    before, after = text_figures(given), text_figures([*given, given[0]])
    assert after.texts == before.texts + 1
    assert after.repeated == before.repeated + 1
    assert after.vocabulary == before.vocabulary
    assert after.words[::2] == before.words[::2]


def test_other_labels_repeat_nothing():
    assert text_figures([("A", "the same"), ("B", "the same")]).repeated == 0


def test_no_texts_have_no_figures():
    with pytest.raises(UsageError, match="no texts"):
        text_figures([])
