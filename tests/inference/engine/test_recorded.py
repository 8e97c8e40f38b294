"""A recorded step says what the step itself says; recording is replaced here by doing it again, which needs no GPU."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.inference.engine import attention, forward
from mechanisms.inference.engine.forward import ForwardPass
from mechanisms.inference.engine.recorded import RecordedStep


def again(work):
    result = work().clone()
    return lambda: result.copy_(work()), result


def beginning(work):
    """A recording that was made and says nothing later."""
    return lambda: None, work() * 0


def impossible(work):
    raise RuntimeError("CUDA error: operation not permitted when stream is capturing")


@pytest.fixture
def recording(random_model, monkeypatch):
    """Record as told; a list of the shapes that were recorded."""
    made = []

    def record(how):
        def step(features, layers):
            made.append(tuple(layers[0][0].shape))
            return RecordedStep(features, layers, how)

        monkeypatch.setattr(attention, "RecordedStep", step)
        monkeypatch.setattr(forward, "CUDA", "cpu")
        return made

    return record


def walk(model):
    """Rows of several lengths behind a prefix: steps, a score that steps back, another step, and some rows kept."""
    session = model.open([5, 6], [[30 + row] * (row % 4 + 1) for row in range(7)], 4, 6)
    seen = [session.logits()]
    for step in range(3):
        session.advance(range(40 + step, 47 + step))
        seen.append(session.logits())
    seen.append(session.score([7, 8, 9]))
    session.advance([9] * 7)
    seen.append(session.logits(np.arange(20)))
    session.keep([3, 1])
    session.advance([4, 5])
    return [*seen, session.logits()]


def test_a_session_of_recorded_steps_says_the_same(random_model, recording, monkeypatch):
    plain = walk(random_model)
    made = recording(again)
    monkeypatch.setattr(random_model.forward, "records", True)
    for mine, other in zip(walk(random_model), plain, strict=True):
        np.testing.assert_allclose(mine, other, atol=0.05)
    assert len(made) == 2  # once for all steps of a batch, and once for the rows that were kept


@pytest.mark.parametrize(("how", "records"), [(again, True), (beginning, False), (impossible, False)])
def test_a_model_records_where_a_recording_says_what_the_step_says(random_model, recording, how, records):
    recording(how)
    assert ForwardPass(random_model.model).records is records


def test_nothing_is_recorded_on_a_cpu(random_model):
    assert not ForwardPass(random_model.model).records
