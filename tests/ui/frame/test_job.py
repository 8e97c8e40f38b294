"""Long jobs of a tab: ordered once, at work once, stopped by the tab's own button, and free again however they end."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.frame.job import JobControls, Jobs, Order, Passing, Updates, paced
from dpicl_ui.frame.sessions import Sessions
from mechanisms.errors import UsageError
from tests.ui.tabs import services


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
    async def built() -> JobControls[int]:
        with gr.Blocks():
            return JobControls(services(Sessions(), None), Counts, "Count", ("a", "b", "c"))

    return asyncio.run(built())


def counting(order: Order[int]) -> Generator[Updates | Passing]:
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


def test_a_stop_before_it_begins_reaches_it(controls: JobControls[int]):
    jobs(controls).order(5)
    controls.halt(TAB)
    with pytest.raises(UsageError, match="stopped"):
        list(controls.run(TAB, counting))


def test_a_stop_reaches_no_other_tab_and_no_other_kind(controls: JobControls[int]):
    for tab in (TAB, NEXT):
        jobs(controls, tab).order(2)
    other = controls._app.session(TAB).of(OtherCounts).order(2)
    controls.halt(TAB)
    assert not other.stop.is_set()
    assert len(list(controls.run(NEXT, counting))) == 2


@pytest.mark.parametrize("ending", ["closed", "failed"])
def test_however_it_ends_the_steps_are_closed_and_it_is_free_again(controls: JobControls[int], ending: str):
    told: list[str] = []

    def steps(order: Order[int]) -> Generator[Updates | Passing]:
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


def test_passing_updates_are_left_out_and_no_others(monkeypatch: pytest.MonkeyPatch):
    made: list[int] = []

    def passing(number: int) -> Passing:
        return Passing(lambda: made.append(number) or {"passing": number})  # type: ignore[func-returns-value]

    def steps() -> Generator[Updates | Passing]:
        for number in range(10):
            yield passing(number)
            yield {"kept": number}

    monkeypatch.setattr("dpicl_ui.frame.job._INTERVAL", 1e9)  # however slow the machine is
    shown = list(paced(steps()))
    assert [each["kept"] for each in shown if "kept" in each] == list(range(10))
    assert made == [0] == [each["passing"] for each in shown if "passing" in each]
