"""The number of computing threads, fixed for a whole run, and the one thread of a server that starts them.

Threads meet at a barrier after every operation, and a thread that has lost its core to another process delays the
others. So fewer threads are faster on a busy machine (docs/engine.md). But a row's numbers depend on the number of
threads: if it changed between two batches, an inserted row could move another row into the next batch and change that
row's numbers. So a process chooses the number once, when it loads its first model, and a server once before each run.
This process's own load is subtracted, so the number depends only on other processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial, wraps
from queue import SimpleQueue
from threading import Lock, Thread, local
from typing import Any, ParamSpec, TypeVar

import psutil
import torch

from mechanisms.errors import UsageError
from mechanisms.inference.engine.limits import cores
from mechanisms.inference.engine.memory import keep_freed_memory

_P = ParamSpec("_P")
_T = TypeVar("_T")

THREADS = "DPICL_THREADS"
_OF_LIBRARIES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_EVERY = 1.0
"""Seconds that a reading of the load covers at least."""
_SPARE, _FREED = 0.4, 0.2
"""The share of a core that others may use before the number of threads falls, and before it rises. A process that wants
a whole core gets half of one or more beside as many threads as cores."""


def threads_said() -> int | None:
    """The number of threads that the environment fixes; None if it fixes none.

    Raises:
        UsageError: `DPICL_THREADS` is not a number of threads.
    """
    text = os.environ.get(THREADS)
    if text and not (text.isascii() and text.isdigit() and int(text)):
        raise UsageError(f"{THREADS} must be a whole number from 1 on: the number of threads.")
    if text:
        return int(text)
    return torch.get_num_threads() if any(os.environ.get(name) for name in _OF_LIBRARIES) else None


def fixed_threads() -> int:
    """The number of threads for work with compared bits or times: the environment's, or torch's."""
    return threads_said() or torch.get_num_threads()


class Threads:
    """The number of computing threads of this process, at most `most`; only `choose` and `fix` change it.

    Attributes:
        number: None until it is chosen: torch's own number then counts.
    """

    def __init__(self, most: int, cores: int) -> None:
        self.number: int | None = None
        self._most, self._cores, self._fixed = most, cores, False
        self._process, self._lock = psutil.Process(), Lock()
        self._read = time.monotonic()
        self._others()

    def _others(self) -> float:
        """The cores that other processes used since the last call."""
        return float(self._cores * psutil.cpu_percent() - self._process.cpu_percent()) / 100

    def fix(self, number: int) -> None:
        """Set the number permanently."""
        self.number, self._fixed = number, True

    def choose(self) -> None:
        """Choose the number by the load of other processes since the last choice; no change after `fix`."""
        with self._lock:
            now, before = time.monotonic(), self.number or self._most
            if not self._fixed and (self.number is None or now - self._read > _EVERY):
                self._read, free = now, self._cores - self._others()
                self.number = max(1, min(max(before, int(free + _FREED)), int(free + _SPARE), self._most))


@cache
def threads_here() -> Threads:
    """The one instance of this process.

    Raises:
        UsageError: the environment's number of threads is invalid.
    """
    found = Threads(min(torch.get_num_threads(), cores()), psutil.cpu_count() or 1)
    if said := threads_said():
        found.fix(said)
    return found


# One computing thread.
#
# OpenMP keeps a team of threads for every thread that has computed. If all teams have more threads than there are
# cores, a team no longer spins between operations, and a pass takes 1.5 times as long (research/docs/engine.md). Each
# handler of a server runs in its own thread. Loading counts as computing: while transformers loads a model it sets
# torch's default dtype for the whole process, and nothing else may create tensors.

_Work = SimpleQueue[tuple[Future[Any], Callable[[], Any]]]
_one: list[_Work] = []
_here = local()


def compute_in_one_thread() -> None:
    """Make one thread of this process compute for all others, which wait for it."""
    if not _one:
        keep_freed_memory()  # a thread that has allocated memory before keeps its own arena
        _one.append(SimpleQueue())
        # A daemon: at its end the process must not wait for a model that is still loading.
        Thread(target=_compute, args=_one, name="computing", daemon=True).start()


def _compute(work: _Work) -> None:
    _here.computes = True
    while True:
        _answer(*work.get())


def _answer(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # of any kind: the caller waits for it
        future.set_exception(error)


def computing(work: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a function that computes: it uses the chosen number of threads, in the computing thread if any."""

    def here(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        if (number := threads_here().number) is not None and number != torch.get_num_threads():
            torch.set_num_threads(number)
        return work(*args, **kwargs)

    @wraps(work)
    def wherever(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        if not _one or hasattr(_here, "computes"):
            return here(*args, **kwargs)
        future: Future[_T] = Future()
        _one[0].put((future, partial(here, *args, **kwargs)))
        return future.result()

    return wherever
