"""Processes that are killed (SIGKILL) at random moments of runs, answers and votes: what the ledger holds then.

A kill ends a process, not the machine: what a loss of power leaves rests on SQLite's `synchronous=FULL` and on the
disk.
"""

from __future__ import annotations

import pytest

from tests.killing import ENDS, MOMENTS, WORK, kill


@pytest.mark.slow
@pytest.mark.nightly
def test_whenever_a_process_is_killed_the_ledger_covers_what_was_released(data_folder, any_text_passes):
    found = kill(6, seed=1)
    assert sum(found[kind, moment] for kind in WORK for moment in MOMENTS) == 6
    assert sum(found[kind, end] for kind in WORK for end in ENDS) == 4  # runs and votes
