"""The device: memory that runs out (smaller passes with the same numbers, then one line), and its threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference.engine import device
from mechanisms.inference.engine.device import (
    Threads,
    compute_in_one_thread,
    computing,
    fixed_threads,
    report_out_of_memory,
    threads_said,
)
from mechanisms.inference.engine.forward import ForwardPass
from mechanisms.inference.engine.transformers_model import TransformersModel, TransformersSession
from mechanisms.inference.models.catalogue import load_model
from tests.inference.engine.test_slots import EDGES, LENGTH, alike, model_with
from tests.small_model import small_model

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
    monkeypatch.setattr(device, "release_freed_memory", lambda: None)


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


@pytest.fixture
def threads():
    """The present number, which comes back."""
    before = torch.get_num_threads()
    yield before
    torch.set_num_threads(before)


def test_every_busy_neighbour_costs_a_thread_until_it_is_gone(monkeypatch, threads):
    """Looked at once a second; a small load moves nothing, in either direction."""
    machine, cores = SimpleNamespace(now=0.0, others=0.0), 4
    monkeypatch.setattr(device.time, "monotonic", lambda: machine.now)
    monkeypatch.setattr(device.psutil, "cpu_percent", lambda: 100 * (1 + machine.others / cores))
    monkeypatch.setattr(device.psutil, "Process", lambda: SimpleNamespace(cpu_percent=lambda: 100 * cores))
    load, seen = Threads(cores, cores), []
    told = ((1, 2), (2, 0.4), (2, 1.1), (0.3, 2), (0.1, 2), (0.35, 2), (1, 2), (7, 2), (0, 2))
    for machine.others, seconds in told:
        machine.now += seconds
        load.settle()
        seen.append(torch.get_num_threads())
    assert seen == [3, 3, 2, 3, 4, 4, 3, 1, 4]


def test_what_is_set_or_said_holds(monkeypatch, threads):
    for name in (device.THREADS, "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert threads_said() is None
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads_said() == threads, "the library has read it"
    monkeypatch.setenv(device.THREADS, str(threads + 1))
    assert threads_said() == fixed_threads() == threads + 1
    for wrong in ("0", "-1", "two", "1.5"):
        monkeypatch.setenv(device.THREADS, wrong)
        with pytest.raises(UsageError, match=device.THREADS):
            threads_said()


def test_a_model_follows_the_load_unless_a_number_is_set(monkeypatch, threads):
    for name in (device.THREADS, "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert load_model(small_model()).threads is device.threads_by_load()
    assert load_model(small_model(), threads).threads is None
    monkeypatch.setenv(device.THREADS, str(threads + 1))
    assert load_model(small_model()).threads is None
    assert torch.get_num_threads() == threads + 1


class Switching:
    """One thread and two in turn, from one session to the next."""

    def settle(self):
        torch.set_num_threads(3 - torch.get_num_threads())


@pytest.mark.parametrize("count", [7, 9])
def test_rows_stay_alike_when_the_number_of_threads_changes(random_model, monkeypatch, threads, count):
    """Kernels with blocks of four rows on one thread, and of six on two: a session keeps the number it began with."""

    def edge(rows):
        blocks = 2 + 2 * torch.get_num_threads()
        return slice(rows // blocks * blocks, rows)

    model = model_with(edge, random_model.tokenizer)
    model.threads = Switching()
    torch.set_num_threads(1)
    for _ in range(2):
        session = model.open([5], [[300, 301]] * count, LENGTH, 3)
        number = torch.get_num_threads()
        model.open([5], [[1]], LENGTH, 3)
        assert torch.get_num_threads() != number
        session.advance([9] * count)
        logits = session.logits()
        assert torch.get_num_threads() == number
        assert (logits == logits[0]).all()
        Switching().settle()


def test_every_thread_computes_until_one_is_to(random_model, monkeypatch):
    """Sessions of two threads have the same numbers either way, and one pass at a time."""
    passed, plain = list[str](), ForwardPass.__call__

    def noted(self, chunk):
        passed.append(threading.current_thread().name)
        return plain(self, chunk)

    def written(first):
        session = random_model.open([5], [[first, 301]] * 3, LENGTH, 3)
        session.advance([9] * 3)
        return session.logits()

    monkeypatch.setattr(ForwardPass, "__call__", noted)
    with ThreadPoolExecutor(2, "handler") as handlers:
        before = [*handlers.map(written, [300, 310])]
        assert all(each.startswith("handler") for each in passed)
        passed.clear()
        compute_in_one_thread()
        after = [*handlers.map(written, [300, 310])]
    assert {*passed} == {"computing"}
    assert np.array_equal(before, after)


def test_all_that_a_model_and_its_sessions_compute_is_computed_there():
    methods = [TransformersModel.open, TransformersModel.alike]
    methods += [getattr(TransformersSession, name) for name in ("advance", "keep", "logits", "score", "scores")]
    assert {each.__code__ for each in methods} == {computing(len).__code__}


def test_what_computes_may_ask_for_more_and_its_errors_come_through():
    compute_in_one_thread()
    inner = computing(lambda: threading.current_thread().name)
    assert computing(lambda: (inner(), threading.current_thread().name))() == ("computing", "computing")
    with pytest.raises(ModelUnavailable, match="here"):
        computing(lambda: (_ for _ in ()).throw(ModelUnavailable("here")).__next__())()
    assert inner() == "computing", "an error ends nothing"
