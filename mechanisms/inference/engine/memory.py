"""Memory: the amount that the C library keeps, the number of rows that fit at once, and retries when memory runs out.

Shapes depend only on the device's memory, so they are public.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference.engine.device import device_of
from mechanisms.inference.engine.limits import total_memory

_T = TypeVar("_T")

# Making the C library keep freed memory.
#
# A forward pass on a CPU allocates large blocks and frees them, layer after layer. By default glibc returns them to the
# kernel each time, which then has to clear them again page by page: up to a third of a pass.

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of mallopt(3)."""
_KEPT = 2**30
_MAPPED = 2**25
"""The largest threshold that glibc accepts."""


def _c_library(holds: str) -> ctypes.CDLL | None:
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    return library if hasattr(library, holds) else None


def keep_freed_memory() -> None:
    """Keep up to 1 GiB of freed memory, in one arena for all threads; has no effect without glibc."""
    if library := _c_library("mallopt"):
        for parameter, value in ((_MMAP_THRESHOLD, _MAPPED), (_TRIM_THRESHOLD, _KEPT), (_ARENA_MAX, 1)):
            library.mallopt(parameter, value)


def release_freed_memory() -> None:
    """Return freed memory to the system: this makes room for the next model, and removes a run's rows from this
    process."""
    if library := _c_library("malloc_trim"):
        library.malloc_trim(0)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


_CPU, _ACCELERATOR = (128, 256, 4096), (4096, 1024, 2**16)
"""The positions of a step that keep the device busy, the most rows of a chunk, and the most positions of a pass.

Beyond these, further rows add to the time of a step. Passes of more positions are hardly faster on a CPU, and the first
pass of each shape is compared (research/docs/engine.md).
"""
_OF_A_PASS, _LEAST_OF_A_PASS = 2**37, 1024
"""On a CPU the positions of a pass times hidden width, inner width and layers are at most the first number, unless that
leaves fewer positions than the second. So the comparison of a large model's first pass takes less time."""
_SHARE_OF_A_CHUNK = 8
"""One part in eight of the free memory is for what a chunk computes; the rest is for keys and values."""


@dataclass(frozen=True)
class DeviceRoom:
    """What fits, for one model on one device.

    Attributes:
        free: bytes for keys, values and the values that a pass computes.
        busy: positions of a step that keep the device busy.
        most: the most rows of a chunk.
        at_once: the most positions of one forward pass.
        cache_bytes: bytes of keys and values for one position of one row.
        state_bytes: bytes needed to compute a position.
        score_bytes: bytes for a position's attention to another one.
    """

    free: int
    busy: int
    most: int
    at_once: int
    cache_bytes: int
    state_bytes: int
    score_bytes: int

    @classmethod
    def of(cls, model: Any) -> DeviceRoom:
        """Measure the room beside a loaded model."""
        config, device = model.config.get_text_config(), device_of(model)
        item = torch.finfo(model.dtype).bits // 8
        heads = config.num_attention_heads
        key_heads = getattr(config, "num_key_value_heads", None) or heads
        head_width = getattr(config, "head_dim", None) or config.hidden_size // heads
        inner = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
        # A fixed part of a CPU's memory, which also holds the data.
        on_gpu = device.type == "cuda"
        free = torch.cuda.mem_get_info(device)[0] if on_gpu else total_memory() * 3 // 5
        on_cpu = device.type == "cpu"
        busy, most, at_once = _CPU if on_cpu else _ACCELERATOR
        if on_cpu:
            enough = _OF_A_PASS // (config.num_hidden_layers * config.hidden_size * inner)
            at_once = min(at_once, max(enough, _LEAST_OF_A_PASS))
        state_bytes = (3 * inner + 6 * config.hidden_size) * item
        return cls(
            free,
            busy,
            most,
            max(1, min(at_once, free // _SHARE_OF_A_CHUNK // state_bytes)),
            cache_bytes=2 * config.num_hidden_layers * key_heads * head_width * item,
            state_bytes=state_bytes,
            score_bytes=3 * heads * item,
        )

    def chunk(self, computed: int, held: int) -> int:
        """Rows of a chunk if each computes `computed` and attends to `held` positions."""
        needed = computed * (held * self.score_bytes + self.state_bytes)
        return max(1, min(self.free // _SHARE_OF_A_CHUNK // needed, self.most))

    def in_a_pass(self, computed: int) -> int:
        """The most rows of one forward pass if each computes `computed` positions."""
        return max(1, self.at_once // computed)

    def sizes(self, rows: int, computed: int) -> Iterator[int]:
        """Rows of one forward pass over a chunk, largest first: divisors of `rows`, so that passes have one shape."""
        return (size for size in range(min(self.in_a_pass(computed), rows), 0, -1) if rows % size == 0)

    def slices(self, rows: int, computed: int) -> int:
        return next(self.sizes(rows, computed))

    def rows_at_once(self, computed: int, held: int) -> int:
        """Rows of a batch that keep the device busy and fit, at least one."""
        return max(1, min(self.busy // computed, self._holdable(held)))

    def _holdable(self, held: int) -> int:
        return self.free * (_SHARE_OF_A_CHUNK - 1) // _SHARE_OF_A_CHUNK // (held * self.cache_bytes)

    def check(self, rows: int, held: int) -> None:
        if rows > self._holdable(held):
            needed = rows * held * self.cache_bytes / 2**30
            raise UsageError(
                f"A batch of {rows} rows of {held} tokens needs {needed:.1f} GiB, and "
                f"{self.free / 2**30:.1f} are available: lower the expected rows, the tokens of a prompt, or "
                "the exemplars."
            )


# Memory can still run out if another process has allocated it in the meantime. Shapes and their memory are public, so
# this depends on the machine, not on the rows. Every row of a batch is then computed again in passes of a smaller
# shape, so that equal rows still have equal numbers; after two retries there is a one-line error.

_FULL = (
    "The memory of this machine ran out while the model computed. Nothing more was released. Close other programs, "
    "or use fewer records at each step, shorter records, or a smaller model."
)


@contextmanager
def report_out_of_memory() -> Iterator[None]:
    """Turn an out-of-memory error into a `ModelUnavailable` of one line."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if _ran_out(error):
            raise ModelUnavailable(_FULL) from error
        raise


def retry_when_out_of_memory(work: Callable[[DeviceRoom], _T], room: DeviceRoom, rows: int, positions: int) -> _T:
    """Do work; if memory runs out, repeat it, at most twice, with half as many `rows` in a pass.

    `work` may be restarted at any time, with less room.
    """
    for _ in range(2):
        try:
            return work(room)
        except (MemoryError, RuntimeError) as error:
            if not _ran_out(error):
                raise
        gc.collect()  # not above, where the error keeps the computed values alive
        release_freed_memory()
        room = replace(room, at_once=max(min(room.at_once, rows * positions) // 2, positions))
    return work(room)


_WORDS_OF_FULL = ("out of memory", "allocate memory", "cublas_status_alloc_failed", "cudnn_status_alloc_failed")
"""torch has no type of its own for the memory of a processor, of Apple's GPU, or of CUDA's libraries."""


def _ran_out(error: Exception) -> bool:
    told = str(error).lower()
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(each in told for each in _WORDS_OF_FULL)
