"""A container's memory and cores, from the files of control groups of both versions."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from mechanisms import files
from mechanisms.inference.engine import limits

GIB = 2**30


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Writes the files of control groups, and which groups this process is in."""
    monkeypatch.setattr(limits, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(limits, "_OWN", tmp_path / "own")

    def written(own: str, **files: str) -> None:
        (tmp_path / "own").write_text(own)
        for name, text in files.items():
            path: Path = tmp_path / "groups" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return written


def test_version_2(groups):
    groups(
        "0::/\n",
        **{"memory.max": f"{2 * GIB}\n", "memory.current": f"{GIB}\n", "cpu.max": "100000 100000\n"},
        **{"memory.stat": f"anon 5\ninactive_file {GIB // 4}\n"},
    )
    assert limits.total_memory() == 2 * GIB
    assert limits.available_memory() == min(psutil.virtual_memory().available, GIB + GIB // 4)
    assert limits.cores() == 1


def test_version_1(groups):
    groups(
        "4:memory:/job\n3:cpu,cpuacct:/job\n",
        **{"memory/job/memory.limit_in_bytes": str(3 * GIB), "memory/job/memory.usage_in_bytes": str(GIB)},
        **{"memory/job/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB // 2}\n"},
        **{"cpu,cpuacct/job/cpu.cfs_quota_us": "150000", "cpu,cpuacct/job/cpu.cfs_period_us": "100000"},
    )
    assert limits.total_memory() == 3 * GIB
    assert limits.available_memory() == min(psutil.virtual_memory().available, 2 * GIB + GIB // 2)
    assert limits.cores() == 1


def test_the_narrowest_group_around_counts(groups):
    inner, outer = ({"memory.max": str(size * GIB), "memory.current": "0"} for size in (4, 1))
    groups("0::/a/b\n", **{f"a/b/{k}": v for k, v in inner.items()}, **{f"a/{k}": v for k, v in outer.items()})
    assert limits.total_memory() == GIB


@pytest.mark.parametrize("cpu", ["max 100000", "-1 100000", ""])
def test_without_limits_it_is_the_machine(groups, cpu):
    groups("0::/\n", **{"memory.max": "max\n", "memory.current": "7\n", "cpu.max": cpu})
    assert limits.total_memory() == psutil.virtual_memory().total
    assert limits.cores() >= 1
    assert list(limits._quotas()) == []


def test_nothing_is_left_of_a_group_that_is_full(groups):
    groups("0::/\n", **{"memory.max": "10", "memory.current": "20"})
    assert limits.available_memory() == 0


def test_a_spaces_disk_keeps_the_ledger(monkeypatch, tmp_path):
    monkeypatch.delenv("DPICL_HOME", raising=False)
    monkeypatch.setattr(files, "_SPACE_DISK", tmp_path)
    assert not files.data_place().is_relative_to(tmp_path)
    monkeypatch.setenv("SPACE_ID", "me/studio")
    assert files.data_place() == tmp_path / "dpicl-studio"
    monkeypatch.setattr(files, "_SPACE_DISK", tmp_path / "none")
    assert not files.data_place().is_relative_to(tmp_path)
