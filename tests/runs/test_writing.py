"""Token by token: charges before releases, public candidates, public behaviour on overflow."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.noise import SecureRandomness, SeededRandomness
from mechanisms.records import Record
from mechanisms.runs.events import (
    DemoCompleted,
    DemoRefused,
    RunCompleted,
    RunStarted,
    SetSoFar,
    TokenReleased,
)
from mechanisms.runs.plan import Plan, public_plan
from mechanisms.runs.run import run
from mechanisms.runs.stages.write import NO_SENTENCE
from mechanisms.runs.text import Gate
from mechanisms.runs.writing import DemonstrationWriter, descending
from mechanisms.sampling import SamplingPlan, Scheme
from tests.runs.neighbours import Spelling
from tests.runs.running import LABELS, NOISE, Reading, alone, begun, data, ledger, planned, rows
from tests.toy_model import VOCABULARY, ToyModel

RAW = NOISE | {"temperature": 0.0, "prior-deviation": 1000.0}
"""The likeliest token of the vector as it is released."""


def plan_of(**settings) -> Plan:
    return planned(data(rows(60)), alone(**settings))


def events(randomness=None, curator=False, **settings):
    randomness = randomness or SeededRandomness(1)
    return list(begun(data(rows(60)), plan_of(**settings), randomness=randomness, curator=curator))


@pytest.mark.parametrize("scheme", list(Scheme))
def test_a_run_tells_everything_in_order(scheme):
    told = events(scheme=scheme, written=2, shots=2, parameters=RAW)
    assert isinstance(told[0], RunStarted)
    assert isinstance(told[-1], RunCompleted)
    whole = [event.demonstration for event in told if isinstance(event, DemoCompleted)]
    assert [each.label for each in whole] == ["red", "red", "blue", "blue"]
    refused = sum(isinstance(event, DemoRefused) for event in told)
    assert len(set(whole) & set(told[-1].demo_set.demonstrations)) == 4 - refused
    for event in told:
        if isinstance(event, TokenReleased):
            assert len(event.candidates) == len(event.scores) == len(event.public) == len(event.values) == 8
            assert event.chosen == int(np.argmax(event.scores))
            assert 1 <= event.step <= 5


def test_a_token_is_the_likeliest_of_the_posterior_mean_of_what_was_released():
    """What a screen shows as deciding follows from the released vector and public values alone."""
    told = [event for event in events(parameters=NOISE | {"temperature": 0.0}) if isinstance(event, TokenReleased)]
    deviation, rows_of_a_step, tau = 9.0, 6, 0.1
    for event in told:
        noise = (deviation / rows_of_a_step) ** 2
        released = np.array(event.scores) / rows_of_a_step
        public = np.array(event.public) / rows_of_a_step
        wanted = (tau**2 * released + noise * public) / (tau**2 + noise)
        assert np.array(event.values) / rows_of_a_step == pytest.approx(wanted)
        assert event.chosen == int(np.argmax(event.values))


def test_a_model_that_breaks_keeps_the_charge():
    class Breaking(Reading):
        def open(self, prefix, rows, length, room):
            if any(b"secret" in bytes(row) for row in rows):
                raise RuntimeError("out of memory")
            return super().open(prefix, rows, length, room)

    account = ledger()
    with pytest.raises(RuntimeError):
        list(begun(data(rows(60)), plan_of(), ledger=account, model=Breaking()))
    assert account.snapshot("d", "record").epsilon > 0


@pytest.mark.parametrize("scheme", list(Scheme))
def test_what_the_model_refuses_is_refused_before_anything_is_reserved(scheme):
    class Small(Reading):
        def check(self, prefix, rows, length, room):
            super().check(prefix, rows, length, room)
            raise UsageError("too long")

    plan, account, small = plan_of(scheme=scheme), ledger(), Small()
    with pytest.raises(UsageError, match="too long"):
        next(begun(data(rows(60)), plan, ledger=account, model=small))
    assert account.snapshot("d", "record").epsilon == 0
    assert not small.opened

    model, capacity = Reading(), plan.capacity("red")
    list(begun(data(rows(60)), plan, model=model))
    longest = max(length + room for rows, length, room in model.opened if rows == capacity)
    assert longest <= max(length + room for rows, length, room in model.checked if rows == capacity)


@pytest.mark.parametrize("scheme", list(Scheme))
def test_what_the_model_expects_without_the_data_is_the_same_whatever_they_are(random_model, scheme):
    def expected(records, seed):
        plan = planned(data(records), alone(scheme=scheme))
        told = begun(data(records), plan, model=random_model, randomness=SeededRandomness(seed))
        first = next(event for event in told if isinstance(event, TokenReleased))
        return first.candidates, first.public

    others = [Record("Another text altogether, and a longer one.", each.label) for each in rows(60)]
    assert expected(rows(60), 1) == expected(others, 2)


def test_overflow_releases_the_public_step(monkeypatch):
    monkeypatch.setattr(SamplingPlan, "capacity", lambda self, size, delta: (1, 0.0))
    monkeypatch.setattr(SeededRandomness, "gaussian", lambda self, values, scale: values)
    tokens = [event for event in events() if isinstance(event, TokenReleased)]
    assert tokens
    for event in tokens:
        assert event.scores == pytest.approx(event.public, abs=1e-6)


def test_public_text_never_looks_at_the_data_and_costs_nothing():
    account, model = ledger(), Reading()
    told = list(run(public_plan(alone(), LABELS), data(rows(60)), model, account))
    assert told[-1].demo_set.certificate.claim.epsilon == 0
    assert account.snapshot("d", "record").epsilon == 0
    assert not model.log


# The gate: a text that is none stands in no set, and its charge stays.


def test_a_refused_text_stands_in_no_set_and_public_drafts_take_its_place(monkeypatch):
    """Nor in the one that is kept if the run stops right there."""
    written, account = set(), ledger()
    monkeypatch.setattr(Gate, "reason", lambda gate, text: "no words" if text in written else None)
    finished = DemonstrationWriter.completed.fget

    def completed(writer):
        event = finished(writer)
        written.add(event.demonstration.text)
        return event

    monkeypatch.setattr(DemonstrationWriter, "completed", property(completed))
    for event in begun(data(rows(60)), plan_of(), ledger=account, randomness=SecureRandomness()):
        if isinstance(event, SetSoFar | RunCompleted):
            assert not {each.text for each in event.demo_set.demonstrations} & written
    assert [each.label for each in event.demo_set.refused] == [*LABELS]
    assert {each.reason for each in event.demo_set.refused} <= {"no words", NO_SENTENCE}
    assert [each.label for each in event.demo_set.demonstrations] == [*LABELS]
    assert account.snapshot("d", "record").epsilon > 0


def test_a_text_without_a_whole_sentence_is_refused():
    class Endless(Reading):
        stop_tokens = frozenset()

        def decode(self, tokens) -> str:
            return super().decode(tokens).replace(".", "")

    told: list[object] = []
    with pytest.raises(UsageError, match="Nothing of this run"):
        told.extend(begun(data(rows(60)), plan_of(), model=Endless()))
    assert [each.reason for each in told if isinstance(each, DemoRefused)] == ["it has no whole sentence"] * 2


LEAST = 6
TOKENS = st.lists(st.integers(0, VOCABULARY - 1), max_size=12)


def writer(units=(), model=None, seed=0, number=1, opening="", **settings) -> DemonstrationWriter:
    plan = planned(data(rows(60)), alone(**{"tokens": 12, "min_tokens": LEAST} | settings))
    return DemonstrationWriter(units, plan, model or ToyModel(), SeededRandomness(seed), ("red", number), opening)


def logits(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=VOCABULARY)


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


@pytest.mark.parametrize(("cap", "room"), [(1, 1), (2, 1.5), (3, 1.5)])
def test_a_users_row_has_room_for_one_long_text_and_a_half_and_holds_more_short_ones(cap, room):
    asked = alone(max_record_tokens=40, max_unit_records=cap, sizes=dict.fromkeys(LABELS, 30), subsets=30)
    plan = planned(data(rows(60, users=True), by_user=True), asked)
    for text, shown in (("short", cap), ("long " * 20, min(cap, 2))):
        unit = tuple(Record(f"{i}{text}", "red", "u0") for i in range(4))
        one = DemonstrationWriter([unit], plan, ToyModel(), SeededRandomness(1), ("red", 1))
        assert one.length == room * (len("\n\nExample:") + 40) + len(one.prompt.cue)
        [prompt] = [row for row in one.join().prompts if len(row) > len(one.cue)]
        assert [bytes(prompt).decode().count(f" {i}{text[:4]}") for i in range(4)] == [int(i < shown) for i in range(4)]
        assert len(prompt) <= one.length


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


_VALUES = st.lists(st.sampled_from([-np.inf, 0.0, 0.5, 1.0, 2.0]), max_size=40)  # many are equal


@given(_VALUES, st.integers(1, 50))
def test_the_largest_come_first_and_of_equal_ones_the_earlier(values, first):
    order = list(descending(np.array(values), first))
    assert order == sorted(range(len(values)), key=lambda place: (-values[place], place))


@given(_VALUES, st.integers(1, 50))
def test_some_are_the_beginning_of_all(values, first):
    given = np.array(values)
    assert list(islice(descending(given, first), 3)) == list(descending(given))[:3]
