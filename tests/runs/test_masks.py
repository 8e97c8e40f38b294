"""What may come next follows from released tokens, the public row and public numbers, and from nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from mechanisms.errors import ModelUnavailable
from mechanisms.noise import SeededRandomness
from mechanisms.records import Record
from mechanisms.runs.events import DemoCompleted, TokenReleased
from mechanisms.runs.writing import DemonstrationWriter
from tests.runs.neighbours import Spelling
from tests.runs.running import alone, begun, data, planned, rows
from tests.toy_model import VOCABULARY, ToyModel

LEAST = 6
TOKENS = st.lists(st.integers(0, VOCABULARY - 1), max_size=12)


def writer(units=(), model=None, seed=0, number=1, opening="", **settings) -> DemonstrationWriter:
    plan = planned(data(rows(60)), alone(**{"tokens": 12, "min_tokens": LEAST} | settings))
    return DemonstrationWriter(units, plan, model or ToyModel(), SeededRandomness(seed), ("red", number), opening)


def logits(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=VOCABULARY)


@given(TOKENS, st.integers(0, 2**32 - 1), st.lists(st.text(max_size=8), min_size=1, max_size=4))
def test_candidates_are_the_same_whatever_the_private_rows_say(written, seed, texts):
    public = logits(seed)
    units = [(Record(text, "red"),) for text in texts]
    one, other = writer(), writer(units, seed=seed, number=2)
    one.state.written, other.state.written = list(written), list(written)
    other.join()
    assert one.candidates(public).tolist() == other.candidates(public).tolist()


@given(TOKENS, st.integers(0, 2**32 - 1))
def test_no_candidate_breaks_a_rule_and_no_likelier_token_is_left_out(written, seed):
    public, model = logits(seed), ToyModel()
    made = writer(model=model)
    made.state.written = list(written)
    found = made.candidates(public).tolist()

    def allowed(token: int) -> bool:
        after = [*written, token]
        runs = [tuple(after[i : i + 3]) for i in range(len(after) - 2)]
        loops = any(len(after) >= 2 * n and after[-n:] == after[-2 * n : -n] for n in range(2, 9))
        shows = any(each.isprintable() and not each.isspace() for each in model.decode(after))
        again = runs[-1:] in [[run] for run in runs[:-1]]
        return shows and not again and not loops and (token != 10 or len(written) >= LEAST)

    likeliest = [token for token in np.argsort(-public, kind="stable").tolist() if allowed(token)]
    assert found == likeliest[: len(found)]
    assert len(found) == 8


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 1))
def test_a_nucleus_is_the_fewest_likeliest_that_hold_its_share_and_two_at_least(seed, share):
    public = 3 * logits(seed)
    whole, found = writer().candidates(public), writer(candidate_top_p=share).candidates(public)
    assert found.tolist() == whole[: len(found)].tolist()
    usable = public.copy()
    usable[10] = -np.inf
    held = np.cumsum(softmax(usable)[found])
    assert len(found) == len(whole) or held[-1] >= share - 1e-9
    assert len(found) == 2 or held[-2] < share


def test_an_opening_stands_before_what_is_written_and_counts_as_no_token():
    made = writer(opening="My card")
    assert made.state.text.strip() == "My card"
    assert made.written == []
    assert made.length == writer().length + len(ToyModel().encode(" My card"))
    assert 10 not in made.candidates(np.where(np.arange(VOCABULARY) == 10, 9.0, 0.0)), "it is no text of its own"


def test_a_text_that_is_blank_so_far_stays_without_an_end_and_begins_with_something_to_see(any_text_passes):
    class Blank(Spelling):
        def decode(self, tokens) -> str:
            return ToyModel.decode(self, tokens)

        def open(self, prefix, rows, length, room):
            session = super().open(prefix, rows, length, room)
            plain = session._row
            # White space is likeliest everywhere, a line break among it, and then what ends a sentence.
            weights = 30.0 * np.isin(np.arange(VOCABULARY), [9, 10, 11, 12, 32]) + 20.0 * (np.arange(VOCABULARY) == 46)
            session._row = lambda tokens: plain(tokens) + weights
            return session

    told = begun(data(rows(60)), planned(data(rows(60)), alone(candidates=4)), model=Blank())
    texts = [event.demonstration.text for event in told if isinstance(event, DemoCompleted)]
    assert len(texts) == 2
    assert all(any(each.isprintable() and not each.isspace() for each in text) for text in texts)


@pytest.mark.parametrize("least", [0, 1, 4, 7])
def test_a_demonstration_ends_no_sooner_than_asked_for(least, any_text_passes):
    class Ending(Spelling):
        stop_tokens = frozenset(range(0, VOCABULARY, 2))

    plan = planned(data(rows(60)), alone(min_tokens=least, tokens=7, written=4, shots=4))
    told = list(begun(data(rows(60)), plan, model=Ending()))
    ends = [event.step - 1 for event in told if isinstance(event, TokenReleased) and event.stop]
    if least < 7:
        assert min(ends) == max(1, least)
    else:
        assert not ends


def test_the_least_length_is_at_most_that_of_a_text():
    assert alone(min_tokens=9).with_().min_tokens == 9
    assert planned(data(rows(60)), alone(min_tokens=9)).spec.min_tokens == 5


def test_a_model_without_a_usable_token_is_refused():
    with pytest.raises(ModelUnavailable, match="choose another model"):
        writer().candidates(np.full(VOCABULARY, np.nan))


@pytest.mark.parametrize(
    ("text", "stopped", "kept"),
    [
        ("It came too late. The box was bro", False, "It came too late."),
        ("It came too late. The box was bro", True, "It came too late."),
        ("where is the box", True, "where is the box"),
        ("Late. The box that I got was bro", False, "Late."),
        ("The box was bro", False, ""),
    ],
)
def test_a_text_that_broke_off_is_cut_back_to_its_last_whole_sentence(text, stopped, kept):
    made = writer()
    made.state.written, made.state.stopped = list(text.encode()), stopped
    assert made.completed.demonstration.text == kept
