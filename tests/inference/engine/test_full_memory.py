"""Memory that runs out while the model computes is told in one line."""

from __future__ import annotations

import pytest
import torch

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.engine.memory import report_out_of_memory

ERRORS = (
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried"),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_memory_that_runs_out_is_one_line(random_model, monkeypatch, error):
    def full(*_):
        raise error

    session = random_model.open([5], [[300]] * 8, 5, 2)
    monkeypatch.setattr(session, "_forward", full)
    for work in (lambda: session.advance([300] * 8), lambda: session.score([300, 301])):
        with pytest.raises(ModelUnavailable, match="memory of this machine ran out") as told:
            work()
        assert "\n" not in str(told.value)
    monkeypatch.setattr(session, "_forward", None)  # another fault is nobody's memory
    with pytest.raises(TypeError):
        session.advance([300] * 8)


def test_a_real_allocation_that_is_too_large_is_one_of_them():
    with pytest.raises(ModelUnavailable, match="ran out"), report_out_of_memory():
        torch.empty(2**60, dtype=torch.uint8)
