"""Memory and cores available to this process: the machine's, or its container's if these are fewer.

psutil and torch report the machine's. A container's bounds are in the files of its control group (cgroup version 2, or
1), and in those of the groups around it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import psutil

_GROUPS, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_LIMITS = ("memory.max", "memory.high", "memory.limit_in_bytes")
_USED = ("memory.current", "memory.usage_in_bytes")
_CACHED = ("inactive_file", "total_inactive_file")
"""Entries of `memory.stat`: file pages that the kernel frees on demand."""


def total_memory() -> int:
    """Bytes of memory of the machine or the container."""
    return min([int(psutil.virtual_memory().total), *(limit for limit, _ in _memory())])


def available_memory() -> int:
    """Bytes that can still be allocated."""
    return max(0, min([int(psutil.virtual_memory().available), *(limit - used for limit, used in _memory())]))


def cores() -> int:
    """Cores that this process may keep busy, at least one."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1
    return max(1, math.floor(min([mine, *_quotas()])))


def _memory() -> Iterator[tuple[int, int]]:
    """Limit and use of every control group of this process that has a limit."""
    for group in _around("memory"):
        limit, used = _first(group, _LIMITS), _first(group, _USED)
        if limit is not None and used is not None:
            yield limit, used - _cached(group)


def _cached(group: Path) -> int:
    lines = (line.split() for line in _read(group / "memory.stat").splitlines())
    found = {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}
    return next((found[name] for name in reversed(_CACHED) if name in found), 0)


def _quotas() -> Iterator[float]:
    """Core limits of every control group of this process."""
    for group in _around("cpu"):
        numbers = _read(group / "cpu.max").split() or [
            _read(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")
        ]
        if len(numbers) == 2 and all(each.isdecimal() for each in numbers):  # "max", or -1: no limit
            yield int(numbers[0]) / max(1, int(numbers[1]))


def _around(controller: str) -> Iterator[Path]:
    """The folders of this process's control groups, innermost first, of both versions."""
    for line in _read(_OWN).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for root in (_GROUPS / controller, _GROUPS / controllers) if controllers else (_GROUPS, _GROUPS / "unified"):
            own = root / path.lstrip("/")
            yield from (each for each in (own, *own.parents) if each.is_relative_to(root) and each.is_dir())


def _first(group: Path, names: tuple[str, ...]) -> int | None:
    found = (_read(group / name).strip() for name in names)
    return next((int(each) for each in found if each.isdecimal()), None)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
