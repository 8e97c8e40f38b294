"""What a worker of the Ray engine does: it holds the model, and the sessions of the rows that it was sent.

Whatever is private travels as bytes in pieces small enough for Ray to put them into the message itself. Such messages
go from process to process: they never enter the object store, which could spill to disk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from mechanisms import __version__
from mechanisms.errors import ModelUnavailable, StudioError
from mechanisms.inference.engine.device_room import DeviceRoom
from mechanisms.inference.engine.full_memory import told_when_full
from mechanisms.inference.engine.transformers_model import TransformersModel, TransformersSession
from mechanisms.inference.language_model import Session
from mechanisms.inference.models.catalogue import load_model
from mechanisms.noise import Floats

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
        """The facts of a loaded model."""
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
    """Whole numbers as bytes."""
    return np.asarray(numbers, dtype=np.int32).tobytes()


def _unpacked(data: bytes) -> list[int]:
    return [int(number) for number in np.frombuffer(data, dtype=np.int32)]


class Worker:
    """The actor. It raises nothing and prints nothing: an error's text or traceback would end up in Ray's log files.

    A call that changes a session answers nothing; an error is kept, and is the answer to the next question.
    """

    def __init__(self, name: str, room: DeviceRoom, threads: int) -> None:
        self._held: dict[int, _Held] = {}
        self._model = _guarded(lambda: _loaded(name, room, threads))

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
            with told_when_full():
                held.session = TransformersSession(
                    model, _unpacked(prefix), tokens, length, room, model.room, per_chunk
                )
            held.rows.clear()

        self._change(key, opened)

    def advance(self, key: int, tokens: bytes) -> None:
        """See `Session.advance`."""
        self._change(key, lambda held: _session(held).advance(_unpacked(tokens)))

    def keep(self, key: int, rows: bytes, per_chunk: int) -> None:
        """See `Session.keep`; rows may repeat."""
        self._change(key, lambda held: _session(held).keep(_unpacked(rows), per_chunk))

    def _change(self, key: int, change: Callable[[_Held], None]) -> None:
        held = self._held.setdefault(key, _Held())
        held.calls += 1
        if held.error is None:
            outcome = _guarded(lambda: change(held))
            held.error = outcome if isinstance(outcome, StudioError) else None

    def logits(self, key: int, calls: int, count: int, columns: bytes | None, start: int, stop: int) -> list[Any]:
        """See `Session.logits`, as an answer."""
        chosen = None if columns is None else np.array(_unpacked(columns), dtype=np.int64)
        return self._answer(key, calls, count, lambda session: session.logits(chosen, slice(start, stop)))

    def score(self, key: int, calls: int, count: int, continuation: bytes) -> list[Any]:
        """See `Session.score`, as an answer."""
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
        """Forget a session."""
        self._held.pop(key, None)


def _loaded(name: str, room: DeviceRoom, threads: int) -> TransformersModel:
    model = load_model(name, threads)
    model.room = room  # the driver's: chunks of one shape everywhere
    return model


def _session(held: _Held) -> TransformersSession:
    assert held.session is not None
    return held.session


def _guarded(work: Callable[[], _T]) -> _T | StudioError:
    try:
        return work()
    except StudioError as error:
        return type(error)(str(error))  # without its traceback
    except Exception as error:
        return ModelUnavailable(f"A worker of the Ray engine failed ({type(error).__name__}): see docs/scale_out.md.")
