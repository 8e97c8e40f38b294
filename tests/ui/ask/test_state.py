"""A reservation's way from an order to open questions, in every order of events, and what a page shows of it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpicl_ui.ask.state import AskState, Idle, Opening, Order, Prepared, Preparing
from dpicl_ui.data.state import DataState
from dpicl_ui.frame.sessions import Session
from mechanisms.errors import UsageError
from tests.ui.privacy.test_form import DATASET
from tests.ui.tabs import confirm

REQUEST: Any = SimpleNamespace(terms=lambda: "terms")
STRIDES = ("prepared", "begin", "opened")
OTHERS = ("prepare", "stop", "data_changed", "give_up", "reconsider")


def tab() -> tuple[DataState, AskState]:
    session = Session()
    confirm(session, DATASET)
    return session.of(DataState), session.of(AskState)


def order(data: DataState) -> Order:
    assert data.columns
    return Order(data.columns, DATASET, REQUEST, anew=False)


def session_of(ticket: int) -> Any:
    return f"the session of ticket {ticket}"


@dataclass
class Told:
    """What happened, and what may happen next by the story alone: the state machine is held against it."""

    data: DataState
    state: AskState
    happened: list[tuple[str, int]] = field(default_factory=list)
    tickets: int = 0

    def since(self, ticket: int) -> list[tuple[str, int]]:
        """What happened since a ticket was given, as far as it concerns it."""
        start = self.happened.index(("prepare", ticket))
        return [each for each in self.happened[start:] if each[0] != "reconsider"]

    def allowed(self, stride: str, ticket: int) -> bool:
        """A stride follows on the one before, and nothing lies between but other tickets' refused strides."""
        before = ("prepare", *STRIDES)[: STRIDES.index(stride) + 1]
        return ticket > 0 and self.since(ticket) == [(each, ticket) for each in before]

    def do(self, name: str, ticket: int) -> None:
        if name in STRIDES:
            self.stride(name, ticket)
        elif name == "prepare":
            self.prepare()
        else:
            self.other(name, ticket)

    def stride(self, name: str, ticket: int) -> None:
        arguments = (ticket, session_of(ticket)) if name == "opened" else (ticket,)
        if ticket and self.allowed(name, ticket):
            getattr(self.state, name)(*arguments)
            self.happened.append((name, ticket))
        else:
            with pytest.raises(UsageError):
                getattr(self.state, name)(*arguments)

    def prepare(self) -> None:
        if self.tickets and self.allowed("opened", self.tickets):  # being charged
            with pytest.raises(UsageError, match="wait"):
                self.state.prepare(order(self.data))
            return
        self.tickets += 1
        assert self.state.prepare(order(self.data)) == self.tickets
        self.happened.append(("prepare", self.tickets))

    def other(self, name: str, ticket: int) -> None:
        if name == "data_changed":
            self.data.rechoose()
            self.happened.append((name, 0))
        elif name == "give_up":
            self.state.give_up(ticket)
            if self.tickets == ticket > 0:
                self.happened.append((name, ticket))
        elif name == "stop":
            self.state.stop()
            if not (self.tickets and self.allowed("opened", self.tickets)):  # too late
                self.happened.append((name, 0))
        else:
            self.state.reconsider()

    def expected_open(self) -> Any:
        """The session that was opened last, unless the data has changed since."""
        for name, ticket in reversed(self.happened):
            if name == "data_changed":
                return None
            if name == "opened":
                return session_of(ticket)
        return None

    def holds(self) -> None:
        found = self.state.open
        assert (found.asking if found else None) == self.expected_open()


STEPS = [*((stride, back) for stride in STRIDES for back in (0, 1)), *((name, 0) for name in OTHERS)]


def play(names: Any) -> Told:
    told = Told(*tab())
    for name, back in names:
        told.do(name, max(0, told.tickets - back))
        told.holds()
    return told


WAY = [("prepare", 0), ("prepared", 0), ("begin", 0), ("opened", 0)]


@pytest.mark.parametrize("strides", range(5))
def test_from_every_stage_every_short_story_ends_as_told(strides: int):
    for rest in itertools.product([(name, 0) for name in (*STRIDES, *OTHERS)], repeat=3):
        play([*WAY[:strides], *rest])


@settings(max_examples=300)
@given(st.lists(st.sampled_from(STEPS), max_size=40))
def test_long_stories_end_as_told_too(names: list[tuple[str, int]]):
    play(names)


def test_the_way_to_open_questions():
    data, state = tab()
    ticket = state.prepare(order(data))
    seen = [type(state.stage)]
    state.prepared(ticket)
    seen.append(type(state.stage))
    state.begin(ticket)
    seen.append(type(state.stage))
    state.opened(ticket, session_of(ticket))
    assert [*seen, type(state.stage)] == [Preparing, Prepared, Opening, Idle]
    assert state.open is not None
    assert state.open.terms == "terms"


@pytest.mark.parametrize("stride", range(1, 4))
def test_a_change_of_data_at_any_stride_opens_nothing(stride: int):
    told = play([*WAY[:stride], ("data_changed", 0), *WAY[stride:]])
    assert told.state.open is None


@pytest.mark.parametrize(("stride", "opens"), [(1, False), (2, False), (3, True)])
def test_a_stop_ends_what_is_not_charged_yet(stride: int, opens: bool):
    told = play([*WAY[:stride], ("stop", 0), *WAY[stride:]])
    assert (told.state.open is not None) == opens


def test_a_reservation_stays_open_until_the_next_one_is():
    told = play([*WAY, *WAY[:3]])
    assert told.state.open is not None
    assert told.state.open.asking == session_of(1)
    told.do("opened", 2)
    assert told.state.open.asking == session_of(2)


def test_an_order_for_other_data_is_refused():
    data, state = tab()
    late = order(data)
    data.rechoose()
    with pytest.raises(UsageError, match="has changed"):
        state.prepare(late)


def test_embeddings_go_with_the_file_they_were_made_for():
    data, state = tab()
    embedder: Any = SimpleNamespace(name="toy", dimensions=2)
    assert data.columns
    first = state.vectors(data.columns, embedder)
    assert state.vectors(data.columns, embedder) is first
    assert state.vectors(data.rechoose(), embedder) is not first


@dataclass
class Page:
    """A page that looks at the state as `AskStep._wire_look` says: one call at a time, and once more if asked to."""

    state: AskState
    beat: int = 0
    beats: list[int] = field(default_factory=list)
    called: bool = False
    answer: bool | None = None
    again: bool = False
    box: bool = False

    def happens(self) -> None:
        """A handler has changed the state: a beat is on its way."""
        self.beats.append(self.state.beat())

    def beat_comes(self, which: int) -> None:
        """Any of the beats on their way; only another value triggers a call."""
        if self.beats:
            came = self.beats.pop(which % len(self.beats))
            if came != self.beat:
                self.beat = came
                self.again = self.called or self.again
                self.called = True

    def server_reads(self) -> None:
        if self.called and self.answer is None:
            self.answer = self.state.open is not None

    def answer_comes(self) -> None:
        if self.answer is not None:
            self.box, self.answer, self.called = self.answer, None, self.again
            self.again = False

    def settle(self) -> None:
        while self.beats or self.called:
            self.beat_comes(0)
            self.server_reads()
            self.answer_comes()


ARRIVALS = ("opens", "changes", "beat", "newest beat", "reads", "answer")


@settings(max_examples=400)
@given(st.lists(st.sampled_from(ARRIVALS), max_size=60))
def test_whatever_comes_late_the_box_is_there_when_questions_are_open(arrivals: list[str]):
    told = Told(*tab())
    page = Page(told.state)
    for each in arrivals:
        if each == "opens":
            for name, _ in WAY:
                told.do(name, told.tickets if name != "prepare" else 0)
            page.happens()
        elif each == "changes":
            told.do("data_changed", 0)
            page.happens()
        elif each in ("beat", "newest beat"):
            page.beat_comes(0 if each == "beat" else -1)
        else:
            (page.server_reads if each == "reads" else page.answer_comes)()
    page.settle()
    assert page.box == (told.state.open is not None)
