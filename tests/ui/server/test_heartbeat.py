"""The connection that an open page keeps: who may hold it, and what its end costs the others."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.server import places
from dpicl_ui.server.places import MOST_PAGES_OF_ONE, Heartbeats

PATIENCE = 10.0


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_LATE", 0.01)


class Event:
    def __init__(self) -> None:
        self.run_time, self.closed, self.signal = 0.0, False, asyncio.Event()


class Served:
    """What the connection asks of Gradio's app."""

    def __init__(self, *known: str, auth: Any = None) -> None:
        self.auth, self.tokens, self.cookie_id = auth, {"token": "Ada"}, "x"
        self.stop_event = asyncio.Event()
        self.state_holder = SimpleNamespace(session_data={name: SimpleNamespace(is_closed=False) for name in known})
        self.held: list[Any] = []
        self.unloaded: list[tuple[str | None, str | None]] = []
        self.events = {name: Event() for name in known}
        queue = SimpleNamespace(
            pending_event_ids_session={name: {name} for name in known}, event_ids_to_events=self.events
        )
        unload = SimpleNamespace(fn=self.unload, targets=[(0, "unload")])
        other = SimpleNamespace(fn=pytest.fail, targets=[(1, "click")])
        self.blocks = SimpleNamespace(_queue=queue, fns={0: unload, 1: other})

    def get_blocks(self) -> Any:
        return self.blocks

    def unload(self, request: gr.Request) -> None:
        self.held.append(self.state_holder.session_data.pop(request.session_hash, None))  # as the page does
        self.unloaded.append((request.username, request.session_hash))


class Page:
    """A page that keeps its connection until it is closed."""

    def __init__(self, served: Served, beats: Heartbeats, name: str, cookie: str = "") -> None:
        self.sent: list[Any] = []
        self.gone, self.beats = asyncio.Event(), beats
        self.scope = {
            "type": "http", "method": "GET", "path": f"/gradio_api/heartbeat/{name}", "query_string": b"",
            "headers": [(b"cookie", cookie.encode())], "app": served, "path_params": {"session_hash": name},
            "client": ("10.0.0.1", 1),
        }  # fmt: skip

    async def receive(self) -> Any:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def held(self) -> asyncio.Task[None]:
        task = asyncio.create_task(self.beats(self.scope, self.receive, self.send))
        while not self.sent:
            await asyncio.sleep(0)
        return task

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])


async def closed(page: Page) -> None:
    task = await page.held()
    page.gone.set()
    await asyncio.wait_for(task, PATIENCE)


def test_a_known_page_is_unloaded_when_it_goes_and_what_runs_for_it_ends():
    async def visit() -> Served:
        served = Served("mine", "hers")
        await closed(Page(served, Heartbeats(), "mine"))
        return served

    served = asyncio.run(visit())
    assert served.unloaded == [(None, "mine")] * 2  # what was still at work may have made a session in between
    assert [held and held.is_closed for held in served.held] == [True, None]
    assert not served.state_holder.session_data["hers"].is_closed
    assert (served.events["mine"].signal.is_set(), served.events["hers"].signal.is_set()) == (True, False)


def test_a_page_that_finds_its_way_back_is_not_forgotten_again(monkeypatch):
    async def visit() -> list[Any]:
        served, beats = Served("mine"), Heartbeats()
        first, second = Page(served, beats, "mine"), Page(served, beats, "mine")
        leaving = await first.held()
        first.gone.set()
        while not served.unloaded:
            await asyncio.sleep(0.01)
        back = await second.held()
        await asyncio.wait_for(leaving, PATIENCE)
        unloaded = [*served.unloaded]
        second.gone.set()
        await asyncio.wait_for(back, PATIENCE)
        return unloaded

    monkeypatch.setattr(places, "_LATE", 1.0)
    assert asyncio.run(visit()) == [(None, "mine")]


def test_a_name_that_nobody_knows_leaves_nothing_behind():
    async def visit() -> Served:
        served, beats = Served("hers"), Heartbeats()
        for number in range(50):
            await closed(Page(served, beats, f"guess {number}"))
        return served

    served = asyncio.run(visit())
    assert served.unloaded == []
    assert [*served.state_holder.session_data] == ["hers"]


def test_where_people_sign_in_a_stranger_is_refused_and_a_person_is_unloaded_by_name():
    async def visit() -> tuple[Served, Page, Page]:
        served = Served("hers", auth=lambda name, password: True)
        stranger = Page(served, Heartbeats(), "hers")
        await (await stranger.held())
        mine = Page(served, Heartbeats(), "hers", cookie="access-token-unsecure-x=token")
        await closed(mine)
        return served, stranger, mine

    served, stranger, mine = asyncio.run(visit())
    assert (stranger.status, mine.status) == (401, 200)
    assert served.unloaded == [("Ada", "hers")] * 2


def test_one_person_holds_so_many_and_a_closed_one_makes_room():
    async def visit() -> tuple[int, int]:
        served, beats = Served(), Heartbeats()
        pages = [Page(served, beats, str(number)) for number in range(MOST_PAGES_OF_ONE)]
        tasks = [await page.held() for page in pages]
        over = Page(served, beats, "one more")
        await (await over.held())
        pages[0].gone.set()
        await tasks[0]
        again = Page(served, beats, "again")
        tasks.append(await again.held())
        for page in (*pages, again):
            page.gone.set()
        await asyncio.gather(*tasks)
        return over.status, again.status

    assert asyncio.run(visit()) == (429, 200)


def test_a_server_that_stops_ends_the_connection(monkeypatch):
    async def visit() -> list[Any]:
        served = Served()
        page = Page(served, Heartbeats(), "mine")
        task = await page.held()
        served.stop_event.set()
        await asyncio.wait_for(task, PATIENCE)
        return page.sent

    monkeypatch.setattr(places, "_PAUSE", 0.01)
    sent = asyncio.run(visit())
    assert sent[-1] == {"type": "http.response.body", "body": b""}
