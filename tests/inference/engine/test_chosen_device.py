"""Which device and number format are chosen, with what is missing here played by fakes."""

from __future__ import annotations

import warnings

import pytest
import torch

from mechanisms.errors import UsageError
from mechanisms.inference.engine import DEVICE
from mechanisms.inference.engine.device import chosen_device


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """A machine without any GPU."""
    monkeypatch.delenv(DEVICE, raising=False)
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


def gpus(monkeypatch, *capabilities: tuple[int, int]) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(capabilities))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(capabilities))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda place: capabilities[place.index or 0])
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda place: f"GPU {place.index or 0}")


def test_without_a_gpu_the_cpu_says_why():
    chosen = chosen_device()
    assert chosen.torch_device.type == "cpu"
    assert "without CUDA" in str(chosen)


@pytest.mark.parametrize(
    ("capability", "dtype"),
    [((9, 0), torch.bfloat16), ((8, 0), torch.bfloat16), ((7, 5), torch.float16), ((6, 1), torch.float32)],
)
def test_the_number_format_follows_the_capability(monkeypatch, capability, dtype):
    gpus(monkeypatch, capability)
    chosen = chosen_device()
    assert (chosen.torch_device.type, chosen.dtype) == ("cuda", dtype)
    assert f"{capability[0]}.{capability[1]}" in chosen.reason


def test_one_of_several_gpus_is_chosen(monkeypatch):
    gpus(monkeypatch, (9, 0), (7, 5))
    monkeypatch.setenv(DEVICE, "cuda:1")
    assert chosen_device().title.startswith("GPU 1")
    with pytest.raises(UsageError, match="only 2 GPUs"):
        chosen_device("cuda:2")


def test_a_driver_that_is_too_old_is_said(monkeypatch):
    def asked() -> bool:
        warnings.warn("CUDA initialization: The NVIDIA driver on your system is too old (found 11040).", stacklevel=2)
        return False

    gpus(monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_available", asked)
    assert "driver is too old" in chosen_device().reason
    with pytest.raises(UsageError, match="too old"):
        chosen_device("cuda")


def test_a_space_that_lends_its_gpu_by_the_call_computes_on_the_cpu(monkeypatch):
    gpus(monkeypatch, (9, 0))
    monkeypatch.setenv("SPACES_ZERO_GPU", "1")
    assert "ZeroGPU" in chosen_device().reason
    with pytest.raises(UsageError, match="ZeroGPU"):
        chosen_device("cuda")


def test_a_driver_that_breaks_is_said(monkeypatch):
    def broken() -> bool:
        raise RuntimeError("Unexpected error from cudaGetDeviceCount()\nmore")

    gpus(monkeypatch, (9, 0))
    monkeypatch.setattr(torch.cuda, "is_available", broken)
    assert "does not answer (Unexpected error from cudaGetDeviceCount())" in chosen_device().reason


def test_an_apple_gpu_comes_after_cuda_and_before_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert (chosen_device().torch_device.type, chosen_device().dtype) == ("mps", torch.float32)
    assert chosen_device("cpu").torch_device.type == "cpu"
    gpus(monkeypatch, (9, 0))
    assert chosen_device().torch_device.type == "cuda"


@pytest.mark.parametrize("asked", ["tpu", "cuda:x", "cuda:", "gpu"])
def test_an_unknown_device_is_refused(asked):
    with pytest.raises(UsageError, match="auto, cpu, cuda"):
        chosen_device(asked)


@pytest.mark.parametrize("asked", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_refused(asked):
    with pytest.raises(UsageError, match="another device"):
        chosen_device(asked)
