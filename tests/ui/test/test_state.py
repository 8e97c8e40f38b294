"""Which set is under test, and whose figures are on the screen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpicl_ui.frame.sessions import Session
from dpicl_ui.generate.state import GenerateState
from dpicl_ui.test.state import TestState, gate
from mechanisms.demos.findings import Choice
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PRIVATE, PUBLIC_ONLY, ZERO_SHOT
from mechanisms.records import Demonstration
from tests.toy_model import ToyModel
from tests.ui.generate.recording import demo_set
from tests.ui.privacy.test_form import DATASET
from tests.ui.tabs import write
from tests.ui.test_cards import scorecard

MADE, LOADED = demo_set(Demonstration("made", "News")), demo_set(Demonstration("loaded", "News"))


@pytest.fixture
def session() -> Session:
    tab = Session()
    write(tab, MADE, DATASET)
    return tab


def test_a_loaded_set_is_tested_until_a_later_run_writes(session: Session):
    state, generate = session.of(TestState), session.of(GenerateState)
    assert state.tested is MADE
    state.load(LOADED)
    run = generate.begin()
    assert state.tested is LOADED  # it has written nothing yet
    generate.written = run
    assert (state.loaded, state.tested) == (None, MADE)
    state.load(LOADED)
    assert state.tested is LOADED


def test_figures_belong_to_the_set_they_were_measured_on(session: Session):
    state = session.of(TestState)
    scored = state.score(MADE, ("clinic",), DATASET, ())
    assert not gate(session).done
    state.show(scored.with_card(scorecard(ZERO_SHOT)))
    assert gate(session).done
    assert state.scored is not None
    assert state.scored.owners == ("clinic",)
    state.load(LOADED)
    assert state.scored is None
    assert not gate(session).done


def test_a_set_without_demonstrations_has_an_arm_only_where_that_was_chosen(session: Session):
    state, empty = session.of(TestState), demo_set()
    with pytest.raises(UsageError, match="nothing to test"):
        state.arms(empty, ToyModel())
    [arm] = state.arms(replace(empty, choice=Choice(3, "none", "prior")), ToyModel())
    assert arm.name == ZERO_SHOT


def test_public_demonstrations_are_written_once_for_a_set(session: Session):
    state = session.of(TestState)
    models = [ToyModel() for _ in range(3)]
    first, again, _ = (state.arms(of, model) for of, model in zip((MADE, MADE, LOADED), models, strict=True))
    assert first == again
    assert [arm.name for arm in first] == [ZERO_SHOT, PUBLIC_ONLY, PRIVATE]
    assert [bool(model.opened) for model in models] == [True, False, True]


def test_another_model_reads_without_the_writers_correction_and_writes_its_own_public_ones(session: Session):
    state, other = session.of(TestState), ToyModel(sharpness=1.0)
    other.sha256 = "1" * 64
    measured = replace(MADE, prior={"News": 1.0, "Sport": 0.0})
    written, read = state.arms(measured, ToyModel()), state.arms(measured, other)
    assert (written[-1].prior, read[-1].prior) == (measured.prior, None)
    assert other.opened  # two models may write the same three letters, once in 3,000 times
    assert [arm.name for arm in written] == [arm.name for arm in read]
