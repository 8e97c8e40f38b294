"""The workers of the Ray engine that live: hired, checked, and replaced when they are lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError

from mechanisms.errors import ModelUnavailable, StudioError
from mechanisms.inference.ray.worker import Facts

_START_SECONDS = 900.0
"""How long a worker may take to find its place in the cluster and to load the model."""

_DEATHS = 3
"""Workers that may die one after another while they load the model, before no more are hired in their place."""


class WorkerPool:
    """Workers that hold the model.

    Args:
        start: asks Ray for one more worker; returns its handle at once.
        count: how many workers to have.
        expected: what every worker must have in common with this process.

    Raises:
        ModelUnavailable: a worker could not start, or holds another model.
    """

    def __init__(self, start: Callable[[], Any], count: int, expected: Facts) -> None:
        self._start, self._expected = start, expected
        self._living: list[Any] = []
        self._starting: dict[Any, Any] = {}
        self._trouble: StudioError | None = None
        self._turn = self._deaths = 0
        for _ in range(count):
            self._hire()
        while self._admit(_START_SECONDS):
            pass
        if len(self._living) < count:
            raise self._trouble or ModelUnavailable(
                f"Only {len(self._living)} of {count} workers found a place in the Ray cluster: set DPICL_RAY_WORKERS."
            )

    def __len__(self) -> int:
        return len(self._living)

    def next(self) -> Any:
        """A living worker, each in its turn; waits for a replacement where none lives.

        Raises:
            ModelUnavailable: none lives and none can be started.
        """
        self._admit(0.0)
        while not self._living and self._admit(_START_SECONDS):
            pass
        if not self._living:
            raise self._trouble or ModelUnavailable("Every worker of the Ray engine was lost: look after the cluster.")
        self._turn += 1
        return self._living[self._turn % len(self._living)]

    def lose(self, worker: Any) -> None:
        """A worker does not answer: give it up, so that it keeps nothing, and ask for another one."""
        if worker in self._living:
            self._living.remove(worker)
            _kill(worker)
            self._hire()

    def _hire(self) -> None:
        worker = self._start()
        self._starting[worker.facts.remote()] = worker

    def _admit(self, seconds: float) -> bool:
        """Take in a worker that has loaded the model, waiting not longer than `seconds`; whether anything happened."""
        if not self._starting:
            return False
        ready, _ = ray.wait(list(self._starting), num_returns=1, timeout=seconds)
        for reference in ready:
            worker = self._starting.pop(reference)
            try:
                self._check(ray.get(reference))
                self._living.append(worker)
                self._deaths = 0
            except StudioError as error:
                self._trouble = error
                _kill(worker)
            except RayError:
                self._trouble = ModelUnavailable(
                    "Workers of the Ray engine die while they load the model: have they enough memory?"
                )
                self._deaths += 1
                if self._deaths < _DEATHS:
                    self._hire()
        return bool(ready)

    def _check(self, facts: Facts | StudioError) -> None:
        if isinstance(facts, StudioError):
            raise facts
        if facts != self._expected:
            raise ModelUnavailable(
                "A worker of the Ray engine has another model, precision, device or version of this software than "
                "this process: make them equal on every machine."
            )


def _kill(worker: Any) -> None:
    with suppress(RayError, ValueError):
        ray.kill(worker)
