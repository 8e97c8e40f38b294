"""The workers of the Ray engine: what one does, which of them live, and the rows of a session that one computes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import ray
from ray.exceptions import RayError

from mechanisms import __version__
from mechanisms.errors import ModelUnavailable, StudioError
from mechanisms.inference.engine.memory import DeviceRoom, report_out_of_memory
from mechanisms.inference.engine.transformers_model import TransformersModel, TransformersSession
from mechanisms.inference.language_model import Session
from mechanisms.inference.models.catalogue import load_model
from mechanisms.noise import Floats

# What a worker of the Ray engine does: it holds the model, and the sessions of the rows that it was sent.
#
# Whatever is private travels as bytes in pieces small enough for Ray to put them into the message itself. Such
# messages go from process to process: they never enter the object store, which could spill to disk.

_PIECE = 64 * 2**10
"""Bytes of a piece; Ray puts up to 100 KiB into the message."""
LARGEST = 4 * 2**20
"""Bytes of a message in all; Ray puts up to 10 MiB into it."""

NO_TOKEN = -1
"""Padding of a row's tokens: what travels has a public size."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class Facts:
    """What driver and workers must have in common, so that rows come out the same wherever they are computed."""

    version: str
    sha256: str
    device: str
    dtype: str

    @classmethod
    def of(cls, model: TransformersModel) -> Facts:
        return cls(__version__, model.sha256, model.model.device.type, str(model.model.dtype))


@dataclass(frozen=True)
class Missing:
    """The worker does not hold the session in the state that it was asked about."""


@dataclass
class _Held:
    """A session as its calls have made it; before it is opened, the tokens of its rows."""

    calls: int = 0
    rows: bytearray = field(default_factory=bytearray)
    session: TransformersSession | None = None
    error: StudioError | None = None


def cut(data: bytes) -> list[bytes]:
    """Data as pieces, at least one."""
    return [data[i : i + _PIECE] for i in range(0, len(data), _PIECE)] or [b""]


def messages(data: bytes) -> list[list[bytes]]:
    """Data as messages of pieces."""
    return [cut(data[i : i + LARGEST]) for i in range(0, len(data), LARGEST)]


def pieces(size: int) -> int:
    """How many pieces data of a size makes."""
    return max(1, math.ceil(size / _PIECE))


def pack(numbers: Sequence[int]) -> bytes:
    return np.asarray(numbers, dtype=np.int32).tobytes()


def _unpacked(data: bytes) -> list[int]:
    return [int(number) for number in np.frombuffer(data, dtype=np.int32)]


class Worker:
    """The actor. It raises nothing and prints nothing: an error's text or traceback would end up in Ray's log files.

    A call that changes a session answers nothing; an error is kept, and is the answer to the next question.
    """

    def __init__(self, name: str, room: DeviceRoom, threads: int) -> None:
        self._held: dict[int, _Held] = {}

        def loaded() -> TransformersModel:
            model = load_model(name, threads)
            model.room = room  # the driver's: chunks of one shape everywhere
            return model

        self._model = _guarded(loaded)

    def facts(self) -> Facts | StudioError:
        """What was loaded, or why nothing was."""
        return self._model if isinstance(self._model, StudioError) else Facts.of(self._model)

    def receive(self, key: int, *rows: bytes) -> None:
        """Take in pieces of a session's rows: a block of int32, (rows, length), `NO_TOKEN` where there is no token."""
        self._change(key, lambda held: held.rows.extend(b"".join(rows)))

    def open(self, key: int, prefix: bytes, length: int, room: int, per_chunk: int) -> None:
        """Start a session with the rows received, in chunks of so many."""

        def opened(held: _Held) -> None:
            assert isinstance(self._model, TransformersModel)
            block = np.frombuffer(bytes(held.rows), dtype=np.int32).reshape(-1, length)
            tokens = [row[row != NO_TOKEN].tolist() for row in block]
            model = self._model
            with report_out_of_memory():
                held.session = TransformersSession(
                    model, _unpacked(prefix), tokens, length, room, model.room, per_chunk
                )
            held.rows.clear()

        self._change(key, opened)

    def advance(self, key: int, tokens: bytes) -> None:
        self._change(key, lambda held: _session(held).advance(_unpacked(tokens)))

    def keep(self, key: int, rows: bytes, per_chunk: int) -> None:
        """Keep these rows, which may repeat."""
        self._change(key, lambda held: _session(held).keep(_unpacked(rows), per_chunk))

    def _change(self, key: int, change: Callable[[_Held], None]) -> None:
        held = self._held.setdefault(key, _Held())
        held.calls += 1
        if held.error is None:
            outcome = _guarded(lambda: change(held))
            held.error = outcome if isinstance(outcome, StudioError) else None

    def logits(self, key: int, calls: int, count: int, columns: bytes | None, start: int, stop: int) -> list[Any]:
        chosen = None if columns is None else np.array(_unpacked(columns), dtype=np.int64)
        return self._answer(key, calls, count, lambda session: session.logits(chosen, slice(start, stop)))

    def score(self, key: int, calls: int, count: int, continuation: bytes) -> list[Any]:
        return self._answer(key, calls, count, lambda session: session.score(_unpacked(continuation)))

    def _answer(self, key: int, calls: int, count: int, question: Callable[[Session], Floats]) -> list[Any]:
        """None and `count` pieces of the answer; or what went wrong, and padding.

        Args:
            calls: how many calls must have made the session what it is.
        """
        held = self._held.get(key)
        if held is None or held.calls != calls:
            return [Missing(), *[b""] * count]
        answer = _guarded(lambda: question(_session(held)).tobytes()) if held.error is None else held.error
        return [answer, *[b""] * count] if isinstance(answer, StudioError) else [None, *cut(answer)]

    def close(self, key: int) -> None:
        self._held.pop(key, None)


def _session(held: _Held) -> TransformersSession:
    assert held.session is not None
    return held.session


def _guarded(work: Callable[[], _T]) -> _T | StudioError:
    try:
        return work()
    except StudioError as error:
        return type(error)(str(error))  # without its traceback
    except Exception as error:
        failed = f"A worker of the Ray engine failed ({type(error).__name__})"
        return ModelUnavailable(f"{failed}: see research/docs/scale_out.md.")


# The workers of the Ray engine that live: hired, checked, and replaced when they are lost.

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

    def replace_lost(self, worker: Any) -> None:
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


# Rows of a session that one worker computes, and what it takes to compute them again on another.

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
                self._pool.replace_lost(question.worker)
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
