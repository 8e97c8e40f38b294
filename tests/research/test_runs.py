"""Texts as they come from a run that writes token by token: none is refused, completed or left out."""

from __future__ import annotations

import pytest

from mechanisms.records import Dataset, Record
from mechanisms.runs.events import TokenReleased
from mechanisms.runs.text import Gate
from mechanisms.steps.noisy_vector import AS_RELEASED
from research import runs
from research.runs import texts_planned, texts_written
from tests.runs.running import Speaking
from tests.toy_model import VOCABULARY

LABELS = ("Red", "two_words")
TOKENS, SHOTS = 4, 3


@pytest.fixture
def data():
    return Dataset("data", LABELS, [Record(f"row {number}", label) for label in LABELS for number in range(20)])


@pytest.fixture
def plans(monkeypatch):
    """The plans that are run."""
    found, drive = [], runs.drive

    def watched(plan, *given):
        found.append(plan)
        return drive(plan, *given)

    monkeypatch.setattr(runs, "drive", watched)
    return found


def written(data, mechanism, model=None, **asked):
    model = model or Speaking(sharpness=1.0, busy=10**6)
    return texts_written(
        data,
        model,
        mechanism=mechanism,
        **{"epsilon": 8.0, "shots": SHOTS, "tokens": TOKENS, "subsets": 10, "candidates": 8} | asked,
    )


@pytest.mark.parametrize("mechanism", ["public", "non-private"])
def test_every_text_is_there_and_has_no_word_beyond_its_tokens(data, mechanism):
    made = written(data, mechanism)
    assert [each.label for each in made.demonstrations] == [label for label in LABELS for _ in range(SHOTS)]
    assert all(1 <= len(each.text.split()) <= TOKENS for each in made.demonstrations)


class Gibberish(Speaking):
    """Its tokens are signs, which the gate takes for no text."""

    def _word(self, token: int) -> str:
        return "#*+"[token % 3] * (1 + token // 3)


def test_what_is_no_text_is_not_refused(data):
    model = Gibberish(sharpness=1.0, busy=10**6)
    made = written(data, "non-private", model)
    assert len(made.demonstrations) == len(LABELS) * SHOTS
    assert all(Gate(model).reason(each.text) for each in made.demonstrations)


@pytest.mark.slow
def test_noise_is_read_as_it_was_released_and_the_claim_is_the_runs(data, plans):
    made = written(data, "gaussian", transform="pta", parameters={"base": False})
    [plan] = plans
    mechanism, spec = plan.mechanism, plan.spec
    assert (mechanism.temperature, mechanism.top_p, mechanism.prior_deviation) == (0, 1, AS_RELEASED)
    assert (spec.candidate_top_p, spec.min_tokens, plan.transform.base) == (1, 0, False)
    assert 7.5 < made.epsilon <= 8
    assert made.epsilon == plan.claim().epsilon


def test_labels_are_called_by_their_names(data, plans):
    written(data, "public", sentence="A {label}")
    assert [plans[0].spec.wording.sentence_for(label) for label in LABELS] == ["A Red", "A two_words"]


def test_the_whole_vocabulary_may_come_next_at_the_same_price(data, monkeypatch):
    seen, drive = [], runs.drive

    def watched(*given):
        for event in drive(*given):
            if isinstance(event, TokenReleased):
                seen.append(len(event.candidates))
            yield event

    monkeypatch.setattr(runs, "drive", watched)
    written(data, "non-private")
    assert max(seen) == 8
    seen.clear()
    written(data, "non-private", candidates=None)
    assert min(seen) > VOCABULARY - 20  # but for what would end the text blank, or say it again
    noise = {"mechanism": "gaussian", "parameters": {"noise-multiplier": 2.0}, "solve": False, "tokens": TOKENS}
    few, all_ = (texts_planned(data, **noise, candidates=each) for each in (8, None))
    assert few.event == all_.event
    assert few.mechanism.noise_multiplier == 2
