"""The line before the model: whose run is under way, which wait behind it, and for about how long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from dpicl_ui.generate.pace import Left, in_words
from dpicl_ui.generate.state import Run

_FREE_SOON = "Waiting for the model …"
"""Where no other run is before it: the model is free, or somebody tests with it or asks."""
_GIVEN_UP = "Given up: it ends when its turn comes, and nothing is spent"


class Line:
    """All runs on one server that were started and have not ended. What it tells of others' runs names nobody."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Run] = []
        self._under_way: Run | None = None
        self._left: tuple[Left | None, float] = None, 0.0

    def join(self, run: Run) -> None:
        """Wait behind all others."""
        with self._lock:
            self._waiting.append(run)

    def leave(self, run: Run) -> None:
        """Wait no longer, whether it did or not."""
        with self._lock:
            self._waiting = [each for each in self._waiting if each is not run]

    @contextmanager
    def turn(self, run: Run) -> Iterator[None]:
        """It is this run's turn; it has ended with the block."""
        self.leave(run)
        with self._lock:
            self._under_way, self._left = run, (None, 0.0)
        try:
            yield
        finally:
            run.ended.set()
            with self._lock:
                self._under_way = None

    def tell(self, left: Left | None, now: float) -> None:
        """What is left of the run under way, as far as that is known.

        Args:
            now: seconds of the clock that `words` is asked with.
        """
        with self._lock:
            self._left = left, now

    def words(self, run: Run, now: float) -> str | None:
        """What a run waits for, and its place among those that wait; None once it waits no longer."""
        with self._lock:
            waiting = [each for each in self._waiting if each is run or not each.stop.is_set()]
            under_way, (left, told) = self._under_way, self._left
        if run not in waiting:
            return None
        if run.stop.is_set():
            return _GIVEN_UP
        place = waiting.index(run)
        if under_way is None and place == 0:
            return _FREE_SOON
        remaining = replace(left, seconds=max(0.0, left.seconds - (now - told))) if left else None
        which = "yours is next" if place == 0 else f"yours is number {place + 1} of those that wait"
        return f"Another run is using the model{f', {in_words(remaining)}' if remaining else ''}; {which}"
