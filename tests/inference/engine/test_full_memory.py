"""Memory that runs out: smaller passes with the same numbers and the same noise, then one line."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch

from mechanisms.accounting import PrivacyLedger
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference.engine import memory
from mechanisms.inference.engine.memory import report_out_of_memory
from mechanisms.inference.engine.transformers_model import TransformersModel, TransformersSession
from mechanisms.noise import SeededRandomness
from mechanisms.runs.events import TokenReleased
from tests.inference.engine.test_slots import EDGES, LENGTH, alike, model_with
from tests.runs import running

pytestmark = pytest.mark.slow

ERRORS = (
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried"),
)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Giving memory back takes part of a second each time."""
    monkeypatch.setattr(memory, "release_freed_memory", lambda: None)


class Machine:
    """A forward pass on a machine with memory for some shapes alone; remembers what was asked of it."""

    def __init__(self, model: TransformersModel, fits, error: Exception = ERRORS[0]) -> None:
        self._forward, self.fits, self.error = model.forward, fits, error
        self.asked: list[tuple[int, int]] = []
        model.forward = model.slots._forward = self

    def __call__(self, chunk):
        self.asked.append(tuple(chunk.tokens.shape))
        if not self.fits(*chunk.tokens.shape):
            raise self.error
        return self._forward(chunk)

    def __getattr__(self, name):
        return getattr(self._forward, name)


def first(rows: int, positions: int) -> bool:
    """No memory for a first pass of all rows."""
    return rows * positions <= 22


def steps(rows: int, positions: int) -> bool:
    """No memory for single tokens of all rows."""
    return positions > 1 or rows <= 4


def with_edges(random_model, name: str = "every") -> TransformersModel:
    return model_with(EDGES[name], random_model.tokenizer)


def walk(model, count: int) -> list[np.ndarray]:
    """What a session says of different rows, from the first pass on."""
    session = model.open([5], [[300 + row] for row in range(count)], LENGTH, 2)
    seen = [session.logits()]
    session.advance(range(400, 400 + count))
    return [*seen, session.logits(), session.score([7, 6])]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_passes_become_smaller_and_say_the_same(random_model, error):
    model = with_edges(random_model, "single tokens")
    usual = walk(model, 8)
    model.slots._known.clear()
    machine = Machine(model, first, error)
    for here, there in zip(walk(model, 8), usual, strict=True):
        np.testing.assert_allclose(here, there, atol=1e-4)
    assert any(not first(*shape) for shape in machine.asked)


@pytest.mark.parametrize(("name", "count"), [("every", 9), ("single tokens", 7), ("first pass", 7)])
@pytest.mark.parametrize("fits", [first, steps])
def test_equal_rows_stay_equal_in_smaller_passes(random_model, monkeypatch, name, count, fits):
    """Whatever the kernels do with the last rows of a pass, and whenever memory runs out."""
    model, advance = with_edges(random_model, name), TransformersSession.advance
    machine = Machine(model, first)

    def then_full(session, tokens):
        machine.fits = fits
        advance(session, tokens)

    monkeypatch.setattr(TransformersSession, "advance", then_full)
    assert alike(model, count)
    assert any(not fits(*shape) for shape in machine.asked)


def test_a_chunk_that_was_computed_before_memory_ran_out_is_computed_again(random_model, monkeypatch):
    """Otherwise its rows would have been through other passes than their equals of the next chunk."""
    model = with_edges(random_model)
    session = model.open([5], [[300]] * 8, LENGTH, 3)
    session._limit = 4
    session.keep(range(8))
    assert len(session._chunks) == 2
    asked, forward = [], session._forward

    def full_once(chunk):
        asked.append(chunk.rows)
        if len(asked) == 2:
            raise MemoryError
        return forward(chunk)

    monkeypatch.setattr(session, "_forward", full_once)
    session.advance([9] * 8)
    first, second, *again = asked
    assert first == second == 4
    assert len(set(again)) == 1
    assert sum(again) == 8
    logits = session.logits()
    assert (logits == logits[0]).all()


def tokens_of(model, randomness) -> tuple[list[str], int]:
    ledger, rows = PrivacyLedger(), running.data(running.rows(60))
    plan = running.planned(rows, running.alone())
    released = []
    with contextlib.suppress(UsageError):  # what random weights write is no sentence, so that nothing is kept
        for event in running.begun(rows, plan, model=model, ledger=ledger, randomness=randomness):
            if isinstance(event, TokenReleased):
                released.append(event.text)
    assert released
    with ledger.transaction() as database:
        [(charges,)] = database.execute("SELECT count(*) FROM charges").fetchall()
    return released, charges


class Counted(SeededRandomness):
    """Counts how often noise was asked for."""

    def __init__(self) -> None:
        super().__init__(3)
        self.drawn = 0

    def gaussian(self, *arguments):
        self.drawn += 1
        return super().gaussian(*arguments)


def test_a_run_whose_memory_runs_out_on_the_way_releases_the_same_and_draws_once(
    random_model, monkeypatch, tmp_path, any_text_passes
):
    model, seen = model_with(lambda rows: slice(0, 0), random_model.tokenizer), []
    for folder, every in (("usual", 0), ("full", 7)):
        monkeypatch.setenv("DPICL_HOME", str(tmp_path / folder))
        randomness, forward, calls = Counted(), model.forward, [0]
        monkeypatch.setattr(TransformersSession, "_rows_of_a_pass", failing(every, calls))
        tokens, charges = tokens_of(model, randomness)
        seen.append((tokens, charges, randomness.drawn))
        monkeypatch.undo()
        assert model.forward is forward
    assert calls[0] > 7
    assert seen[0] == seen[1]
    assert seen[0][2] > 0


def failing(every: int, calls: list[int]):
    own = TransformersSession._rows_of_a_pass

    def asked(session, rows, positions):
        calls[0] += 1
        if every and calls[0] % every == 0:
            raise MemoryError
        return own(session, rows, positions)

    return asked


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_memory_that_stays_full_is_told_in_one_line(random_model, error):
    model = with_edges(random_model)
    session = model.open([5], [[300]] * 8, LENGTH, 2)
    machine = Machine(model, lambda rows, positions: False, error)
    session._forward = machine
    for work in (lambda: session.advance([300] * 8), lambda: model.open([5], [[300]] * 8, LENGTH, 2)):
        machine.asked.clear()
        with pytest.raises(ModelUnavailable, match="memory of this machine ran out") as told:
            work()
        assert "\n" not in str(told.value)
        assert len(machine.asked) == 3
    session._forward = None  # another fault is nobody's memory
    with pytest.raises(TypeError):
        session.advance([300] * 8)


def test_a_share_of_the_rows_is_computed_in_passes_of_the_usual_shape_or_not_at_all(random_model):
    """Another worker has the rest of the batch, and its memory is not full."""
    model = with_edges(random_model)
    session = TransformersSession(model, [5], [[300]] * 8, LENGTH, 2, model.room, per_chunk=4)
    session._forward = machine = Machine(model, lambda rows, positions: rows < 4)
    with pytest.raises(ModelUnavailable, match="ran out"):
        session.advance([300] * 8)
    assert machine.asked == [(4, 1)]


def test_a_real_allocation_that_is_too_large_is_one_of_them():
    with pytest.raises(ModelUnavailable, match="ran out"), report_out_of_memory():
        torch.empty(2**60, dtype=torch.uint8)
