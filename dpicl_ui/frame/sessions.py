"""What the server remembers for one open tab: the state of each step, in memory only, dropped when the tab closes."""

from __future__ import annotations

import threading
from typing import TypeVar, cast

import gradio as gr


class State:
    """What one step remembers in one tab. Made with the tab's session, where the states of earlier steps are found."""

    def __init__(self, session: Session) -> None:
        """Take the states it follows from out of `session`."""

    def close(self) -> None:
        """The tab is closed: stop what runs."""


S = TypeVar("S", bound=State)


class Session:
    """One tab: a state for each type of state that was asked for. Which types there are is the steps' business."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a state that is being made may ask for another
        self._states: dict[type[State], State] = {}

    def of(self, kind: type[S]) -> S:
        """The state of a type, made on first use."""
        with self._lock:
            if kind not in self._states:
                self._states[kind] = kind(self)
            return cast(S, self._states[kind])

    def close(self) -> None:
        """Stop what runs in this tab."""
        with self._lock:
            states = list(self._states.values())
        for state in states:
            state.close()


class Sessions:
    """All open tabs, by Gradio's session hash and by who signed in: a hash that leaks opens nothing to others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[tuple[str, str], Session] = {}

    def of(self, request: gr.Request) -> Session:
        """The session of a request, made on first use."""
        with self._lock:
            return self._sessions.setdefault(_tab(request), Session())

    def drop(self, request: gr.Request) -> None:
        """The tab is closed: stop what runs there and forget its data."""
        with self._lock:
            session = self._sessions.pop(_tab(request), None)
        if session:
            session.close()


def _tab(request: gr.Request) -> tuple[str, str]:
    return request.username or "", request.session_hash or ""
