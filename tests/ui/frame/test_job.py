"""Long jobs of a tab: ordered once, at work once, stopped by the tab's own button, and free again however they end."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from dpicl_ui.frame.handlers import JobControls, Jobs, Order
from mechanisms.errors import UsageError
from tests.ui.tabs import in_page, services


class Counts(Jobs[int]):
    """Count up to the wanted number, which is not 13."""

    def refuse(self, wanted: int) -> None:
        if wanted == 13:
            raise UsageError("not 13")


class OtherCounts(Jobs[int]):
    """Another kind."""


TAB: Any = SimpleNamespace(session_hash="one", username=None)
NEXT: Any = SimpleNamespace(session_hash="two", username=None)


@pytest.fixture
def controls() -> JobControls[int]:
    return in_page(lambda: JobControls(services(), Counts, "Count", ("a", "b", "c")))


def counting(order: Order[int]) -> Iterator[Any]:
    for number in range(order.wanted):
        order.check("stopped")
        yield {"number": number}


def jobs(controls: JobControls[int], tab: Any = TAB) -> Counts:
    return controls._app.session(tab).of(Counts)


def test_an_order_is_worked_off_once(controls: JobControls[int]):
    jobs(controls).order(3)
    assert [each["number"] for each in controls.run(TAB, counting)] == [0, 1, 2]
    assert list(controls.run(TAB, counting)) == []


def test_the_last_of_two_orders_counts_and_none_is_taken_while_one_is_at_work(controls: JobControls[int]):
    jobs(controls).order(5)
    jobs(controls).order(2)
    running = controls.run(TAB, counting)
    next(running)
    assert jobs(controls).busy
    with pytest.raises(UsageError, match="wait"):
        jobs(controls).order(1)
    assert len(list(running)) == 1
    assert not jobs(controls).busy
    jobs(controls).order(1)


@pytest.mark.parametrize("how", ["button", "tab"])
def test_a_stop_ends_it_at_its_next_step_and_another_can_be_ordered(controls: JobControls[int], how: str):
    jobs(controls).order(5)
    running = controls.run(TAB, counting)
    next(running)
    if how == "button":
        controls.halt(TAB)
    else:
        jobs(controls).close()
    with pytest.raises(UsageError, match="stopped"):
        next(running)
    jobs(controls).order(1)
    assert len(list(controls.run(TAB, counting))) == 1, "the stop was meant for the job before"


def test_a_stop_reaches_no_other_tab_and_no_other_kind(controls: JobControls[int]):
    for tab in (TAB, NEXT):
        jobs(controls, tab).order(2)
    others = controls._app.session(TAB).of(OtherCounts)
    others.order(2)
    controls.halt(TAB)
    with others.taken() as other:
        assert not other.stop.is_set()
    assert len(list(controls.run(NEXT, counting))) == 2


@pytest.mark.parametrize("ending", ["closed", "failed"])
def test_however_it_ends_the_steps_are_closed_and_it_is_free_again(controls: JobControls[int], ending: str):
    told: list[str] = []

    def steps(order: Order[int]) -> Iterator[Any]:
        try:
            yield {"number": 0}
            raise RuntimeError
        finally:
            told.append("recorded")

    jobs(controls).order(1)
    running: Any = controls.run(TAB, steps)
    next(running)
    if ending == "closed":  # what Gradio does for a tab that is gone
        running.close()
    else:
        with pytest.raises(RuntimeError):
            next(running)
    assert told == ["recorded"]
    assert not jobs(controls).busy
