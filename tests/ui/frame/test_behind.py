"""Work behind the page is the same work: its values, its errors and its end, at a lower priority on Linux."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from dpicl_ui.frame.behind import behind


def own():
    return threading.get_native_id()


def test_all_values_come_from_one_other_thread_and_errors_come_through():
    def work():
        yield own()
        yield own()
        raise ValueError("no")

    run = behind(work())
    first, second = next(run), next(run)
    assert first == second != own()
    with pytest.raises(ValueError, match="no"):
        next(run)
    assert list(behind(iter_of(3))) == [0, 1, 2]


def iter_of(number):
    yield from range(number)


def test_closing_closes_the_work_before_it_returns():
    closed = []

    def work():
        try:
            yield 1
            yield 2
        finally:
            closed.append(own())

    run = behind(work())
    next(run)
    run.close()
    assert len(closed) == 1
    assert own() not in closed
    assert not any(thread.name == "behind" for thread in threading.enumerate())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_it_and_the_threads_that_it_starts_give_way_and_the_caller_does_not():
    def priority():
        return os.getpriority(os.PRIO_PROCESS, own())

    def work():
        yield priority()
        found = []
        thread = threading.Thread(target=lambda: found.append(priority()))
        thread.start()
        thread.join()
        yield found[0]

    before = priority()
    lowered = list(behind(work()))
    assert lowered[0] == lowered[1] > before
    assert priority() == before
