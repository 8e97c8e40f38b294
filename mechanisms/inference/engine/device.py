"""The choice of the device and of the number format, with the reason."""

from __future__ import annotations

import os
import platform
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.utils import deterministic

from mechanisms.errors import UsageError
from mechanisms.inference.engine import DEVICE

AUTO, CPU, CUDA, MPS = "auto", "cpu", "cuda", "mps"
_NAMES = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
_BFLOAT16, _FLOAT16 = (8, 0), (7, 0)
"""The lowest compute capabilities at which a GPU multiplies these formats faster than float32."""
_AMD = "AuthenticAMD"
_ZERO = "SPACES_ZERO_GPU"
"""Set on a Hugging Face Space that lends a GPU to single calls."""


@dataclass(frozen=True)
class Device:
    """The device of a model, the number format of weights and activations, and the reason for both."""

    torch_device: torch.device
    dtype: torch.dtype
    title: str
    reason: str

    def __str__(self) -> str:
        return f"{self.title} in {str(self.dtype).removeprefix('torch.')} ({self.reason})"


def chosen_device(name: str | None = None) -> Device:
    """The device that computes here.

    Args:
        name: auto, cpu, cuda, cuda:1, mps; by default the value of `DPICL_DEVICE`, else auto: CUDA, then Apple's GPU,
            then the CPU.

    Raises:
        UsageError: there is no such device here.
    """
    name = (name or os.environ.get(DEVICE, "")).strip().lower() or AUTO
    if not _NAMES.fullmatch(name):
        raise UsageError(f"{DEVICE} must be auto, cpu, cuda, cuda:1 (a number) or mps, not '{name}'.")
    if name == CPU:
        return _cpu("it was asked for")
    if name == MPS:
        if not torch.backends.mps.is_available():
            raise UsageError("There is no Apple GPU that torch can use: choose another device.")
        return _mps()
    missing = _no_cuda(name)
    if missing is None:
        return _cuda(torch.device(CUDA if name == AUTO else name))
    if name != AUTO:
        raise UsageError(f"'{name}' cannot be used: {missing}. Choose another device.")
    return _mps() if torch.backends.mps.is_available() else _cpu(missing)


def _no_cuda(name: str) -> str | None:
    """The reason why CUDA cannot be used here; None if it can."""
    if os.environ.get(_ZERO):
        return "ZeroGPU lends a GPU to single calls, and a run keeps its model on one"
    if torch.version.cuda is None and torch.version.hip is None:
        return "this torch was built without CUDA"
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        except RuntimeError as error:  # a driver that fails when queried
            return f"the NVIDIA driver does not answer ({str(error).splitlines()[0]})"
    if count == 0:
        told = " ".join(str(each.message) for each in heard)
        return "the CUDA driver is too old for this torch" if "too old" in told else "there is no NVIDIA GPU"
    number = int(name.partition(":")[2] or 0)
    return None if number < count else f"there are only {count} GPUs, counted from 0"


def _cuda(place: torch.device) -> Device:
    major, minor = torch.cuda.get_device_capability(place)
    dtype, reason = torch.float32, "has no fast shorter format"
    if (major, minor) >= _BFLOAT16:
        dtype, reason = torch.bfloat16, "multiplies bfloat16 fast"
    elif (major, minor) >= _FLOAT16:
        dtype, reason = torch.float16, "is fast in float16 but not in bfloat16; logits are float32"
    return Device(place, dtype, f"{titled(place)} ({place})", f"compute capability {major}.{minor} {reason}")


def _mps() -> Device:
    return Device(
        torch.device(MPS), torch.float32, titled(torch.device(MPS)), "it has no float64, which the CPU computes"
    )


def _cpu(reason: str) -> Device:
    return Device(torch.device(CPU), cpu_dtype(), titled(torch.device(CPU)), reason)


def titled(place: torch.device) -> str:
    """A device's name for people."""
    if place.type == CUDA:
        return str(torch.cuda.get_device_name(place))
    return {CPU: "CPU", MPS: "Apple GPU"}.get(place.type, str(place))


def cpu_dtype() -> torch.dtype:
    """bfloat16 if the processor multiplies it faster than float32 (research/docs/engine.md), else float32.

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
    """Whether AMD made the processor: Linux states it in a file, Windows in the processor's name."""
    with suppress(OSError):
        if _AMD in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
            return True
    return _AMD in platform.processor()


def prepare(device: Device) -> None:
    """Make a GPU compute the same numbers in every run: deterministic kernels, float32 products in full precision."""
    if device.torch_device.type == CUDA:
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
    """The device of a model's inputs: its own, or the first GPU of a model in parts."""
    if not in_parts(model):
        return torch.device(model.device)
    return torch.device(next((each for each in model.hf_device_map.values() if each not in (CPU, "disk")), CPU))
