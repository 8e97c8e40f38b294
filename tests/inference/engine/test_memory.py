"""Memory that runs out: smaller passes with the same numbers, then one line."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import LlamaConfig

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.engine import memory
from mechanisms.inference.engine.memory import report_out_of_memory
from mechanisms.inference.engine.transformers_model import TransformersModel, TransformersSession
from tests.inference.engine.test_slots import EDGES, LENGTH, alike, model_with

pytestmark = pytest.mark.slow

ERRORS = (
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("CUDA error: out of memory"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("MPS backend out of memory (MPS allocated: 9.00 GB, other allocations: 1.00 GB)"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried"),
)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Giving memory back takes part of a second each time."""
    monkeypatch.setattr(memory, "release_freed_memory", lambda: None)


@pytest.mark.parametrize(
    ("hidden", "inner", "layers", "positions"),
    [(576, 1536, 30, 4096), (896, 4864, 24, 1314), (1536, 8960, 28, 1024), (4096, 14336, 32, 1024)],
    ids=["135M", "0.5B", "1.5B", "7B"],
)
def test_a_pass_of_a_large_model_on_a_cpu_has_fewer_positions(monkeypatch, hidden, inner, layers, positions):
    monkeypatch.setattr(memory, "total_memory", lambda: 2**36)
    config = LlamaConfig(hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers)
    room = memory.DeviceRoom.of(SimpleNamespace(config=config, dtype=torch.float32, device=torch.device("cpu")))
    assert room.at_once == positions


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


def walk(model, count: int) -> list[np.ndarray]:
    """What a session says of different rows, from the first pass on."""
    session = model.open([5], [[300 + row] for row in range(count)], LENGTH, 2)
    seen = [session.logits()]
    session.advance(range(400, 400 + count))
    return [*seen, session.logits(), session.score([7, 6])]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: str(error)[:20])
def test_passes_become_smaller_and_say_the_same(random_model, error):
    model = model_with(EDGES["single tokens"], random_model.tokenizer)
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
    model, advance = model_with(EDGES[name], random_model.tokenizer), TransformersSession.advance
    machine = Machine(model, first)

    def then_full(session, tokens):
        machine.fits = fits
        advance(session, tokens)

    monkeypatch.setattr(TransformersSession, "advance", then_full)
    assert alike(model, count)
    assert any(not fits(*shape) for shape in machine.asked)


@pytest.mark.parametrize("per_chunk", [None, 4])
def test_memory_that_stays_full_is_one_line(random_model, per_chunk):
    """After two tries; a share of a batch has none, since another worker computes the rest in the usual shape."""
    model = model_with(EDGES["every"], random_model.tokenizer)
    session = TransformersSession(model, [5], [[300]] * 8, LENGTH, 2, model.room, per_chunk)
    session._forward = machine = Machine(model, lambda rows, positions: False)
    with pytest.raises(ModelUnavailable, match="memory of this machine ran out") as told:
        session.advance([300] * 8)
    assert "\n" not in str(told.value)
    assert len(machine.asked) == (3 if per_chunk is None else 1)
    session._forward = None  # another fault is nobody's memory
    with pytest.raises(TypeError):
        session.advance([300] * 8)


def test_a_real_allocation_that_is_too_large_is_one_of_them():
    with pytest.raises(ModelUnavailable, match="ran out"), report_out_of_memory():
        torch.empty(2**60, dtype=torch.uint8)
