"""Memory that runs out in spite of what `device_room` measured: another process took it meanwhile.

What the model computes at once is made smaller, twice; then it is told in one line. Shapes are public, and so is how
much memory they take: that it ran out tells of the machine, not of the rows. Every row of a batch is computed again in
passes of the new shape, so that equal rows still have equal numbers; noise is drawn by whoever asked, afterwards.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from mechanisms.errors import ModelUnavailable
from mechanisms.inference.engine.allocator import release_freed_memory
from mechanisms.inference.engine.device_room import DeviceRoom

_FULL = (
    "The memory of this machine ran out while the model computed. Nothing more was released. Close what else uses it, "
    "or take fewer records at each step, shorter records, or a smaller model."
)
_SMALLER = 2
"""How often work is begun anew: a machine as full as that has no room for the next step either."""

_T = TypeVar("_T")


@contextmanager
def told_when_full() -> Iterator[None]:
    """Tell of memory that ran out, in one line.

    Raises:
        ModelUnavailable: it ran out.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not _ran_out(error):
            raise
        raise ModelUnavailable(_FULL) from error


def smaller_when_full(work: Callable[[DeviceRoom], _T], room: DeviceRoom, rows: int, positions: int) -> _T:
    """Do work, and where memory runs out begin it anew, with half as many rows in a pass.

    Args:
        work: what is done; it may be begun anew at any time, with less room.
        room: as it is now.
        rows, positions: what a pass computes at most, now.

    Raises:
        MemoryError, RuntimeError: memory runs out all the same; see `told_when_full`.
    """
    for _ in range(_SMALLER):
        try:
            return work(room)
        except (MemoryError, RuntimeError) as error:
            if not _ran_out(error):
                raise
        gc.collect()  # not above, where the error holds on to what was computed
        release_freed_memory()
        room = room.halved(rows, positions)
    return work(room)


def _ran_out(error: Exception) -> bool:
    # torch has no type of its own for a processor's memory
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in str(error)
