"""The threads that compute: how many, that they stand still for a whole run, and which one computes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.evaluation.classifier import Classifier
from mechanisms.inference.engine import threads as engine_threads
from mechanisms.inference.engine.forward import ForwardPass
from mechanisms.inference.engine.threads import (
    THREADS,
    Threads,
    compute_in_one_thread,
    computing,
    fixed_threads,
    threads_here,
    threads_said,
)
from mechanisms.inference.engine.transformers_model import TransformersModel, TransformersSession
from mechanisms.inference.models.embedder import SentenceEmbedder, load_embedder
from mechanisms.inference.models.loading import load_model
from mechanisms.records import PromptTemplate
from tests.inference.engine.test_slots import LENGTH
from tests.small_model import small_model

pytestmark = pytest.mark.slow

CORES = 4


@pytest.fixture
def number(monkeypatch):
    """The present number, which comes back; the environment says none."""
    before = torch.get_num_threads()
    for name in (THREADS, "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    threads_here.cache_clear()
    yield before
    threads_here.cache_clear()
    torch.set_num_threads(before)


@pytest.fixture
def machine(monkeypatch):
    """Four cores, of which other processes use `others`; time stands still unless `now` is moved."""
    machine = SimpleNamespace(now=0.0, others=0.0)
    monkeypatch.setattr(engine_threads.time, "monotonic", lambda: machine.now)
    monkeypatch.setattr(engine_threads.psutil, "cpu_percent", lambda: 100 * (1 + machine.others / CORES))
    monkeypatch.setattr(engine_threads.psutil, "Process", lambda: SimpleNamespace(cpu_percent=lambda: 100 * CORES))
    return machine


def test_every_busy_neighbour_costs_a_thread_until_it_is_gone(machine):
    """A small load moves nothing, in either direction, nor does a choice within a second of the last one."""
    load, seen = Threads(CORES, CORES), []
    told = ((1, 2), (2, 0.4), (2, 1.1), (0.3, 2), (0.1, 2), (0.35, 2), (1, 2), (7, 2), (0, 2))
    for machine.others, seconds in told:
        machine.now += seconds
        load.choose()
        seen.append(load.number)
    assert seen == [3, 3, 2, 3, 4, 4, 3, 1, 4]
    load.fix(2)
    machine.now += 9
    load.choose()
    assert load.number == 2


def test_what_is_set_or_said_holds(monkeypatch, number):
    assert threads_said() is None
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads_said() == number, "the library has read it"
    monkeypatch.setenv(THREADS, str(number + 1))
    assert threads_said() == fixed_threads() == threads_here().number == number + 1
    for wrong in ("0", "-1", "two", "1.5"):
        monkeypatch.setenv(THREADS, wrong)
        with pytest.raises(UsageError, match=THREADS):
            threads_said()


def test_the_first_model_of_a_process_chooses_and_a_number_that_is_given_holds(monkeypatch, number):
    monkeypatch.setattr(Threads, "_others", lambda self: 7.0)
    assert load_model(small_model()).arithmetic.endswith(", 1 thread")
    monkeypatch.setattr(Threads, "_others", lambda self: 0.0)
    assert load_model(small_model()).arithmetic.endswith(", 1 thread"), "a run may be at work"
    assert load_model(small_model(), number + 1).arithmetic.endswith(f", {number + 1} threads")
    assert computing(torch.get_num_threads)() == number + 1


@pytest.fixture
def uneasy(machine, number, monkeypatch):
    """Each time that a machine is looked at, its other processes have changed; a number has been chosen."""

    def others():
        machine.now, machine.others = machine.now + 2, CORES - 1 - machine.others
        return 100 * (1 + machine.others / CORES)

    monkeypatch.setattr(engine_threads.psutil, "cpu_percent", others)
    monkeypatch.setattr(engine_threads, "cores", lambda: CORES)
    torch.set_num_threads(CORES)
    threads_here().choose()
    before = threads_here().number
    threads_here().choose()
    assert before != threads_here().number, "this schedule changes what is chosen"


def test_a_row_in_front_changes_no_other_rows_numbers_on_an_uneasy_machine(random_model, monkeypatch, uneasy):
    """With this model numbers depend on the threads, far more than with a real one."""
    plain = TransformersSession.scores
    monkeypatch.setattr(
        TransformersSession, "scores", lambda session, each: plain(session, each) * (1 + 0.1 * torch.get_num_threads())
    )
    texts = [f"one of many rows, and it is number {i}" for i in range(95)]
    labels = ["first one", "second one"]

    def read(rows):
        return Classifier(random_model, PromptTemplate("Sort.", "Text", "Label"), labels, ()).log_probabilities(rows)

    assert np.array_equal(read(["a row in front", *texts])[1:], read(texts))


def test_all_texts_are_embedded_with_one_number_of_threads(monkeypatch, uneasy):
    embedder, seen = load_embedder(), []
    assert isinstance(embedder, SentenceEmbedder)
    plain = embedder._model

    def noted(**tokens):
        seen.append(torch.get_num_threads())
        return plain(**tokens)

    monkeypatch.setattr(embedder, "_model", noted)
    for text in ("one", "two", "three"):
        torch.set_num_threads(CORES - len(seen))  # somebody else's doing
        embedder.embed([text])
    assert seen == [threads_here().number] * 3


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
