"""The line before the model is Gradio's own: places in it, and the way out of it, hold in its real queue."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from gradio.data_classes import PredictBodyInternal
from gradio.server_messages import ProcessCompletedMessage

from dpicl_ui.frame.guard import MODEL, PRIVATE, Line, Place

SECRET = "Canary Q. Person"


def tab(name: str, person: str | None = None) -> Any:
    return SimpleNamespace(session_hash=name, username=person)


class Server:
    """A page of two buttons that use the model, and the queue that nobody works off."""

    def __init__(self) -> None:
        with gr.Blocks() as self.page:
            shown = gr.Textbox()
            self.presses = [gr.Button().click(lambda: "", None, shown, **MODEL, **PRIVATE)["id"] for _ in range(2)]
        self.queue, self.line = self.page._queue, Line(self.page)
        self.queue.active_jobs = [None] * 4

    async def press(self, who: Any, which: int = 0) -> None:
        body = PredictBodyInternal(fn_index=self.presses[which], session_hash=who.session_hash, data=[SECRET])
        taken, _, _ = await self.queue.push(body, None, who.username)
        assert taken

    def next(self) -> None:
        """Its turn has come."""
        turn = self.queue.get_events()
        assert turn
        self.queue.active_jobs[0] = turn[0]

    async def place(self, who: Any, which: int = 0) -> Place | None:
        return await self.line.place(who, self.presses[which])

    async def leave(self, who: Any, which: int = 0) -> bool:
        return await self.line.leave(who, self.presses[which])


def at(story: Any) -> None:
    """Gradio's queue belongs to an event loop."""

    async def told() -> None:
        await story(Server())

    coroutine: Coroutine[Any, Any, None] = told()
    asyncio.run(coroutine)


def test_each_tab_learns_its_own_place_and_the_one_under_way_counts():
    async def story(server: Server) -> None:
        for who in "abc":
            await server.press(tab(who))
        server.next()
        assert await server.place(tab("a")) is None
        assert await server.place(tab("b")) == Place(2, own=False)
        assert await server.place(tab("c")) == Place(3, own=False)
        assert await server.place(tab("stranger")) is None

    at(story)


def test_whatever_uses_the_model_is_before_a_run():
    async def story(server: Server) -> None:
        await server.press(tab("a"), which=1)
        await server.press(tab("b"))
        assert await server.place(tab("b")) == Place(2, own=False)
        assert await server.place(tab("a")) is None
        assert await server.place(tab("a"), which=1) == Place(1, own=True)

    at(story)


def test_work_of_the_same_tab_is_not_called_somebody_elses():
    async def story(server: Server) -> None:
        await server.press(tab("a"), which=1)
        server.next()
        await server.press(tab("a"))
        assert await server.place(tab("a")) == Place(2, own=True)

    at(story)


@pytest.mark.parametrize("person", [None, "Ben"])
def test_a_tabs_number_alone_opens_nothing(person: str | None):
    async def story(server: Server) -> None:
        await server.press(tab("a", "Ada"))
        assert await server.place(tab("a", person)) is None
        assert not await server.leave(tab("a", person))
        assert await server.place(tab("a", "Ada"))

    at(story)


def test_who_leaves_is_answered_and_the_others_move_up():
    async def story(server: Server) -> None:
        for who in "abc":
            await server.press(tab(who))
        server.next()
        assert await server.leave(tab("b"))
        assert await server.place(tab("b")) is None
        assert await server.place(tab("c")) == Place(2, own=False)
        answer = server.queue.pending_messages_per_session["b"].get_nowait()
        while not isinstance(answer, ProcessCompletedMessage):
            answer = server.queue.pending_messages_per_session["b"].get_nowait()
        assert answer.success
        assert answer.output["data"] == [gr.skip()]
        server.queue.active_jobs[0] = None
        server.next()
        assert server.queue.active_jobs[0][0].session_hash == "c"

    at(story)


def test_a_run_that_has_begun_is_not_taken_away():
    async def story(server: Server) -> None:
        await server.press(tab("a"))
        server.next()
        assert not await server.leave(tab("a"))
        assert server.queue.active_jobs[0][0].alive

    at(story)


def test_the_model_is_free_when_nobody_uses_it_or_waits():
    async def story(server: Server) -> None:
        assert server.line.free()
        await server.press(tab("a"))
        assert not server.line.free()
        server.next()
        assert not server.line.free()
        server.queue.active_jobs[0] = None
        assert server.line.free()

    at(story)


def test_a_place_holds_nothing_of_the_others():
    async def story(server: Server) -> None:
        await server.press(tab("a", "Ada"))
        await server.press(tab("b", "Ben"))
        place = await server.place(tab("b", "Ben"))
        assert vars(place) == {"number": 2, "own": False}

    at(story)
