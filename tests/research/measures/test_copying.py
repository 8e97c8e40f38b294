"""A planted copy is found, with its length."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from research.measures.copying import longest_copied
from research.measures.words import grams, words_of

TEXTS = ["nothing like it", "she lives at 7 Elm Street, doctor", "red"]


def found(texts, rows):
    copied = longest_copied(texts, rows)
    return copied.words, copied.text


def test_a_planted_run_is_found_whatever_its_case_and_punctuation():
    rows = ["The weather is fine.", "LIVES AT 7 ELM street since May.", "at 7"]
    assert found(TEXTS, rows) == (5, 1)
    assert found(TEXTS, reversed(rows)) == (5, 1)


def test_a_copied_row_is_found_whole():
    assert found(TEXTS, [TEXTS[1]]) == (7, 1)
    assert found(["私は東京に住む"], ["昨日から東京に住んでいる"]) == (4, 0)


def test_words_apart_make_no_run():
    assert found(["a b c"], ["c b a"]) == (1, 0)
    assert found(["a b c"], ["a", "b c d"]) == (2, 0)


def test_nothing_shared_is_nothing_copied():
    assert found(TEXTS, ["completely other words", ""]) == (0, None)
    assert found([], ["a"]) == found(["a"], []) == (0, None)


TEXT = st.lists(st.sampled_from("abc"), max_size=8).map(" ".join)


@given(st.lists(TEXT, max_size=4), st.lists(TEXT, max_size=4))
def test_it_is_the_longest_of_all(texts, rows):
    def runs(every, n):
        return {gram for each in every for gram in grams(words_of(each), n)}

    longest = max((n for n in range(1, 9) if runs(texts, n) & runs(rows, n)), default=0)
    words, text = found(texts, rows)
    assert words == longest
    if text is not None:
        assert runs([texts[text]], words) & runs(rows, words)


def test_what_was_found_does_not_show_itself():
    assert "words=" not in repr(longest_copied(TEXTS, ["lives at 7 elm street"]))
