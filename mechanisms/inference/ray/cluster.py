"""The Ray cluster that workers live in: the one that RAY_ADDRESS names, or a private one on this machine.

A private cluster keeps its files in a folder that only the user can open and that is removed at the end, spills nothing
to disk, and asks for a random token on every connection.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

import ray
import torch
from ray.exceptions import RayError

from mechanisms.errors import ModelUnavailable, UsageError

ADDRESS = "RAY_ADDRESS"
WORKERS = "DPICL_RAY_WORKERS"
_FEW = 2
"""Workers of a cluster without GPUs, where nothing else is asked for; one a machine, if there are more of these."""
_OBJECT_STORE_BYTES = 80 * 2**20  # about Ray's smallest: nothing is put there
_REACH_SECONDS = 10.0
_LONGEST_BASE = 30
"""Characters of a temporary folder's path; Ray puts sockets below it, whose paths are limited to about 100."""


@dataclass(frozen=True)
class Places:
    """How many workers a cluster is to have, and on how many threads each computes."""

    workers: int
    threads: int


@contextmanager
def connected(on_gpu: bool) -> Iterator[Places]:
    """A connection to the cluster of RAY_ADDRESS, or to a private one that ends with it.

    Args:
        on_gpu: a worker gets a GPU of its own; there are as many workers as GPUs.

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
                places = _private_places(wanted, on_gpu)
                prefix, base = "dpicl-", _base()
                folder = stack.enter_context(TemporaryDirectory(prefix=prefix, dir=base, ignore_cleanup_errors=True))
                _start(places.workers, Path(folder))
            else:
                _reach(address)
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
                places = _places(wanted, on_gpu)
        except (RayError, OSError, RuntimeError, ValueError) as error:
            where = "No Ray cluster can be started here" if private else f"{ADDRESS}={address} cannot be reached"
            raise ModelUnavailable(f"{where} ({type(error).__name__}): correct it, or use --engine local.") from error
        stack.callback(ray.shutdown)
        yield places


def _reach(address: str) -> None:
    host, _, port = address.rpartition(":")
    if port.isdigit():  # Ray itself would try for minutes
        socket.create_connection((host, int(port)), timeout=_REACH_SECONDS).close()


def _wanted() -> int | None:
    text = os.environ.get(WORKERS)
    if text is not None and not (text.isascii() and text.isdigit() and int(text)):
        raise UsageError(f"{WORKERS} must be a whole number from 1 on: the number of workers.")
    return int(text) if text else None


def _private_places(wanted: int | None, on_gpu: bool) -> Places:
    workers = wanted or (torch.cuda.device_count() if on_gpu else _FEW)
    return Places(workers, max(1, torch.get_num_threads() // workers))


def _places(wanted: int | None, on_gpu: bool) -> Places:
    resources = ray.cluster_resources()
    workers = wanted or int(resources.get("GPU", 1) if on_gpu else max(_FEW, len(ray.nodes())))
    return Places(workers, max(1, int(resources.get("CPU", 1)) // workers))


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
