"""The device that computes: which it is and why, its number format, its threads, and its memory."""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread, local
from typing import Any, ParamSpec, TypeVar

import psutil
import torch
from torch.utils import deterministic

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference.engine import DEVICE
from mechanisms.inference.engine.limits import cores, total_memory

_P = ParamSpec("_P")
_T = TypeVar("_T")

# Which device, and which number format.

AUTO, CPU, CUDA, MPS = "auto", "cpu", "cuda", "mps"
_NAMES = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
_BFLOAT16, _FLOAT16 = (8, 0), (7, 0)
"""Compute capabilities from which a GPU multiplies these faster than float32."""
_AMD = "AuthenticAMD"
_ZERO = "SPACES_ZERO_GPU"
"""Set on a Hugging Face Space whose GPU is lent by the call."""


@dataclass(frozen=True)
class Device:
    """Where a model computes, the number format of weights and activations, and why it is these."""

    place: torch.device
    dtype: torch.dtype
    title: str
    reason: str

    def __str__(self) -> str:
        return f"{self.title} in {str(self.dtype).removeprefix('torch.')} ({self.reason})"


def chosen_device(asked: str | None = None) -> Device:
    """The device that computes here.

    Args:
        asked: auto, cpu, cuda, cuda:1, mps; unless given, what `DPICL_DEVICE` says, else auto: CUDA, then Apple's GPU,
            then the CPU.

    Raises:
        UsageError: there is no such device here.
    """
    asked = (asked or os.environ.get(DEVICE, "")).strip().lower() or AUTO
    if not _NAMES.fullmatch(asked):
        raise UsageError(f"{DEVICE} is auto, cpu, cuda, cuda:1 (a number) or mps, and not '{asked}'.")
    if asked == CPU:
        return _cpu("it was asked for")
    if asked == MPS:
        if not torch.backends.mps.is_available():
            raise UsageError("There is no Apple GPU that torch can use: choose another device.")
        return _mps()
    missing = _no_cuda(asked)
    if missing is None:
        return _cuda(torch.device(CUDA if asked == AUTO else asked))
    if asked != AUTO:
        raise UsageError(f"'{asked}' cannot be used: {missing}. Choose another device.")
    return _mps() if torch.backends.mps.is_available() else _cpu(missing)


def _no_cuda(asked: str) -> str | None:
    """Why CUDA cannot be used here; None where it can."""
    if os.environ.get(_ZERO):
        return "ZeroGPU lends a GPU to single calls, and a run keeps its model on one"
    if torch.version.cuda is None and torch.version.hip is None:
        return "this torch was built without CUDA"
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        except RuntimeError as error:  # a driver that breaks while it is asked
            return f"the NVIDIA driver does not answer ({str(error).splitlines()[0]})"
    if count == 0:
        told = " ".join(str(each.message) for each in heard)
        return "the CUDA driver is too old for this torch" if "too old" in told else "no NVIDIA GPU is there"
    number = int(asked.partition(":")[2] or 0)
    return None if number < count else f"there are only {count} GPUs, counted from 0"


def _cuda(place: torch.device) -> Device:
    major, minor = torch.cuda.get_device_capability(place)
    dtype, reason = torch.float32, "multiplies nothing shorter fast"
    if (major, minor) >= _BFLOAT16:
        dtype, reason = torch.bfloat16, "multiplies bfloat16 fast"
    elif (major, minor) >= _FLOAT16:
        dtype, reason = torch.float16, "multiplies float16 fast, and bfloat16 not; logits are float32"
    title = f"{torch.cuda.get_device_name(place)} ({place})"
    return Device(place, dtype, title, f"compute capability {major}.{minor} {reason}")


def _mps() -> Device:
    return Device(torch.device(MPS), torch.float32, "Apple GPU", "it has no float64, which the CPU computes")


def _cpu(reason: str) -> Device:
    return Device(torch.device(CPU), cpu_dtype(), "CPU", reason)


def cpu_dtype() -> torch.dtype:
    """bfloat16 where the processor multiplies it faster than float32 (research/docs/engine.md), float32 elsewhere.

    Intel's processors with bfloat16 instructions but without tiles (AMX) multiply faster in float32; AMD's and ARM's
    do not.
    """
    if torch.cpu._is_amx_tile_supported():
        return torch.bfloat16
    arm = platform.machine().lower() in ("arm64", "aarch64")
    fast = (arm or _made_by_amd()) and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.bfloat16 if fast else torch.float32


@cache  # the file is long where there are many cores
def _made_by_amd() -> bool:
    """Whether the processor is AMD's: Linux says so in a file, Windows in the processor's name."""
    with suppress(OSError):
        if _AMD in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
            return True
    return _AMD in platform.processor()


def prepare(device: Device) -> None:
    """Let a GPU compute the same numbers in every run: deterministic kernels, and no shortened float32 products."""
    if device.place.type == CUDA:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
        # A kernel for every new tensor, which is written anyway.
        deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def in_parts(model: Any) -> bool:
    """Whether a model's layers lie on several devices, or on the disk."""
    return len(set(map(str, getattr(model, "hf_device_map", {}).values()))) > 1


def device_of(model: Any) -> torch.device:
    """Where a model's inputs go: its device, or the first GPU of a model in parts."""
    if not in_parts(model):
        return torch.device(model.device)
    return torch.device(next((each for each in model.hf_device_map.values() if each not in (CPU, "disk")), CPU))


# Threads meet at a barrier after every operation: one that has lost its core to another process keeps the others
# waiting each time, so that on a busy machine fewer are faster. What this process computes itself is taken out of the
# reading, so that the number follows from what other processes do (docs/engine.md).

THREADS = "DPICL_THREADS"
_OF_LIBRARIES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_EVERY = 1.0
"""Seconds between two readings."""
_SPARE, _FREED = 0.4, 0.2
"""How much of a core others may use before a thread is given up, and before one is taken back. A process that wants a
whole core gets half of one or more beside as many threads as cores."""


def threads_said() -> int | None:
    """The number of threads that the environment fixes; None where it may follow the load.

    Raises:
        UsageError: `DPICL_THREADS` is not a number of threads.
    """
    text = os.environ.get(THREADS)
    if text and not (text.isascii() and text.isdigit() and int(text)):
        raise UsageError(f"{THREADS} must be a whole number from 1 on: the number of threads.")
    if text:
        return int(text)
    return torch.get_num_threads() if any(os.environ.get(name) for name in _OF_LIBRARIES) else None


def fixed_threads() -> int:
    """A number for work whose bits or times are compared: the environment's, or torch's."""
    return threads_said() or torch.get_num_threads()


class Threads:
    """Sets torch's number of threads, at most `most`, by the load of `cores`."""

    def __init__(self, most: int, cores: int) -> None:
        self._most = self._number = most
        self._cores, self._process, self._lock = cores, psutil.Process(), Lock()
        self._read = time.monotonic()
        self._others()

    def _others(self) -> float:
        """Cores that other processes used since it was last asked."""
        return float(self._cores * psutil.cpu_percent() - self._process.cpu_percent()) / 100

    def settle(self) -> None:
        """Set the number of threads for the calling thread."""
        with self._lock:
            if time.monotonic() - self._read > _EVERY:
                self._read, free = time.monotonic(), self._cores - self._others()
                self._number = max(1, min(max(self._number, int(free + _FREED)), int(free + _SPARE), self._most))
        torch.set_num_threads(self._number)


@cache
def threads_by_load() -> Threads:
    """The one instance of this process. A second one would start from the number that the first has set."""
    return Threads(min(torch.get_num_threads(), cores()), psutil.cpu_count() or 1)


# One thread computes.
#
# OpenMP keeps a team of threads for every thread that has computed. Where teams have more threads than there are cores,
# a team no longer waits awake from one operation to the next, and a pass takes half as long again
# (research/docs/engine.md). A server's handlers each run in a thread of their own. Loading is computing, too: while
# transformers reads a model it sets torch's default numbers for the whole process, and nothing else may make tensors.

_Asked = SimpleQueue[tuple[Future[Any], Callable[[], Any]]]
_one: list[_Asked] = []
_here = local()


def compute_in_one_thread() -> None:
    """From here on one thread of this process computes, whichever asks; the others wait for it."""
    if not _one:
        keep_freed_memory()  # a thread that has asked for memory before stays with an arena of its own
        _one.append(SimpleQueue())
        # The process does not wait for it at its end, as it would for an executor's: a model may be on its way.
        Thread(target=_compute, args=_one, name="computing", daemon=True).start()


def _compute(asked: _Asked) -> None:
    _here.computes = True
    while True:
        _answer(*asked.get())


def _answer(asked: Future[Any], work: Callable[[], Any]) -> None:
    try:
        asked.set_result(work())
    except BaseException as error:  # of any kind: whoever asked waits for it
        asked.set_exception(error)


def computing(work: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate what computes: it runs in the thread that computes, where there is one."""

    @wraps(work)
    def wherever(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        if not _one or hasattr(_here, "computes"):
            return work(*args, **kwargs)
        asked: Future[_T] = Future()
        _one[0].put((asked, partial(work, *args, **kwargs)))
        return asked.result()

    return wherever


# Telling the C library to keep freed memory.
#
# A forward pass on a CPU asks for large blocks and frees them, layer after layer. By default glibc gives them back
# to the kernel each time, which then has to clear them again page by page: up to a third of a pass.

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of mallopt(3)."""
_KEPT = 2**30
_MAPPED = 2**25
"""The largest threshold that glibc takes."""


def _c_library(holds: str) -> ctypes.CDLL | None:
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    return library if hasattr(library, holds) else None


def keep_freed_memory() -> None:
    """Keep up to 1 GiB of freed memory, in one arena for all threads; does nothing where there is no glibc."""
    if library := _c_library("mallopt"):
        for parameter, value in ((_MMAP_THRESHOLD, _MAPPED), (_TRIM_THRESHOLD, _KEPT), (_ARENA_MAX, 1)):
            library.mallopt(parameter, value)


def release_freed_memory() -> None:
    """Return freed memory to the system: room for the next model, and no rows of a run stay in it."""
    if library := _c_library("malloc_trim"):
        library.malloc_trim(0)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


# How many rows a device holds and computes at once, from its memory alone, so that shapes stay public.

_CPU, _ACCELERATOR = (128, 256, 4096), (4096, 1024, 2**16)
"""Positions of a step that keep the device busy, rows of a chunk at most, and positions of a pass at most.

More rows than keep it busy no longer come nearly free. Passes of more positions are hardly faster on a CPU, and the
first of each shape is compared (research/docs/engine.md).
"""
_SHARE_OF_A_CHUNK = 8
"""One part in eight of the free memory is for what a chunk computes; the rest is for keys and values."""


@dataclass(frozen=True)
class DeviceRoom:
    """What fits, for one model on one device.

    Attributes:
        free: bytes for keys, values and what a pass computes.
        busy: positions of a step that keep the device busy.
        most: rows of a chunk at most.
        at_once: positions of one forward pass at most.
        cache_bytes: of keys and values for one position of one row.
        state_bytes: that computing a position takes.
        score_bytes: that a position's attention to another one takes.
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
        # Of a CPU a fixed part, since its memory also holds the data.
        on_gpu = device.type == "cuda"
        free = torch.cuda.mem_get_info(device)[0] if on_gpu else total_memory() * 3 // 5
        busy, most, at_once = _CPU if device.type == "cpu" else _ACCELERATOR
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
        """Rows that go through the model together when each computes and attends to so many positions."""
        needed = computed * (held * self.score_bytes + self.state_bytes)
        return max(1, min(self.free // _SHARE_OF_A_CHUNK // needed, self.most))

    def in_a_pass(self, computed: int) -> int:
        """Rows of one forward pass at most, when each computes so many positions."""
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
                f"{self.free / 2**30:.1f} are there for it: lower the expected rows, the tokens of a prompt, or "
                "the exemplars."
            )


# Memory that runs out in spite of what was measured: another process took it meanwhile. Shapes are public, and so is
# how much memory they take: that it ran out tells of the machine, not of the rows. Every row of a batch is computed
# again in passes of a smaller shape, twice, so that equal rows still have equal numbers; then it is told in one line.

_FULL = (
    "The memory of this machine ran out while the model computed. Nothing more was released. Close what else uses it, "
    "or take fewer records at each step, shorter records, or a smaller model."
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
    """Do work; if memory runs out, do it again with half of the `rows` that a pass computes at present, twice.

    `work` may be started again at any time, with less room.
    """
    for _ in range(2):
        try:
            return work(room)
        except (MemoryError, RuntimeError) as error:
            if not _ran_out(error):
                raise
        gc.collect()  # not above, where the error holds on to what was computed
        release_freed_memory()
        room = replace(room, at_once=max(min(room.at_once, rows * positions) // 2, positions))
    return work(room)


_WORDS_OF_FULL = ("out of memory", "allocate memory", "cublas_status_alloc_failed", "cudnn_status_alloc_failed")
"""torch has no type of its own for the memory of a processor, of Apple's GPU, or of CUDA's libraries."""


def _ran_out(error: Exception) -> bool:
    told = str(error).lower()
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(each in told for each in _WORDS_OF_FULL)
