"""Kills at random moments of runs, answers and votes; `python -m research.faults.kills` does 200 of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.slow
@pytest.mark.nightly
def test_whenever_a_process_is_killed_the_ledger_covers_what_was_released(data_folder):
    line = [sys.executable, "-m", "research.faults.kills", "--kills", "6"]
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    numbers = [
        [int(cell) for cell in line.split("|")[2:-1]]
        for line in ended.stdout.splitlines()
        if any(map(str.isdigit, line))
    ]
    killed, then = numbers[:3], numbers[3:]
    assert sum(map(sum, killed)) == 6
    assert sum(map(sum, then)) == 4  # runs and votes
