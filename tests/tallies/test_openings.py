"""Openings: which public opening a text begins with, and what one text adds to their histogram."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mechanisms.noise import SeededRandomness
from mechanisms.privacy_events import Laplace, Pure
from mechanisms.tallies import OpeningFinder, Openings, distinct
from tests.steps.inputs import Noiseless

PUBLIC = ("I", "I am", "How do", "how", "My", "Wie", "¿Dónde")
FOUND = OpeningFinder(PUBLIC)
WORDS = st.sampled_from(["I", "am", "How", "do", "my", "card", "wie", "¿dónde", "—", "'", "\x00", "", "x" * 500])
TEXTS = st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=6).map(" ".join))


@pytest.mark.parametrize(
    ("text", "opening"),
    [
        ("I am here", "I am"),
        ("i AM, here", "I am"),
        ("“I am here”", "I am"),
        ("I was here", "I"),
        ("I", "I"),
        ("How do I pay?", "How do"),
        ("How did I pay?", "how"),
        ("  my - card", "My"),
        ("dónde está", "¿Dónde"),
        ("Iam here", None),
        ("Here I am", None),
        ("", None),
        ("... — !", None),
    ],
)
def test_the_longest_opening_that_fits_is_found_whatever_its_case_and_signs(text, opening):
    place = FOUND.index(text)
    assert (None if place is None else PUBLIC[place]) == opening


@given(TEXTS, st.lists(TEXTS, max_size=8))
def test_what_is_found_is_a_beginning_and_no_longer_one_was_there(text, openings):
    public = distinct(openings)
    place = OpeningFinder(public).index(text)
    words, found = [bare(text)[:n] for n in (1, 2)], [bare(each) for each in public]
    fitting = [each for each in found if each in words]
    assert (place is None) == (not fitting)
    if place is not None:
        assert found[place] == max(fitting, key=len)


def bare(text: str) -> list[str]:
    """The words of a short text, for a test of its own."""
    signs = ".,;:!?\"'“”‘’()[]{}<>*_-–—…«»¿¡#@/\\|"
    return [word for each in text[:400].split()[:4] if (word := each.casefold().strip(signs))][:2]


@given(st.lists(TEXTS, max_size=12))
@example([" " + "x" * 400, "x" * 400])
def test_distinct_openings_are_one_or_two_words_each_once_in_their_order(openings):
    found = distinct(openings)
    assert len({tuple(bare(each)) for each in found}) == len(found)
    assert all(len(bare(each)) >= 1 for each in found)
    assert distinct(found) == found
    assert [OpeningFinder(found).index(each) for each in found] == list(range(len(found)))


def test_three_words_are_no_opening_and_the_first_spelling_stays():
    assert distinct(["How many people", " How  many ", "how, many", "", "—"]) == ("How many",)


@given(TEXTS, st.integers(0, 3))
def test_a_text_votes_once_at_most_and_in_its_own_cells(text, label):
    width = len(PUBLIC)
    vote = FOUND.vote(text, 4 * width, label * width)
    assert set(vote.tolist()) <= {0.0, 1.0}
    assert np.abs(vote).sum() == (FOUND.index(text) is not None)
    outside = np.delete(vote, np.s_[label * width : (label + 1) * width])
    assert not outside.any()


@given(TEXTS)
def test_a_vote_does_not_depend_on_what_stands_far_behind(text):
    longer = text.ljust(400) + " How do I pay?"
    assert FOUND.index(longer) == FOUND.index(text.ljust(400))


@given(st.lists(TEXTS, min_size=1, max_size=6), st.floats(0.1, 3), st.booleans())
def test_without_noise_it_is_the_histogram_and_chunks_are_one_release(texts, epsilon, by_user):
    tally, votes = Openings(epsilon, by_user), np.stack([FOUND.vote(each, len(PUBLIC)) for each in texts])
    counted = np.zeros(len(PUBLIC))
    for each in texts:
        if (place := FOUND.index(each)) is not None:
            counted[place] += 1
    assert tally.release(votes, Noiseless()).tolist() == counted.tolist()
    in_chunks = tally.release_of([votes[:2], votes[2:]], SeededRandomness(3))
    assert in_chunks.tolist() == tally.release(votes, SeededRandomness(3)).tolist()


def test_a_row_is_priced_as_randomised_response_and_a_user_as_laplace_noise():
    assert Openings(0.5, False).event == Pure(0.5)
    assert Openings(0.5, True).event == Laplace(2.0)
