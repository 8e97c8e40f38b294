"""A language model with its rows distributed over workers of a Ray cluster; research/docs/scale_out.md explains the
design."""

from __future__ import annotations

import itertools
import logging
import math
import os
import secrets
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, TypeVar

import numpy as np
import ray
import torch
from ray.exceptions import RayError

from mechanisms import __version__
from mechanisms.errors import ModelUnavailable, StudioError, UsageError
from mechanisms.inference.engine.eight_bits import number_format
from mechanisms.inference.engine.memory import DeviceRoom, report_out_of_memory
from mechanisms.inference.engine.transformers_model import TransformersModel, TransformersSession
from mechanisms.inference.language_model import Session, Tokens
from mechanisms.inference.models.loading import load_model
from mechanisms.noise import Floats, Integers

# The Ray cluster of the workers: the one at RAY_ADDRESS, or a private one on this machine.
#
# A private cluster keeps its files in a folder that only the user can open and that is removed at the end. It spills
# nothing to disk, and every connection needs a random token.

ADDRESS = "RAY_ADDRESS"
WORKERS = "DPICL_RAY_WORKERS"
_FEW = 2
"""The default number of workers of a cluster without GPUs; with more machines, one for each."""
_OBJECT_STORE_BYTES = 80 * 2**20  # about Ray's smallest: nothing is put there
_REACH_SECONDS = 10.0
_LONGEST_BASE = 30
"""Characters of a temporary folder's path; Ray puts sockets below it, whose paths are limited to about 100."""


@contextmanager
def connected(on_gpu: bool) -> Iterator[tuple[int, int]]:
    """A connection to the cluster at RAY_ADDRESS, or to a private cluster that ends with the connection.

    Yields the number of workers (with `on_gpu` one for each GPU), and the number of threads of each.

    Raises:
        UsageError: a setting cannot be used.
        ModelUnavailable: no cluster can be reached or started.
    """
    address, wanted = os.environ.get(ADDRESS, ""), _wanted()
    if address.startswith("ray://"):
        # Ray Client's server keeps every message in its object store.
        raise UsageError(f"{ADDRESS} must name the cluster itself (host:6379): Ray Client (ray://) is not supported.")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    private = address in ("", "local")
    with ExitStack() as stack:
        # Ray writes to standard output that a worker was lost, but results go there.
        stack.enter_context(redirect_stdout(sys.stderr))
        try:
            if private:
                workers = wanted or (torch.cuda.device_count() if on_gpu else _FEW)
                cores: float = torch.get_num_threads()
                base = gettempdir() if len(gettempdir()) <= _LONGEST_BASE else "/tmp"
                folder = TemporaryDirectory(prefix="dpicl-", dir=base, ignore_cleanup_errors=True)
                # Otherwise Ray would write a token into the home folder.
                os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
                ray.init(
                    address="local",
                    num_cpus=workers,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    object_store_memory=_OBJECT_STORE_BYTES,
                    # Ray's own folder is open to everybody, so its parent folder is the private one.
                    _temp_dir=str(Path(stack.enter_context(folder)) / "ray"),
                    _system_config={"automatic_object_spilling_enabled": False},
                )
            else:
                host, _, port = address.rpartition(":")
                if port.isdigit():  # Ray itself would try for minutes
                    socket.create_connection((host, int(port)), timeout=_REACH_SECONDS).close()
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
                has = ray.cluster_resources()
                workers = wanted or int(has.get("GPU", 1) if on_gpu else max(_FEW, len(ray.nodes())))
                cores = has.get("CPU", 1)
        except (RayError, OSError, RuntimeError, ValueError) as error:
            where = "No Ray cluster can be started here" if private else f"{ADDRESS}={address} cannot be reached"
            raise ModelUnavailable(f"{where} ({type(error).__name__}): correct it, or use --engine local.") from error
        stack.callback(ray.shutdown)
        yield workers, max(1, int(cores) // workers)


def _wanted() -> int | None:
    text = os.environ.get(WORKERS)
    if text is not None and not (text.isascii() and text.isdigit() and int(text)):
        raise UsageError(f"{WORKERS} must be a whole number from 1 on: the number of workers.")
    return int(text) if text else None


# Messages. Private data are sent as bytes in pieces small enough for Ray to put them into the message itself. Such
# messages go from process to process: they never enter the object store, which could spill to disk.

_PIECE = 64 * 2**10
"""Bytes of a piece; Ray puts up to 100 KiB into the message."""
_LARGEST = 4 * 2**20
"""Bytes of a message in all; Ray puts up to 10 MiB into it."""
_FLOAT = 8
NO_TOKEN = -1
"""Padding of a row's tokens, so that messages have a public size."""


def _cut(data: bytes) -> list[bytes]:
    """Data as pieces, at least one."""
    return [data[i : i + _PIECE] for i in range(0, len(data), _PIECE)] or [b""]


def pack(numbers: Sequence[int]) -> bytes:
    return np.asarray(numbers, dtype=np.int32).tobytes()


def _unpacked(data: bytes) -> list[int]:
    return [int(number) for number in np.frombuffer(data, dtype=np.int32)]


_T = TypeVar("_T")
_LOST = "A worker of the Ray engine was lost. Nothing more was released: a run with --journal can be resumed."


@dataclass(frozen=True)
class WorkerFacts:
    """The properties that driver and workers must share, so that a row's result does not depend on where it is
    computed."""

    version: str
    sha256: str
    device: str
    number_format: str

    @classmethod
    def of(cls, model: TransformersModel) -> WorkerFacts:
        return cls(__version__, model.sha256, model.model.device.type, number_format(model.model))


@dataclass
class _Held:
    """A session after the calls so far; before it is opened, its rows' tokens."""

    calls: int = 0
    rows: bytearray = field(default_factory=bytearray)
    session: TransformersSession | None = None
    error: StudioError | None = None

    @property
    def opened(self) -> TransformersSession:
        assert self.session is not None
        return self.session


class Worker:
    """The actor. It raises nothing and prints nothing: an error's text or traceback would end up in Ray's log files.

    A call that changes a session returns nothing; its error is stored and returned as the answer to the next request.
    """

    def __init__(self, name: str, room: DeviceRoom, threads: int) -> None:
        self._held: dict[int, _Held] = {}

        def loaded() -> TransformersModel:
            model = load_model(name, threads)
            model.room = room  # the driver's: chunks of one shape everywhere
            return model

        self._model = _guarded(loaded)

    def facts(self) -> WorkerFacts | StudioError:
        """The properties of the loaded model, or the error that prevented loading."""
        return self._model if isinstance(self._model, StudioError) else WorkerFacts.of(self._model)

    def receive(self, key: int, *rows: bytes) -> None:
        """Take in pieces of a session's rows: a block of int32, (rows, length), `NO_TOKEN` where there is no token."""
        self._change(key, lambda held: held.rows.extend(b"".join(rows)))

    def open(self, key: int, prefix: bytes, length: int, room: int, per_chunk: int) -> None:
        """Start a session with the received rows, in chunks of `per_chunk` rows."""

        def opened(held: _Held) -> None:
            model = self._model
            assert isinstance(model, TransformersModel)
            block = np.frombuffer(bytes(held.rows), dtype=np.int32).reshape(-1, length)
            rows = [row[row != NO_TOKEN].tolist() for row in block]
            with report_out_of_memory():
                held.session = TransformersSession(model, _unpacked(prefix), rows, length, room, model.room, per_chunk)
            held.rows.clear()

        self._change(key, opened)

    def advance(self, key: int, tokens: bytes) -> None:
        self._change(key, lambda held: held.opened.advance(_unpacked(tokens)))

    def keep(self, key: int, rows: bytes, per_chunk: int) -> None:
        """Keep these rows, which may repeat."""
        self._change(key, lambda held: held.opened.keep(_unpacked(rows), per_chunk))

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
        """None and `count` pieces of the answer; or the error, and padding."""
        held = self._held.get(key)
        if held is None or held.calls != calls:  # Ray may have lost one
            return [ModelUnavailable(_LOST), *[b""] * count]
        found = _guarded(lambda: question(held.opened).tobytes()) if held.error is None else held.error
        return [found, *[b""] * count] if isinstance(found, StudioError) else [None, *_cut(found)]

    def close(self, key: int) -> None:
        self._held.pop(key, None)


def _guarded(work: Callable[[], _T]) -> _T | StudioError:
    try:
        return work()
    except StudioError as error:
        return type(error)(str(error))  # without its traceback
    except Exception as error:
        failed = f"A worker of the Ray engine failed ({type(error).__name__})"
        return ModelUnavailable(f"{failed}: see research/docs/scale_out.md.")


def _answered(references: Any) -> Any:
    """A worker's answer; `ModelUnavailable` if it was lost."""
    try:
        return ray.get(references)
    except RayError:
        raise ModelUnavailable(_LOST) from None  # its text is dropped: it may quote anything


_START_SECONDS = 900.0
"""The longest time for a worker to be placed in the cluster and to load the model."""


def hired(start: Callable[[], Any], count: int, expected: WorkerFacts) -> list[Any]:
    """Workers that have loaded the model; `start` requests one more worker from Ray, and returns its handle at once.

    Raises:
        StudioError: a worker could not start, or holds another model.
    """
    workers = [start() for _ in range(count)]
    answers = [worker.facts.remote() for worker in workers]
    ready, _ = ray.wait(answers, num_returns=count, timeout=_START_SECONDS)
    for facts in map(_answered, ready):
        if isinstance(facts, StudioError):
            raise facts
        if facts != expected:
            raise ModelUnavailable(
                "A worker of the Ray engine has another model, precision, device or version of this software than "
                "this process: make them equal on every machine."
            )
    if len(ready) < count:
        raise ModelUnavailable(f"Only {len(ready)} of {count} workers found a place in the Ray cluster: set {WORKERS}.")
    return workers


class Share:
    """The rows of a session that one worker computes."""

    _keys = itertools.count()

    def __init__(self, worker: Any, rows: int) -> None:
        self.rows = rows
        self._worker, self._key, self._calls = worker, next(self._keys), 0

    def tell(self, method: str, *arguments: Any) -> None:
        """Change the session, without waiting; a failure is reported by the next request."""
        self._calls += 1
        getattr(self._worker, method).options(num_returns=0).remote(self._key, *arguments)

    def ask(self, method: str, *arguments: Any, size: int) -> Any:
        """Request an answer of `size` bytes without waiting; returns the argument of `answer`."""
        count = max(1, math.ceil(size / _PIECE))
        remote = getattr(self._worker, method).options(num_returns=1 + count).remote
        return remote(self._key, self._calls, count, *arguments)

    def __del__(self) -> None:
        if ray.is_initialized():
            with suppress(RayError):
                self._worker.close.options(num_returns=0).remote(self._key)


def answer(references: Any) -> bytes:
    """Wait for an answer; raises the worker's `StudioError`, or one that says that the worker was lost."""
    problem, *parts = _answered(references)
    if problem is not None:
        raise problem
    return b"".join(parts)


# The engine and its sessions.
#
# This process has the model, too, and computes small batches itself. Every worker computes whole chunks of a larger
# batch. With the same processor and threads, the numbers are bitwise those of a single process with chunks of the same
# size.

_MOST_ROWS = 64
"""Rows of a chunk: fewer than the best number for a single process, so that there are chunks to distribute."""


@contextmanager
def spread(name: str, local: TransformersModel) -> Iterator[RayModel]:
    """A model that is also loaded, by the same name, on the workers of a cluster.

    Raises:
        UsageError: a setting cannot be used.
        ModelUnavailable: the cluster or a worker is not available, or a worker has loaded something else.
    """
    on_gpu = local.model.device.type == "cuda"
    with connected(on_gpu) as (workers, threads):
        # If there are more workers than GPUs, they share the GPUs, and all share memory with this process.
        share = min(1.0, ray.cluster_resources().get("GPU", 0) / workers) if on_gpu else 0
        if 0 < share < 1:
            local.room = replace(local.room, free=int(local.room.free * share / (1 + share)))
        actor = ray.remote(Worker).options(
            num_cpus=1,
            num_gpus=math.floor(share * 100) / 100,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )
        yield RayModel(local, hired(lambda: actor.remote(name, local.room, threads), workers, WorkerFacts.of(local)))


class RayModel:
    """A language model on several machines. Tokens, text and small batches are `local`'s."""

    def __init__(self, local: TransformersModel, workers: Sequence[Any]) -> None:
        self.local, self.workers, self.turns = local, workers, itertools.cycle(workers)
        self.name, self.sha256, self.stop_tokens = local.name, local.sha256, local.stop_tokens
        self.turn, self.writing_turn = local.turn, local.writing_turn
        # The composition of batches decides the order of draws.
        self.rows_at_once, self.encode, self.decode = local.rows_at_once, local.encode, local.decode

    @property
    def arithmetic(self) -> str:
        return f"{self.local.arithmetic}, {len(self.workers)} Ray workers"

    def check(self, prefix: Tokens, rows: int, length: int, room: int) -> None:
        """Check the largest share of the rows."""
        share = math.ceil(rows / len(self.workers)) + self._limit(prefix, length, room)
        self.local.check(prefix, min(rows, share), length, room)

    def alike(self, prefix: Tokens, rows: int, length: int, room: int) -> bool:
        """Known only for batches computed here, never for several machines."""
        return rows <= self._limit(prefix, length, room) and self.local.alike(prefix, rows, length, room)

    def _limit(self, prefix: Tokens, length: int, room: int) -> int:
        held = len(self.local.started(prefix)) + length + room
        return min(_MOST_ROWS, self.local.room.chunk(length, held))

    def open(self, prefix: Tokens, rows: Sequence[Tokens], length: int, room: int) -> Session:
        limit = self._limit(prefix, length, room)
        if len(rows) <= limit:
            return self.local.open(prefix, rows, length, room)
        return RaySession(self, limit, prefix, rows, length, room)


class RaySession:
    """A session on several machines: each share of the rows is whole chunks, of at most `limit` rows, on one worker."""

    def __init__(
        self, owner: RayModel, limit: int, prefix: Tokens, rows: Sequence[Tokens], length: int, room: int
    ) -> None:
        if any(len(row) > length for row in rows):
            raise ValueError("every row must fit in the session's public length")
        self._local, self._limit, started = owner.local, limit, owner.local.started(prefix)
        self._prefix = len(started)
        chunks, per_chunk, _ = self._local.slots.layout(self._local.room, len(rows), limit, length, self._prefix)
        block = np.full((chunks * per_chunk, length), NO_TOKEN, dtype=np.int32)
        for i, row in enumerate(rows):
            block[i, length - len(row) :] = row
        self._places: list[tuple[Share, int]] = []
        """For every row its share and its place there."""
        for part in np.array_split(block.reshape(chunks, per_chunk, length), min(chunks, len(owner.workers))):
            share, data = Share(next(owner.turns), len(part) * per_chunk), part.tobytes()
            for start in range(0, len(data), _LARGEST):
                share.tell("receive", *_cut(data[start : start + _LARGEST]))
            share.tell("open", pack(started), length, room, per_chunk)
            self._places += [(share, row) for row in range(share.rows)]
        del self._places[len(rows) :]

    def advance(self, tokens: Tokens) -> None:
        columns = {share: np.zeros(share.rows, dtype=np.int32) for share, _ in self._places}
        for (share, row), token in zip(self._places, tokens, strict=True):
            columns[share][row] = token
        for share, column in columns.items():
            share.tell("advance", column.tobytes())

    def keep(self, rows: Sequence[int]) -> None:
        """Keep these rows at their workers, in chunks of the shape that they would have here."""
        _, per_chunk, _ = self._local.slots.layout(self._local.room, len(rows), self._limit, 1, self._prefix)
        kept: dict[Share, list[int]] = {}
        places = []
        for share, row in (self._places[row] for row in rows):
            own = kept.setdefault(share, [])
            places.append((share, len(own)))
            own.append(row)
        for share, own in kept.items():
            filled = own + own[:1] * (-len(own) % per_chunk)
            share.tell("keep", pack(filled), per_chunk)
            share.rows = len(filled)
        self._places = places

    def logits(self, columns: Integers | None = None, rows: slice = slice(None)) -> Floats:
        vocabulary: int = self._local.model.config.get_text_config().vocab_size
        width = vocabulary if columns is None else len(columns)
        chosen = None if columns is None else pack(columns.tolist())
        at_once = max(1, _LARGEST // (width * _FLOAT))
        requests = []
        places = self._places[rows]
        for share, own in _by_share(places).items():
            low, high = int(own[:, 1].min()), int(own[:, 1].max()) + 1
            cuts = [(start, min(start + at_once, high)) for start in range(low, high, at_once)]
            questions = [share.ask("logits", chosen, *cut, size=(cut[1] - cut[0]) * width * _FLOAT) for cut in cuts]
            requests.append((own, low, questions))
        result = np.empty((len(places), width))
        for own, low, questions in requests:
            found = np.frombuffer(b"".join(map(answer, questions))).reshape(-1, width)
            result[own[:, 0]] = found[own[:, 1] - low]
        return result

    def score(self, continuation: Tokens) -> Floats:
        places = _by_share(self._places)
        requests = {share: share.ask("score", pack(continuation), size=share.rows * _FLOAT) for share in places}
        result = np.empty(len(self._places))
        for share, own in places.items():
            result[own[:, 0]] = np.frombuffer(answer(requests[share]))[own[:, 1]]
        return result


def _by_share(places: Sequence[tuple[Share, int]]) -> dict[Share, Integers]:
    """The rows of each share: pairs of the number here and the number there, shape (rows, 2)."""
    pairs: dict[Share, list[tuple[int, int]]] = {}
    for i, (share, row) in enumerate(places):
        pairs.setdefault(share, []).append((i, row))
    return {share: np.array(own, dtype=np.int64) for share, own in pairs.items()}
