"""The vote: to the nearest draft of one's own label, one vote a unit, and nobody's by another's text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.records import Record
from mechanisms.runs.stages.vote import VoteCollector, winners
from mechanisms.runs.text import normalised_text
from tests.toy_embedder import ToyEmbedder

BALLOTS = {
    "red": ("a rose in the garden", "an apple on the table", "fire in the night"),
    "blue": ("the sky at noon", "waves of the sea"),
}


def cast(*units: tuple[Record, ...], ballots=BALLOTS) -> np.ndarray:
    return np.array(list(VoteCollector(ToyEmbedder(64), ballots).contributions(units)))


def red(text: str) -> Record:
    return Record(text, "red")


def blue(text: str) -> Record:
    return Record(text, "blue")


def test_a_text_votes_for_the_nearest_draft_of_its_own_label():
    votes = cast((red("an apple on a chair"),), (red("the rose in my garden"),), (blue("waves of a lake"),))
    assert votes.tolist() == [[0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    assert cast((blue("an apple on a chair"),))[0, :3].sum() == 0  # nearest of all, but of another label


def test_a_user_has_one_vote_in_all_shared_by_its_records():
    [votes] = cast((red("an apple on the table"), red("a rose in the garden"), blue("the sky at noon")))
    assert votes == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3, 0])


def test_a_text_without_content_votes_for_nothing_and_still_counts_as_a_record():
    assert cast((red("  "),)).sum() == 0
    assert cast((red(""), red("a rose in the garden")))[0, 0] == 0.5


def test_a_vote_does_not_depend_on_who_else_votes():
    units = [(red("an apple on a chair"),), (blue("the sea"),), (red("fire"), blue("noon"))]
    together = cast(*units)
    for place, unit in enumerate(units):
        assert (cast(unit)[0] == together[place]).all()


def apart(ballots) -> dict[str, np.ndarray]:
    """Vectors by which no text is like another one."""
    return {label: np.eye(max(1, len(of)))[: len(of)] for label, of in ballots.items()}


ANY_BALLOT = st.lists(st.tuples(st.sampled_from(["a", "A", "b.", "B", "c", "d", "e"]), st.integers(-3, 3)), max_size=6)


@given(st.fixed_dictionaries(dict.fromkeys(("red", "blue", "green"), ANY_BALLOT)), st.integers(1, 4))
def test_no_text_wins_twice_and_nothing_else_keeps_a_better_draft_from_winning(cast, most):
    ballots = {label: tuple(text for text, _ in of) for label, of in cast.items()}
    votes = {label: np.array([float(vote) for _, vote in of]) for label, of in cast.items()}
    found = winners(ballots, votes, most, apart(ballots))
    standing = {normalised_text(ballots[label][i]): votes[label][i] for label, places in found.items() for i in places}
    assert len(standing) == sum(map(len, found.values()))
    for label, places in found.items():
        assert len(places) <= most
        assert list(places) == sorted(places, key=lambda i: (-votes[label][i], i))
        for i in set(range(len(ballots[label]))) - set(places):
            better = len(places) == most and votes[label][places[-1]] >= votes[label][i]
            assert better or standing[normalised_text(ballots[label][i])] >= votes[label][i]


def test_of_texts_that_are_alike_in_meaning_one_stands_before_all_others():
    ballots = {"red": ("a", "b", "c", "d")}
    near = np.array([1.0, 0.0]), np.array([0.99, 0.14])
    vectors = {"red": np.stack([near[0], near[1] / np.linalg.norm(near[1]), [0.0, 1.0], [0.0, -1.0]])}
    votes = {"red": np.array([9.0, 8.0, 7.0, 1.0])}
    assert winners(ballots, votes, 2, vectors) == {"red": (0, 2)}
    assert winners(ballots, votes, 4, vectors) == {"red": (0, 2, 3, 1)}, "a set is as large as was asked for"
