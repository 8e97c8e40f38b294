"""Best of several: everything that was written is paid for, and the model itself says which of it is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mechanisms.accounting import PrivacyLedger
from mechanisms.demos.demo_set import loads
from mechanisms.errors import UsageError
from mechanisms.evaluation.reader import Classifier
from mechanisms.noise import SeededRandomness
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.runs.best_of import Fidelity, first_of_each_label
from mechanisms.runs.events import DemoCompleted, RunStarted
from mechanisms.runs.public_demonstrations import public_demonstrations, tries_of
from mechanisms.runs.request import MOST_TRIES
from mechanisms.runs.run import synthesize
from mechanisms.runs.score import of_demo_set
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class
from tests.synthesis.test_synthesize import LABELS, dataset, request
from tests.toy_model import VOCABULARY, ToyModel, ToySession

TEMPLATE = PromptTemplate("Classify.", "T", "L")
SEASONS = ("winter", "summer")
TOKENS = {f" {label}": number for number, label in enumerate(SEASONS, 1)}


class Thermometer(ToyModel):
    """Counts the words of each season in a text, and prefers "winter" by far whatever it reads."""

    WORDS = ("snow", "sun")

    def encode(self, text):
        return [TOKENS[text]] if text in TOKENS else super().encode(text)

    def open(self, prefix, rows, length, room):
        model = self

        class Reading(ToySession):
            def _row(self, tokens):
                text, logits = model.decode(tokens), np.full(VOCABULARY, -9.0)
                for label, word in enumerate(model.WORDS, 1):
                    logits[label] = text.count(word)
                logits[1] += 20
                return logits * (np.nan if "broken" in text else 1.0)

        return Reading([[*prefix, *row] for row in rows], 1.0)


def demonstrations(label: str, *texts: str) -> list[Demonstration]:
    return [Demonstration(text, label) for text in texts]


def best(written: list[Demonstration], kept: int) -> list[str]:
    chosen = Fidelity(Thermometer(), TEMPLATE, SEASONS).best(written, dict.fromkeys(SEASONS, kept))
    return [each.text for each in chosen]


def test_the_surest_texts_of_each_label_are_kept_in_the_order_in_which_they_were_written():
    written = [
        *demonstrations("winter", "deep snow on snow", "a grey day", "some snow", "sun and sun"),
        *demonstrations("summer", "a grey day", "some sun", "snow in the sun", "the sun, only the sun"),
    ]
    assert best(written, 1) == ["deep snow on snow", "the sun, only the sun"]
    assert best(written, 2) == ["deep snow on snow", "some snow", "some sun", "the sun, only the sun"]
    assert best(written[::-1], 2) == best(written, 2)[::-1]
    assert best(written, 9) == [each.text for each in written]


@pytest.mark.parametrize("nothing", ["", " \n", "... !!", "sun", "Summer, SUMMER!", "1999 12 24"])
def test_what_says_nothing_loses_to_anything_else(nothing):
    worst = "snow on snow on snow"
    assert best(demonstrations("summer", nothing, worst), 1) == [worst]
    assert best(demonstrations("summer", nothing, worst), 2) == [nothing, worst]


def test_a_repetition_loses_to_a_text_of_its_own_but_not_to_an_empty_one():
    written = demonstrations("summer", "sun and sun", "sun and sun", " ", "snow today")
    assert best(written, 2) == ["sun and sun", "snow today"]
    assert best(written, 3) == ["sun and sun", "sun and sun", "snow today"]


def test_a_text_that_the_model_breaks_on_loses_and_stops_nothing():
    assert best(demonstrations("summer", "broken sun", "snow today"), 1) == ["snow today"]
    assert best(demonstrations("summer", "broken sun", "broken snow"), 1) == ["broken sun"]


def test_the_preference_of_the_model_is_divided_out():
    """The probability of a label over its mean, then normalised: three labels, where a preference alters the order."""
    labels, model = ("red", "green", "blue"), ToyModel()
    written = [Demonstration(f"text {i}", labels[i % 3]) for i in range(7)]
    raw = np.exp(Classifier(model, TEMPLATE, labels, ()).log_probabilities([each.text for each in written]))
    divided = raw / raw.mean(axis=0)
    shares = divided / divided.sum(axis=1, keepdims=True)
    own = [shares[i, labels.index(each.label)] for i, each in enumerate(written)]
    assert np.exp(Fidelity(model, TEMPLATE, labels).of(written)) == pytest.approx(own)


def test_a_run_that_was_stopped_keeps_what_came_first():
    written = [Demonstration(str(i), "ab"[i % 2]) for i in range(6)]
    assert [each.text for each in first_of_each_label(written, {"a": 2, "b": 1})] == ["0", "1", "2"]


def public(tries: int, shots: int = 2, model: ToyModel | None = None):
    """A run of the mechanism that reads no row: quick, since nothing is accounted."""
    asked = request(mechanism=mechanism_class("public")(), plan=SamplingPlan(subsets=6, tokens=5, shots=shots))
    return list(synthesize(dataset(), asked.best_of(tries), model or ToyModel(), PrivacyLedger(), SeededRandomness(1)))


def test_a_run_writes_all_and_keeps_the_best():
    told = public(tries=3)
    written = [event.demonstration for event in told if isinstance(event, DemoCompleted)]
    kept = told[-1].demo_set.demonstrations
    assert len(written) == 3 * 2 * len(LABELS)
    assert [each.label for each in kept] == ["a", "a", "b", "b"]
    assert kept == Fidelity(ToyModel(), TEMPLATE, LABELS).best(written, dict.fromkeys(LABELS, 2))
    [started] = [event for event in told if isinstance(event, RunStarted)]
    assert (started.shots, started.kept) == (6, 2)


def test_the_best_of_one_is_what_it_always_was():
    asked = request()
    assert asked.best_of(1) == asked
    assert "kept_per_label" not in asked.parameters()
    told = public(tries=1)
    assert [type(event) for event in told].count(DemoCompleted) == len(told[-1].demo_set.demonstrations) == 4
    assert told[0].kept is None


@pytest.mark.parametrize("scheme", list(Scheme))
def test_the_charge_is_that_of_everything_that_is_written(scheme):
    plan = SamplingPlan(scheme, subsets=6, tokens=5, shots=2)
    asked = request(plan=plan).best_of(3)
    assert asked.event == request(plan=replace(plan, shots=6)).event
    charged = [asked.charge(label, number) for label in LABELS for number in range(1, 7)]
    whole = request(plan=replace(plan, shots=6))
    assert charged == [whole.charge(label, number) for label in LABELS for number in range(1, 7)]
    assert (asked.parameters()["shots_per_label"], asked.parameters()["kept_per_label"]) == (6, 2)


@pytest.mark.slow
def test_the_ledger_is_charged_more_where_more_is_written():
    spent, claims = [], []
    for tries in (1, 3):
        ledger, asked = PrivacyLedger(), request().best_of(tries)
        *_, last = synthesize(dataset(name=f"best of {tries}"), asked, ToyModel(), ledger, SeededRandomness(1))
        spent.append(ledger.snapshot(f"best of {tries}", "record").epsilon)
        claims.append(last.demo_set.certificate.claim.epsilon)
        assert len(last.demo_set.demonstrations) == len(LABELS)
    assert 1.5 * claims[0] < claims[1]
    assert spent == pytest.approx(claims, rel=1e-3)


@pytest.mark.parametrize("tries", [-1, 0, MOST_TRIES + 1])
def test_so_many_are_refused(tries):
    with pytest.raises(UsageError, match="best of 1 to"):
        request().best_of(tries)


@pytest.mark.parametrize("kept", [0, 2, 3])
def test_fewer_than_are_written_are_kept_and_at_least_one(kept):
    with pytest.raises(UsageError, match="that is kept"):
        request(plan=SamplingPlan(subsets=6, tokens=5, shots=2), kept=kept)


def test_one_label_has_no_best():
    with pytest.raises(UsageError, match="two labels"):
        request(labels=("a",), sizes={"a": 30}).best_of(2)


def test_a_prompt_that_is_too_long_is_refused_before_anything_is_reserved():
    class Short(ToyModel):
        def open(self, prefix, rows, length, room):
            if "Classify" in self.decode(prefix):
                raise UsageError("too long")
            return super().open(prefix, rows, length, room)

    ledger = PrivacyLedger()
    with pytest.raises(UsageError, match="too long"):
        next(synthesize(dataset(), request().best_of(2), Short(), ledger, SeededRandomness(1)))
    assert ledger.history("d") == []


def test_public_text_that_it_is_compared_with_gets_as_many_tries(monkeypatch):
    made = loads(public(tries=3)[-1].demo_set.dumps())
    seen = []
    plain = Fidelity.best
    monkeypatch.setattr(Fidelity, "best", lambda self, *given: seen.append(given) or plain(self, *given))
    counterpart = public_demonstrations(made, ToyModel())
    assert [each.label for each in counterpart] == [each.label for each in made.demonstrations]
    [(written, kept)] = seen
    assert (len(written), kept) == (12, {"a": 2, "b": 2})
    assert of_demo_set(made).tries == tries_of(made) == 3
    assert tries_of(public(tries=1)[-1].demo_set) == 1


def test_a_hostile_file_asks_for_no_more_tries_than_a_run_could_have():
    made = public(tries=2)[-1].demo_set
    parameters = made.certificate.parameters | {"shots_per_label": 10**9}
    hostile = replace(made, certificate=replace(made.certificate, parameters=parameters))
    assert tries_of(loads(hostile.dumps())) == MOST_TRIES
