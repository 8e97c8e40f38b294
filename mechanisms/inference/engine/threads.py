"""How many threads torch computes with on a CPU: as many as other processes leave cores free.

Threads meet at a barrier after every operation. One that has lost its core to another process keeps the others waiting
each time, so that on a busy machine fewer threads are faster.

What this process computes itself is taken out of the reading, so that the number follows from what other processes do
(docs/engine.md).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from threading import Lock

import psutil
import torch

from mechanisms.errors import UsageError

SETTING = "DPICL_THREADS"
_OF_LIBRARIES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_RESTING = ("idle", "iowait", "guest", "guest_nice")
"""Times of the machine that are not work, or are counted twice: a guest's time is also user time."""
_EVERY, _STALE, _GLANCE = 1.0, 20.0, 0.2
"""Seconds: between two readings; after which a reading is too old; that a fresh reading then takes."""
_SPARE, _FREED = 0.4, 0.2
"""How much of a core others may use before a thread is given up, and before one is taken back. A process that wants a
whole core gets half of one or more beside as many threads as cores."""


def seconds_of_other_processes() -> float:
    """Seconds that the machine's cores together have spent on other processes, from an arbitrary start.

    Children of this process count as others, and so does time that a hypervisor gives to other machines.
    """
    machine, own = psutil.cpu_times(), psutil.Process().cpu_times()
    resting = sum(getattr(machine, name, 0.0) for name in _RESTING)
    return float(sum(machine) - resting - own.user - own.system)


class Threads:
    """Sets torch's number of threads.

    Args:
        most: threads that are enough when nothing else is running.
        cores: of the machine.
        others, clock, sleep: how the load and time are read, and how time passes.
    """

    def __init__(
        self,
        most: int,
        cores: int,
        others: Callable[[], float] = seconds_of_other_processes,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._most = self._number = most
        self._cores, self._others, self._clock, self._sleep = cores, others, clock, sleep
        self._lock = Lock()
        self._last = clock(), others()

    def settle(self) -> None:
        """Set the number of threads for the calling thread; reads the load once a second."""
        with self._lock:
            elapsed = self._clock() - self._last[0]
            if elapsed > _STALE:  # the average over a long pause
                self._last = self._clock(), self._others()
                self._sleep(_GLANCE)
            if elapsed > _EVERY:
                (before, others), self._last = self._last, (self._clock(), self._others())
                free = self._cores - (self._last[1] - others) / (self._last[0] - before)
                least, most = int(free + _FREED), int(free + _SPARE)
                self._number = max(1, min(max(self._number, least), most, self._most))
        if torch.get_num_threads() != self._number:
            torch.set_num_threads(self._number)


@cache
def threads_by_load() -> Threads:
    """The one instance of this process. A second one would start from the number that the first has set."""
    return Threads(torch.get_num_threads(), psutil.cpu_count() or 1)


def configured_thread_count() -> int | None:
    """The number that the environment fixes; None where it may follow the load.

    Raises:
        UsageError: `DPICL_THREADS` is not a number of threads.
    """
    text = os.environ.get(SETTING)
    if text:
        if not (text.isascii() and text.isdigit() and int(text)):
            raise UsageError(f"{SETTING} must be a whole number from 1 on: the number of threads.")
        return int(text)
    return torch.get_num_threads() if any(os.environ.get(name) for name in _OF_LIBRARIES) else None


def prepared(number: int | None) -> Threads | None:
    """Threads that follow the load from now on; None if torch has a fixed number, by default the environment's."""
    number = number or configured_thread_count()
    if number is None:
        return threads_by_load()
    torch.set_num_threads(number)
    return None


def fixed_thread_count() -> int:
    """The number of threads for work whose bits are compared: the environment's, or torch's."""
    return configured_thread_count() or torch.get_num_threads()
