"""Threads follow the cores that other processes leave free; the load here is told, not measured."""

from __future__ import annotations

from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from mechanisms.errors import UsageError
from mechanisms.inference.engine import threads
from mechanisms.inference.engine.threads import Threads, configured_thread_count, fixed_thread_count
from mechanisms.inference.models.catalogue import load_model

CORES = 4
LIBRARIES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Machine:
    """A clock, and other processes that use so many cores."""

    def __init__(self) -> None:
        self.now = self.worked = self.others = 0.0

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        self.worked += self.others * seconds

    def threads(self) -> Threads:
        return Threads(CORES, CORES, lambda: self.worked, lambda: self.now, self.pass_by)


@pytest.fixture
def machine():
    return Machine()


@pytest.fixture
def settled(machine):
    """The number of threads after some seconds beside others that use so many cores."""
    before = torch.get_num_threads()
    follower = machine.threads()

    def after(others: float, seconds: float = 1.5) -> int:
        machine.others = others
        machine.pass_by(seconds)
        follower.settle()
        return torch.get_num_threads()

    yield after
    torch.set_num_threads(before)


def test_every_busy_neighbour_costs_a_thread_until_it_is_gone(settled):
    assert [settled(others) for others in (0, 1, 2, 3, 2, CORES + 3, 0, -2)] == [4, 3, 2, 1, 2, 1, 4, 4]


def share(wanting: int, ours: int, cores: int) -> float:
    """Cores that processes get which want one each, beside so many threads that never rest."""
    return min(wanting, cores * wanting / (wanting + ours))


@pytest.mark.parametrize(("wanting", "left"), [(0, 4), (1, 3), (2, 2), (3, 2), (12, 1)])
def test_neighbours_that_get_less_than_they_want_are_seen(settled, wanting, left):
    ours = CORES
    for _ in range(5):
        ours = settled(share(wanting, ours, CORES))
    assert ours == left


def test_a_small_load_moves_nothing_in_either_direction(settled):
    assert [settled(others) for others in (0.3, 0.1, 0.35)] == [4, 4, 4]
    assert [settled(others) for others in (1, 0.3, 0.25, 0.35, 0.1)] == [3, 3, 3, 3, 4]


def test_the_load_is_looked_at_once_a_second(settled):
    assert settled(3, seconds=0.5) == 4
    assert settled(3, seconds=0.6) == 1
    assert settled(0, seconds=0.5) == 1


def test_after_a_long_pause_the_load_of_now_counts(settled, machine):
    assert settled(3) == 1
    machine.others = 0
    machine.pass_by(1000)
    assert settled(3, seconds=0) == 1
    machine.others = 3
    machine.pass_by(1000)
    assert settled(0, seconds=0) == 4


def test_every_thread_that_computes_is_told(settled):
    """Torch remembers the number for each of them."""
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() > 0
        assert settled(2) == 2
        assert pool.submit(settled, 2).result() == 2


def test_work_of_this_process_is_no_load(monkeypatch):
    """A second of work counts where it is done elsewhere, and does not where it is done here."""
    machine = namedtuple("machine", "user system idle iowait steal guest")
    own, process = namedtuple("own", "user system"), namedtuple("process", "cpu_times")

    def reading(here=0, elsewhere=0, stolen=0, guest=0, idle=0):
        times = machine(here + elsewhere + guest, here, 100 + idle, idle, stolen, guest)
        monkeypatch.setattr(threads.psutil, "cpu_times", lambda: times)
        monkeypatch.setattr(threads.psutil, "Process", lambda: process(lambda: own(here, here)))
        return threads.seconds_of_other_processes()

    assert reading() == reading(here=5) == reading(idle=7) == 0
    assert reading(elsewhere=3, here=5) == reading(stolen=3, idle=7) == reading(guest=3) == 3


def test_what_is_set_holds(monkeypatch):
    for name in (threads.SETTING, *LIBRARIES):
        monkeypatch.delenv(name, raising=False)
    assert configured_thread_count() is None
    assert fixed_thread_count() == torch.get_num_threads()
    for name in LIBRARIES:
        monkeypatch.setenv(name, "1")
        assert configured_thread_count() == torch.get_num_threads(), "the library has read it"
        monkeypatch.delenv(name)
    monkeypatch.setenv(threads.SETTING, "3")
    assert configured_thread_count() == fixed_thread_count() == 3
    for wrong in ("0", "-1", "two", "1.5"):
        monkeypatch.setenv(threads.SETTING, wrong)
        with pytest.raises(UsageError, match=threads.SETTING):
            configured_thread_count()


@pytest.mark.nightly
def test_a_model_follows_the_load_unless_a_number_is_set(monkeypatch):
    before = torch.get_num_threads()
    for name in (threads.SETTING, *LIBRARIES):
        monkeypatch.delenv(name, raising=False)
    assert load_model().threads is threads.threads_by_load()
    torch.set_num_threads(before)
    monkeypatch.setenv(threads.SETTING, str(before + 1))
    assert load_model().threads is None
    assert torch.get_num_threads() == before + 1
    assert load_model(threads=before).threads is None
    assert torch.get_num_threads() == before
