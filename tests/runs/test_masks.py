"""What may come next follows from released tokens, the public row and public numbers, and from nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.accounting import PrivacyLedger
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.records import PromptTemplate, Record
from mechanisms.runs.certificate import rebuilt
from mechanisms.runs.events import DemoCompleted, TokenReleased
from mechanisms.runs.run import synthesize
from mechanisms.runs.verification import verify
from mechanisms.runs.writer import DemonstrationWriter
from mechanisms.sampling import SamplingPlan
from tests.certificates.test_verification import asked, certified
from tests.synthesis.test_synthesize import dataset, request
from tests.toy_model import VOCABULARY, ToyModel

LEAST = 6
TOKENS = st.lists(st.integers(0, VOCABULARY - 1), max_size=12)


def writer(units=(), model=None, seed=0, number=1, **changes) -> DemonstrationWriter:
    planned = replace(request(plan=SamplingPlan(subsets=6, tokens=12), min_tokens=LEAST), **changes)
    return DemonstrationWriter(units, planned, model or ToyModel(), SeededRandomness(seed), "a", number)


def logits(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=VOCABULARY)


@given(TOKENS, st.integers(0, 2**32 - 1), st.lists(st.text(max_size=8), min_size=1, max_size=4))
def test_candidates_are_the_same_whatever_the_private_rows_say(written, seed, texts):
    public = logits(seed)
    units = [(Record(text, "a"),) for text in texts]
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
        shows = any(each.isprintable() and not each.isspace() for each in model.decode(after))
        return shows and runs[-1:] not in [[run] for run in runs[:-1]] and (token != 10 or len(written) >= LEAST)

    likeliest = [token for token in np.argsort(-public, kind="stable").tolist() if allowed(token)]
    assert found == likeliest[: len(found)]
    assert len(found) == 8


def test_a_text_that_is_blank_so_far_stays_without_an_end_and_begins_with_something_to_see():
    class Blank(ToyModel):
        def open(self, prefix, rows, length, room):
            session = super().open(prefix, rows, length, room)
            plain = session._row
            # White space is likeliest everywhere, a line break among it.
            session._row = lambda tokens: plain(tokens) + 30.0 * np.isin(np.arange(VOCABULARY), [9, 10, 11, 12, 32])
            return session

    told = list(synthesize(dataset(), request(candidates=4), Blank(), PrivacyLedger(), SeededRandomness(1)))
    texts = [event.demonstration.text for event in told if isinstance(event, DemoCompleted)]
    assert len(texts) == 2
    assert all(any(each.isprintable() and not each.isspace() for each in text) for text in texts)


@pytest.mark.parametrize("least", [0, 1, 4, 7])
def test_a_demonstration_ends_no_sooner_than_asked_for(least):
    class Ending(ToyModel):
        stop_tokens = frozenset(range(0, VOCABULARY, 2))

    planned = request(min_tokens=least, plan=SamplingPlan(subsets=6, tokens=7, shots=4))
    told = list(synthesize(dataset(), planned, Ending(), PrivacyLedger(), SeededRandomness(1)))
    ends = [event.step - 1 for event in told if isinstance(event, TokenReleased) and event.stop]
    if least < 7:
        assert min(ends) == max(1, least)
    else:
        assert not ends


def test_the_least_length_is_at_most_the_plan_s():
    request(min_tokens=5)
    with pytest.raises(UsageError, match="min tokens must lie between 0 and 5"):
        request(min_tokens=6)


def test_a_model_without_a_usable_token_is_refused():
    with pytest.raises(ModelUnavailable, match="choose another model"):
        writer().candidates(np.full(VOCABULARY, np.nan))


@pytest.mark.parametrize(
    ("text", "stopped", "kept"),
    [
        ("It came too late. The box was bro", False, "It came too late."),
        ("It came too late. The box was bro", True, "It came too late. The box was bro"),
        ("Late. The box that I got was bro", False, "Late. The box that I got was bro"),
        ("The box was bro", False, "The box was bro"),
    ],
)
def test_a_text_that_broke_off_is_cut_back_unless_little_would_be_left(text, stopped, kept):
    made = writer(template=PromptTemplate("Classify.", "T", "L"))
    made.state.written, made.state.stopped = list(text.encode()), stopped
    assert made.demonstration.text == kept


def test_a_certificate_states_the_least_length_and_older_ones_none():
    stated = certified(asked("gaussian"))
    assert "min_tokens" not in stated.certificate.parameters
    assert rebuilt(stated).request.min_tokens == 0
    bounded = certified(replace(asked("gaussian"), min_tokens=4))
    assert rebuilt(bounded).request.min_tokens == bounded.certificate.parameters["min_tokens"] == 4
    assert verify(bounded).problems == ()
    edited = replace(bounded.certificate, parameters=bounded.certificate.parameters | {"min_tokens": 6})
    [problem] = verify(replace(bounded, certificate=edited)).problems
    assert "min tokens must lie between 0 and 5" in problem
