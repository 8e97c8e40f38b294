"""What a press of Generate reads while somebody else's run is before it: its place, and about how long yet."""

from __future__ import annotations

import time
from typing import Any

import gradio as gr

from dpicl_ui.frame.guard import PRIVATE
from dpicl_ui.frame.line import Line, Place
from dpicl_ui.frame.sessions import Session, Sessions, State
from dpicl_ui.frame.tree import Tree, el, notice, panel
from dpicl_ui.generate.pace import Left
from dpicl_ui.generate.time_card import in_words

_LOOK_AGAIN = 1.0
"""Seconds between two looks at the line."""
_START = "() => [{__type__: 'update', active: true}]"
_LEFT = "You left the line. No row was read, and nothing is spent."


class LineState(State):
    """`left` is whether a press was taken out of the line, and the page does not say so yet.

    `shown` is what the page says of the line.
    """

    def __init__(self, session: Session) -> None:
        self.left = False
        self.shown: list[Tree] = []


class Waiting:
    """Components and handlers, which look on: how a run starts is none of their business.

    A page begins with a click's second listener when the first one's answer is whole, which is after the run. So the
    one here is made before the run's, and stays in the browser. The clock that it starts alone writes what is shown, so
    that no late answer of another one remains on the screen.
    """

    def __init__(self, sessions: Sessions, line: Line, *presses: Any) -> None:
        """Watch what begins runs.

        Args:
            presses: the events, such as a button's `click`.
        """
        self._sessions, self._line = sessions, line
        self._told: tuple[float, float] | None = None
        self.words = panel(elem_id="run-line")
        self.leave = gr.Button("Leave the line", size="sm", visible=False, elem_id="leave-line")
        self._clock = gr.Timer(_LOOK_AGAIN, active=False)
        for press in presses:
            press(None, None, self._clock, js=_START, **PRIVATE)

    def watch(self, *pressed: gr.events.Dependency) -> None:
        """Look for the presses that these answer."""
        self._presses = [each["id"] for each in pressed]
        self._clock.tick(self._look, None, [self.words, self.leave, self._clock], queue=False, **PRIVATE)
        self.leave.click(self._leave, None, None, queue=False, **PRIVATE)

    def tell(self, remaining: float | None, now: float) -> None:
        """Seconds that are left of the run under way on this server, where that is known; None when it ends.

        Args:
            remaining: public; see `foreseen_left`. Other people read it.
            now: seconds of `time.monotonic`.
        """
        self._told = None if remaining is None else (remaining, now)

    async def _look(self, request: gr.Request) -> dict[Any, Any]:
        state = self._sessions.of(request).of(LineState)
        places = [await self._line.place(request, press) for press in self._presses]
        if (place := next(filter(None, places), None)) is None:
            said, state.left, state.shown = notice(_LEFT, "info") if state.left else [], False, []
            return {self.words: said, self.leave: gr.Button(visible=False), self._clock: gr.Timer(active=False)}
        words, before = waiting(place, self._left(time.monotonic())), state.shown
        state.shown = words
        # The same words once more would be read out once more.
        return {self.leave: gr.Button(visible=True)} | ({self.words: words} if words != before else {})

    async def _leave(self, request: gr.Request) -> None:
        for press in self._presses:
            if await self._line.leave(request, press):
                self._sessions.of(request).of(LineState).left = True

    def _left(self, now: float) -> float | None:
        if (told := self._told) is None:
            return None
        remaining, when = told
        seconds = remaining - (now - when)
        return seconds if seconds > 0 else None


def waiting(place: Place, left: float | None) -> list[Tree]:
    """One line.

    Args:
        left: seconds of the run under way, where they are known. How long those take that wait between, nobody knows.
    """
    if place.number > 2:
        before = "Other runs are before yours"
    elif place.own:
        before = "Your own work with the model comes before this"
    else:
        before = "Somebody else's run is before yours"
    words = f"{before}: place {place.number}" if place.number > 1 else "Your run is next"
    if left is not None:
        words = f"{words}, {in_words(Left(left, 'at least ' if place.number > 2 else ''))}"
    return [el("p.spinner", words, role="status")]
