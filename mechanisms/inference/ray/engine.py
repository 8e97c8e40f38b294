"""A language model whose rows are spread over workers of a Ray cluster; research/docs/scale_out.md says how and why."""

from __future__ import annotations

import logging
import math
import os
import secrets
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import numpy as np
import ray
import torch
from ray.exceptions import RayError

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference.engine.transformers_model import TransformersModel
from mechanisms.inference.language_model import Session, Tokens
from mechanisms.inference.ray.workers import LARGEST, NO_TOKEN, Facts, Share, Worker, WorkerPool, messages, pack
from mechanisms.noise import Floats, Integers

# The Ray cluster that workers live in: the one that RAY_ADDRESS names, or a private one on this machine.
#
# A private cluster keeps its files in a folder that only the user can open and that is removed at the end, spills
# nothing to disk, and asks for a random token on every connection.

ADDRESS = "RAY_ADDRESS"
WORKERS = "DPICL_RAY_WORKERS"
_FEW = 2
"""Workers of a cluster without GPUs, where nothing else is asked for; one a machine, if there are more of these."""
_OBJECT_STORE_BYTES = 80 * 2**20  # about Ray's smallest: nothing is put there
_REACH_SECONDS = 10.0
_LONGEST_BASE = 30
"""Characters of a temporary folder's path; Ray puts sockets below it, whose paths are limited to about 100."""


@contextmanager
def connected(on_gpu: bool) -> Iterator[tuple[int, int]]:
    """A connection to the cluster of RAY_ADDRESS, or to a private one that ends with it.

    Args:
        on_gpu: a worker gets a GPU of its own; there are as many workers as GPUs.

    Yields:
        How many workers to have, and on how many threads each computes.

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
        # Ray writes on standard output that a worker was lost; results go there.
        stack.enter_context(redirect_stdout(sys.stderr))
        try:
            if private:
                workers = wanted or (torch.cuda.device_count() if on_gpu else _FEW)
                cores: float = torch.get_num_threads()
                prefix, base = "dpicl-", _base()
                folder = stack.enter_context(TemporaryDirectory(prefix=prefix, dir=base, ignore_cleanup_errors=True))
                _start(workers, Path(folder))
            else:
                _reach(address)
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
                has = ray.cluster_resources()
                workers = wanted or int(has.get("GPU", 1) if on_gpu else max(_FEW, len(ray.nodes())))
                cores = has.get("CPU", 1)
        except (RayError, OSError, RuntimeError, ValueError) as error:
            where = "No Ray cluster can be started here" if private else f"{ADDRESS}={address} cannot be reached"
            raise ModelUnavailable(f"{where} ({type(error).__name__}): correct it, or use --engine local.") from error
        stack.callback(ray.shutdown)
        yield workers, max(1, int(cores) // workers)


def _reach(address: str) -> None:
    host, _, port = address.rpartition(":")
    if port.isdigit():  # Ray itself would try for minutes
        socket.create_connection((host, int(port)), timeout=_REACH_SECONDS).close()


def _wanted() -> int | None:
    text = os.environ.get(WORKERS)
    if text is not None and not (text.isascii() and text.isdigit() and int(text)):
        raise UsageError(f"{WORKERS} must be a whole number from 1 on: the number of workers.")
    return int(text) if text else None


def _start(workers: int, folder: Path) -> None:
    # Otherwise Ray would write a token into the home folder.
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    ray.init(
        address="local",
        num_cpus=workers,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=_OBJECT_STORE_BYTES,
        # Ray opens its own folder to everybody: the private one is the folder above it.
        _temp_dir=str(folder / "ray"),
        _system_config={"automatic_object_spilling_enabled": False},
    )


def _base() -> str:
    usual = gettempdir()
    return usual if len(usual) <= _LONGEST_BASE else "/tmp"


# The engine and its sessions.
#
# This process holds the model too, and computes small batches itself. Of a larger one every worker computes whole
# chunks. The numbers are those of a single process with chunks of the same size to the bit, on the same processor
# and threads.

_FLOAT = 8
_MOST_ROWS = 64
"""Rows of a chunk: smaller than a single process likes them, so that there is something to spread."""


@contextmanager
def spread(name: str, local: TransformersModel) -> Iterator[RayModel]:
    """A model on the workers of a cluster too, which load it by the same name.

    Raises:
        UsageError: a setting cannot be used.
        ModelUnavailable: the cluster or a worker is not available, or a worker has loaded something else.
    """
    on_gpu = local.model.device.type == "cuda"
    with connected(on_gpu) as (workers, threads):
        actor = ray.remote(Worker).options(
            num_cpus=1, num_gpus=int(on_gpu), max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        yield RayModel(local, WorkerPool(lambda: actor.remote(name, local.room, threads), workers, Facts.of(local)))


class RayModel:
    """A language model on several machines. Tokens, text and small batches are `local`'s."""

    def __init__(self, local: TransformersModel, pool: WorkerPool) -> None:
        self._local, self._pool = local, pool
        self.name, self.sha256, self.stop_tokens = local.name, local.sha256, local.stop_tokens
        self.turn, self.writing_turn, self.letter_turn = local.turn, local.writing_turn, local.letter_turn

    def rows_at_once(self, computed: int, held: int) -> int:
        """The local number, since what is batched together decides who draws when."""
        return self._local.rows_at_once(computed, held)

    def encode(self, text: str) -> list[int]:
        return self._local.encode(text)

    def decode(self, tokens: Tokens) -> str:
        return self._local.decode(tokens)

    def check(self, prefix: Tokens, rows: int, length: int, room: int) -> None:
        """Check the largest share of the rows."""
        share = math.ceil(rows / len(self._pool)) + self._limit(prefix, length, room)
        self._local.check(prefix, min(rows, share), length, room)

    def alike(self, prefix: Tokens, rows: int, length: int, room: int) -> bool:
        """Known of what is computed here, and never of several machines."""
        return rows <= self._limit(prefix, length, room) and self._local.alike(prefix, rows, length, room)

    def _limit(self, prefix: Tokens, length: int, room: int) -> int:
        held = len(self._local.started(prefix)) + length + room
        return min(_MOST_ROWS, self._local.room.chunk(length, held))

    def open(self, prefix: Tokens, rows: Sequence[Tokens], length: int, room: int) -> Session:
        limit, local = self._limit(prefix, length, room), self._local
        if len(rows) <= limit:
            return local.open(prefix, rows, length, room)
        return RaySession(self._pool, local, limit, local.started(prefix), rows, length, room)


class RaySession:
    """A session on several machines: each share of the rows is one of whole chunks on one worker."""

    def __init__(
        self,
        pool: WorkerPool,
        local: TransformersModel,
        limit: int,
        prefix: Tokens,
        rows: Sequence[Tokens],
        length: int,
        room: int,
    ) -> None:
        """Start it on all workers.

        Args:
            limit: rows of a chunk at most.
        """
        if any(len(row) > length for row in rows):
            raise ValueError("every row must fit in the session's public length")
        self._local, self._limit = local, limit
        chunks, per_chunk, _ = local.slots.layout(local.room, len(rows), limit, length)
        block = np.full((chunks * per_chunk, length), NO_TOKEN, dtype=np.int32)
        for i, row in enumerate(rows):
            block[i, length - len(row) :] = row
        self._places: list[tuple[Share, int]] = []
        """Of every row: who has it, and where."""
        for part in np.array_split(block.reshape(chunks, per_chunk, length), min(chunks, len(pool))):
            share = Share(pool, len(part) * per_chunk)
            for message in messages(part.tobytes()):
                share.tell("receive", *message)
            share.tell("open", pack(prefix), length, room, per_chunk)
            self._places += [(share, row) for row in range(share.rows)]
        del self._places[len(rows) :]

    def advance(self, tokens: Tokens) -> None:
        columns = {share: np.zeros(share.rows, dtype=np.int32) for share, _ in self._places}
        for (share, row), token in zip(self._places, tokens, strict=True):
            columns[share][row] = token
        for share, column in columns.items():
            share.tell("advance", column.tobytes())

    def keep(self, rows: Sequence[int]) -> None:
        """Rows stay with their worker, in chunks of the shape that they would have here."""
        _, per_chunk, _ = self._local.slots.layout(self._local.room, len(rows), self._limit, 1)
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
        at_once = max(1, LARGEST // (width * _FLOAT))
        asked = []
        places = self._places[rows]
        for share, own in _by_share(places).items():
            low, high = int(own[:, 1].min()), int(own[:, 1].max()) + 1
            cuts = [(start, min(start + at_once, high)) for start in range(low, high, at_once)]
            sizes = [(stop - start) * width * _FLOAT for start, stop in cuts]
            questions = [share.ask("logits", chosen, *cut, size=size) for cut, size in zip(cuts, sizes, strict=True)]
            asked.append((share, own, low, questions))
        result = np.empty((len(places), width))
        for share, own, low, questions in asked:
            answer = b"".join(share.answer(question) for question in questions)
            result[own[:, 0]] = np.frombuffer(answer).reshape(-1, width)[own[:, 1] - low]
        return result

    def score(self, continuation: Tokens) -> Floats:
        places = _by_share(self._places)
        asked = {share: share.ask("score", pack(continuation), size=share.rows * _FLOAT) for share in places}
        result = np.empty(len(self._places))
        for share, own in places.items():
            result[own[:, 0]] = np.frombuffer(share.answer(asked[share]))[own[:, 1]]
        return result


def _by_share(places: Sequence[tuple[Share, int]]) -> dict[Share, Integers]:
    """Who has which rows: pairs of the number here and the number there, shape (rows, 2)."""
    pairs: dict[Share, list[tuple[int, int]]] = {}
    for i, (share, row) in enumerate(places):
        pairs.setdefault(share, []).append((i, row))
    return {share: np.array(own, dtype=np.int64) for share, own in pairs.items()}
