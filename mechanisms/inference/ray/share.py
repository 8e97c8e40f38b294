"""Rows of a session that one worker computes, and what it takes to compute them again on another."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError

from mechanisms.errors import ModelUnavailable, StudioError
from mechanisms.inference.ray.pool import WorkerPool
from mechanisms.inference.ray.worker import Missing, pieces

_ATTEMPTS = 5
"""Workers that may be lost over one question before the rows are taken for the cause."""
_keys = itertools.count()


@dataclass(frozen=True)
class Question:
    """Something asked of a worker about its session `key`, and the references of the answer."""

    worker: Any
    key: int
    method: str
    arguments: tuple[Any, ...]
    size: int
    answer: Any


class Share:
    """A worker's part of a session. The calls that made it what it is are kept in this process's memory alone."""

    def __init__(self, pool: WorkerPool, rows: int) -> None:
        self.rows = rows
        self._pool = pool
        self._calls: list[tuple[str, tuple[Any, ...]]] = []
        self._seat()

    def _seat(self) -> None:
        self._worker, self._key, self._sent = self._pool.next(), next(_keys), 0

    def tell(self, method: str, *arguments: Any) -> None:
        """Change the session; returns before that is done, and a failure shows when something is asked."""
        self._calls.append((method, arguments))
        self._send()

    def ask(self, method: str, *arguments: Any, size: int) -> Question:
        """Ask for an answer of `size` bytes, without waiting for it."""
        self._send()
        count = pieces(size)
        remote = getattr(self._worker, method).options(num_returns=1 + count).remote
        answer = remote(self._key, len(self._calls), count, *arguments)
        return Question(self._worker, self._key, method, arguments, size, answer)

    def answer(self, question: Question) -> bytes:
        """Wait for an answer; where the worker is lost, another one is told everything again and asked.

        Raises:
            StudioError: the worker's, or `ModelUnavailable` where no worker can answer.
        """
        for _ in range(_ATTEMPTS):
            try:
                problem, *parts = ray.get(question.answer)
            except RayError:  # its text goes no further: who knows what it quotes
                self._pool.lose(question.worker)
                problem = Missing()
            if problem is None:
                return b"".join(parts)
            if isinstance(problem, StudioError):
                raise problem
            if question.key == self._key:  # an earlier question may have moved the rows already
                self._close()
                self._seat()
            question = self.ask(question.method, *question.arguments, size=question.size)
        raise ModelUnavailable(f"{_ATTEMPTS} workers of the Ray engine were lost one after another: use fewer rows.")

    def _send(self) -> None:
        for method, arguments in self._calls[self._sent :]:
            getattr(self._worker, method).options(num_returns=0).remote(self._key, *arguments)
        self._sent = len(self._calls)

    def _close(self) -> None:
        with suppress(RayError):
            self._worker.close.options(num_returns=0).remote(self._key)

    def __del__(self) -> None:
        if ray.is_initialized():
            self._close()
