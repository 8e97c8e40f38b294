"""The picture of a run's noise: of public distributions alone, with the noise that the run would have."""

from __future__ import annotations

from typing import Any

import pytest

from dpicl_ui.privacy.cards import Expectation, Expected, expected, picture
from dpicl_ui.privacy.step import PrivacyStep
from mechanisms.asking import Asked
from mechanisms.inference import WritingPrompt
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import OPENINGS
from tests.baselines.toys import SpeakingModel
from tests.ui.data.tab import TAB
from tests.ui.privacy.test_cards import plan
from tests.ui.privacy.test_form import DATASET, values
from tests.ui.tabs import confirm, lend

OF = Expected("a", (("Dear", 0.5), ("Hello", 0.25)), (("sir", 0.75), ("clinic", 0.125)))


class Asking(SpeakingModel):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts: list[list[int]] = []

    def open(self, prefix: Any, rows: Any, *rest: Any) -> Any:
        self.prompts += [[*prefix, *row] for row in rows]
        return super().open(prefix, rows, *rest)


def test_the_model_is_asked_twice_with_public_words_alone():
    model, asked = Asking(), Asked("message", "a fan")
    found = expected(model, asked, "a")
    prompt = WritingPrompt(model, asked, "a")
    first, behind = model.prompts
    assert first == [*prompt.prefix, *prompt.cue]
    assert behind[:-1] == first
    assert model.decode(behind[-1:]).strip() == found.openings[0][0]
    for shares in (found.openings, found.next):
        assert 0 < sum(share for _, share in shares) <= 1
        assert [*shares] == sorted(shares, key=lambda each: -each[1])
        assert all(word.isalpha() for word, _ in shares)


def test_bars_are_of_the_rows_that_would_speak_and_noise_is_the_plans():
    made = plan(recipe="both")
    openings, token = picture(made, OF)["groups"]
    voters, rows = made.units(OPENINGS), made.sampling.subsets
    assert made.stages[OPENINGS].by_label is False
    assert [bar["value"] for bar in openings["bars"]] == pytest.approx([voters / 2, voters / 4])
    assert openings["noise"][2] == [1.0, made.stages[OPENINGS].tally.deviation]
    assert [bar["value"] for bar in token["bars"]] == pytest.approx([0.75 * rows, rows / 8])
    sensitivity = made.mechanism.sensitivity(made.sampling.unit_rows).bound
    assert token["noise"][2] == [1.0, pytest.approx(sensitivity * made.mechanism.noise_multiplier)]


def test_the_picture_knows_less_noise_at_more_epsilon_and_needs_no_calibration_for_it(monkeypatch):
    made, other = plan(recipe="both"), plan(recipe="both", epsilon=0.3)
    monkeypatch.setattr(Plan, "calibrated", lambda self: pytest.fail("this takes seconds"))
    shown = picture(made, OF)["groups"]
    for group in shown:
        assert [epsilon for epsilon, _ in group["noise"]] == [0.1, 0.3, 1.0, 3.0, 10.0]
        assert [noise for _, noise in group["noise"]] == sorted({noise for _, noise in group["noise"]}, reverse=True)
    assert shown[0]["noise"][1] == [0.3, other.stages[OPENINGS].tally.deviation]


def test_step_2_draws_it_once_the_model_was_asked_and_asks_it_once(step: PrivacyStep, monkeypatch):
    session, model = step._app.session(TAB), SpeakingModel()
    confirm(session, DATASET)
    *_, last = step._recalculate(values(step), TAB)
    assert last[step.noise] is None
    lend(step, loader=type("Loader", (), {"model": lambda self: model, "speed": None})())
    assert step._expect(TAB)[step.noise]["epsilon"] == 1.0
    monkeypatch.setattr("dpicl_ui.privacy.cards.expected", lambda *_: pytest.fail("asked again"))
    assert step._expect(TAB)[step.noise] is not None
    *_, last = step._recalculate(values(step, epsilon=2.0), TAB)
    assert last[step.noise]["epsilon"] == 2.0
    *_, last = step._recalculate(values(step, epsilon=None), TAB)
    assert last[step.noise] is None
    assert session.of(Expectation).found is not None
