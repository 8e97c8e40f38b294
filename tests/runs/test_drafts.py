"""Public drafts: cleaned, distinct, from the public prompt alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mechanisms.runs.voting import VoteCollector, winners

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.records import PromptTemplate, Record
from mechanisms.runs import drafts
from mechanisms.runs.defaults import LABELLED, draft_tokens_of_texts, lengths_of_texts
from mechanisms.runs.drafts import TOP_P, preview_drafts, sample, write_drafts
from mechanisms.runs.text import cleaned, normalised_text
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import VOCABULARY, ToyModel

TEMPLATE, LABELS = PromptTemplate("Classify.", "Note", "Topic"), ("red", "blue")
SYLLABLES = ("ba", "ke", "li", "mo", "nu", "pa", "re", "si", "to", "vu", "da", "fe")


class Speaking(ToyModel):
    """Its tokens are words, one in eight the last of its sentence; it ends a text at times."""

    def decode(self, tokens) -> str:
        return " ".join(self._word(token) for token in tokens)

    def _word(self, token: int) -> str:
        return SYLLABLES[token % 12] + SYLLABLES[token // 12] + ("." if token % 8 == 0 else "")


class Recording(Speaking):
    def __init__(self) -> None:
        super().__init__(sharpness=1.0, busy=10**6)
        self.prompts: list[str] = []

    def open(self, prefix, rows, length, room):
        self.prompts += [bytes([*prefix, *row]).decode() for row in rows]
        return super().open(prefix, rows, length, room)


class Stuck(Recording):
    """Writes the same word again and again."""

    def decode(self, tokens) -> str:
        return "red. " * len(tokens)


def written(model=None, count=6, tokens=20, examples=(), taken=(), seed=1):
    model = model or Speaking(sharpness=1.0, busy=10**6)
    return write_drafts(model, TEMPLATE, "red", LABELS, count, tokens, SeededRandomness(seed), examples, taken)


def test_what_stands_for_another_label_is_not_written_in_whatever_case_and_punctuation():
    first = written()
    others = [f" «{text.upper()}»!" for text in first[:3]]
    again = written(taken=others)
    assert not set(first[:3]) & set(again)
    assert len(again) == len(first)


@pytest.mark.parametrize("busy", [1, 4, 10**6])
def test_drafts_are_cleaned_and_distinct_and_as_many_as_asked_for(busy):
    found = written(Speaking(sharpness=1.0, busy=busy))
    assert len(found) == len(set(found)) == 6
    assert all(cleaned(each, TEMPLATE, "red", LABELS) == each for each in found)
    assert all(len(each.split()) <= 20 for each in found)


def test_a_batch_is_one_session_and_there_is_an_end_to_trying():
    model, stuck = Recording(), Stuck()
    written(model)
    assert {rows for rows, _, _ in model.opened} == {6 * drafts.WRITTEN}
    with pytest.raises(UsageError, match="choose another model, or name"):
        written(stuck)
    assert sum(rows for rows, _, _ in stuck.opened) == 6 * drafts._TRIES


def test_nothing_but_the_public_prompt_is_asked():
    model = Recording()
    written(model)
    assert set(model.prompts) == {"Write one note with the given topic.\n\nTopic: red\nNote:"}


def test_winners_stand_in_the_prompt_before_the_cue():
    model = Recording()
    written(model, examples=("First one.", "Second one."))
    [prompt] = set(model.prompts)
    head = "Topic: red\nNote:"
    assert prompt.endswith(f"{head} First one.\n\n{head} Second one.\n\n{head}")


def test_a_winner_is_not_written_again(monkeypatch):
    texts = ["One of them came.", "Another of them came.", "A third one came."]
    monkeypatch.setattr(drafts, "_write", lambda *_: [(text, -1.0) for text in texts])
    assert written(examples=("One of them came.",)) == ("Another of them came.", "A third one came.")


def test_the_likelier_drafts_are_kept_in_the_order_written(monkeypatch):
    texts = [f"The {word} one came." for word in ("first", "second", "third", "fourth", "fifth")]
    likelihoods = (-3.0, -1.0, -4.0, -2.0, -5.0)
    monkeypatch.setattr(drafts, "_write", lambda *_: list(zip(texts, likelihoods, strict=True)))
    assert written(count=2) == (texts[1], texts[3])


def test_drafts_nearer_to_another_label_stand_behind(monkeypatch):
    # Words are near to themselves: a text is near to the label that it names.
    texts = [f"There came {word} one today." for word in ("a blue", "a red", "another blue", "another red")]
    likelihoods = (-1.0, -3.0, -2.0, -4.0)
    monkeypatch.setattr(drafts, "_write", lambda *_: list(zip(texts, likelihoods, strict=True)))
    model = Speaking(sharpness=1.0, busy=10**6)
    for count, kept in ((2, [1, 3]), (3, [0, 1, 3])):
        found = write_drafts(model, TEMPLATE, "red", LABELS, count, 20, SeededRandomness(1), embedder=ToyEmbedder(64))
        assert found == tuple(texts[i] for i in kept)


def test_a_sentence_of_the_prompt_is_not_a_draft(monkeypatch):
    class Told(Speaking):
        def decode(self, tokens) -> str:
            return "You write the way people write. Write one note."

    texts = [
        "You write the way people write! I came late.",
        "They came late to us.",
        "People write the way they speak.",
    ]
    monkeypatch.setattr(drafts, "_write", lambda *_: [(text, -1.0) for text in texts])
    assert written(Told(sharpness=1.0, busy=10**6)) == tuple(texts[1:])


def test_a_draft_is_as_likely_as_the_model_finds_its_tokens():
    model = Speaking(sharpness=1.0, busy=10**6)
    model.stop_tokens = frozenset()
    [(_, found)] = drafts._write(model, list(b"a"), [list(b"b")], 1, SeededRandomness(2))
    session = model.open(list(b"a"), [list(b"b")], 1, 1)
    own = [float(session.score([token])[0]) for token in range(VOCABULARY)]
    assert min(abs(found - each) for each in own) < 1e-9


def test_no_draft_ends_before_the_least_length():
    class Ending(Recording):
        stop_tokens = frozenset(range(VOCABULARY // 2))

    model = Ending()
    rows = drafts._write(model, list(b"a"), [list(b"b")] * 20, 30, SeededRandomness(2))
    lengths = [len(row.split()) for row, _ in rows]
    assert min(lengths) == drafts._LEAST_TOKENS
    assert max(lengths) < 30, "rows that ended were written on"


def test_a_row_does_not_depend_on_rows_that_ended():
    class Ending(Recording):
        stop_tokens = frozenset(range(0, VOCABULARY, 3))

    class Likeliest(SeededRandomness):
        def uniform(self, count):
            return np.full(count, 1e-9)

    # Different cues of one length, so that the rows differ although every draw is the likeliest token.
    cues = [[i] for i in range(1, 13)]
    together = drafts._write(Ending(), [], cues, 25, Likeliest(0))
    alone = [drafts._write(Ending(), [], [cue], 25, Likeliest(0))[0] for cue in cues]
    assert [text for text, _ in together] == [text for text, _ in alone]
    assert [found for _, found in together] == pytest.approx([found for _, found in alone])
    assert len({len(each.split()) for each, _ in alone}) > 3, "all ended at once: the test shows nothing"


def test_samples_follow_the_nucleus():
    logits = np.log(np.array([0.5, 0.02, 0.3, 0.08, 0.1]))
    drawn, found = sample(np.tile(logits, (40_000, 1)), SeededRandomness(3))
    assert found == pytest.approx(logits[drawn])
    shares = np.bincount(drawn, minlength=5) / len(drawn)
    kept = np.array([0.5, 0, 0.3, 0, 0.1])
    assert kept.sum() > TOP_P > 0.8
    assert shares == pytest.approx(kept / kept.sum(), abs=0.015)


def test_the_nucleus_is_that_of_the_whole_vocabulary():
    # Many rare tokens hold most of the probability: what is cut off unsorted still counts.
    logits = np.concatenate([[np.log(9.0)], np.zeros(991)])
    drawn, _ = sample(np.tile(logits, (2_000, 1)), SeededRandomness(4))
    assert (drawn == 0).mean() == pytest.approx(9 / (9 + drafts._MOST_CANDIDATES - 1), abs=0.02)


def test_what_is_not_finite_is_never_drawn():
    logits = np.array([[np.nan, 1.0, -np.inf, np.inf]])
    assert set(sample(np.repeat(logits, 50, axis=0), SeededRandomness(5))[0].tolist()) == {1}
    with pytest.raises(ModelUnavailable, match="choose another model"):
        sample(np.array([[0.0, 1.0], [np.nan, np.nan]]), SeededRandomness(5))


def test_a_preview_is_two_drafts_from_public_words_alone():
    model = Recording()
    found = preview_drafts(model, TEMPLATE, "red", LABELS, 20, SeededRandomness(1))
    assert len(found) == 2
    assert all(cleaned(text, TEMPLATE, "red", LABELS) == text for text in found)
    assert set(model.prompts) == {"Write one note with the given topic.\n\nTopic: red\nNote:"}


def test_a_preview_of_which_nothing_is_of_use_is_empty():
    assert preview_drafts(Stuck(), TEMPLATE, "red", LABELS, 20, SeededRandomness(1)) == ()


@pytest.mark.parametrize("words", [1, 6, 12, 40, 180, 2000])
def test_lengths_follow_the_words_of_a_text_within_their_limits(words):
    found = lengths_of_texts(words, LABELLED)
    assert 8 <= found.tokens <= LABELLED.tokens
    assert 16 <= found.max_record_tokens <= 256
    assert 16 <= draft_tokens_of_texts(words) <= 96
    if 12 <= words <= 180:
        assert found.max_record_tokens >= words
    more = lengths_of_texts(words + 1, LABELLED)
    assert more.tokens >= found.tokens
    assert more.max_record_tokens >= found.max_record_tokens


# The vote: to the nearest draft of one's own label, one vote a unit, and nobody's by another's text.

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


def test_nearest_is_by_cosine_among_drafts():
    embedder, text = ToyEmbedder(64), "night falls on the garden and the table"
    vectors = embedder.embed(BALLOTS["red"]).astype(np.float64)
    [mine] = embedder.embed([text]).astype(np.float64)
    assert cast((red(text),))[0].argmax() == (vectors @ mine).argmax()


def test_a_user_has_one_vote_in_all_shared_by_its_records():
    [votes] = cast((red("an apple on the table"), red("a rose in the garden"), blue("the sky at noon")))
    assert votes == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3, 0])


def test_a_text_without_content_votes_for_nothing_and_still_counts_as_a_record():
    assert cast((red("  "),)).sum() == 0
    assert cast((red(""), red("a rose in the garden")))[0, 0] == 0.5


def test_equal_drafts_are_no_tie_that_a_text_decides():
    votes = cast((red("b"),), (red("a"),), ballots={"red": ("same words", "same words"), "blue": ("x",)})
    assert votes.tolist() == [[1, 0, 0], [1, 0, 0]]  # the smaller index, whatever the text


def test_a_vote_does_not_depend_on_who_else_votes():
    units = [(red("an apple on a chair"),), (blue("the sea"),), (red("fire"), blue("noon"))]
    together = cast(*units)
    for place, unit in enumerate(units):
        assert (cast(unit)[0] == together[place]).all()


def test_released_votes_are_told_by_label():
    polls = VoteCollector(ToyEmbedder(), BALLOTS)
    found = polls.by_label(np.arange(5.0))
    assert {label: votes.tolist() for label, votes in found.items()} == {"red": [0, 1, 2], "blue": [3, 4]}
    assert polls.places == 5


def elected(ballots, votes, most: int) -> dict[str, list[str]]:
    found = winners(ballots, {label: np.array(of) for label, of in votes.items()}, most)
    return {label: [ballots[label][place] for place in places] for label, places in found.items()}


def test_a_text_stands_for_the_label_that_gives_it_more_votes_and_the_other_takes_its_next():
    ballots = {"red": ("Fire, at night!", "a rose", "an apple"), "blue": ("the sea", "fire at night", "noon")}
    votes = {"red": [5.0, 1.0, 2.0], "blue": [4.0, 6.0, -1.0]}
    assert elected(ballots, votes, 2) == {"red": ["an apple", "a rose"], "blue": ["fire at night", "the sea"]}
    assert elected(ballots, votes | {"red": [7.0, 1.0, 2.0]}, 1) == {"red": ["Fire, at night!"], "blue": ["the sea"]}
    # Where it does not win it stands in nobody's way.
    assert elected(ballots, votes | {"red": [7.0, 8.0, 2.0]}, 1) == {"red": ["a rose"], "blue": ["fire at night"]}


ANY_BALLOT = st.lists(st.tuples(st.sampled_from(["a", "A", "b.", "B", "c", "d", "e"]), st.integers(-3, 3)), max_size=6)


@given(st.fixed_dictionaries(dict.fromkeys(("red", "blue", "green"), ANY_BALLOT)), st.integers(1, 4))
def test_no_text_wins_twice_and_nothing_else_keeps_a_better_draft_from_winning(cast, most):
    ballots = {label: tuple(text for text, _ in of) for label, of in cast.items()}
    votes = {label: np.array([float(vote) for _, vote in of]) for label, of in cast.items()}
    found = winners(ballots, votes, most)
    standing = {normalised_text(ballots[label][i]): votes[label][i] for label, places in found.items() for i in places}
    assert len(standing) == sum(map(len, found.values()))
    for label, places in found.items():
        assert len(places) <= most
        assert list(places) == sorted(places, key=lambda i: (-votes[label][i], i))
        for i in set(range(len(ballots[label]))) - set(places):
            better = len(places) == most and votes[label][places[-1]] >= votes[label][i]
            assert better or standing[normalised_text(ballots[label][i])] >= votes[label][i]
