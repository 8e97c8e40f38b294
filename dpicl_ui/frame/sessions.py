"""The state of each open tab, and the ledger of each request."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TypeVar, cast

import gradio as gr

from mechanisms.accounting import PrivacyLedger

# What the server remembers for one open tab: the state of each step, in memory only, dropped when the tab closes.


class State:
    """The state of one step in one tab, made with the tab's session, from which it takes earlier steps' states."""

    def __init__(self, session: Session) -> None:
        """Take the states it follows from out of `session`."""

    def close(self) -> None:
        """The tab is closed: stop what runs."""


S = TypeVar("S", bound=State)


class Session:
    """The states of one tab, one for each type; the steps define the types."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a state that is being made may ask for another
        self._states: dict[type[State], State] = {}

    def of(self, kind: type[S]) -> S:
        with self._lock:
            if kind not in self._states:
                self._states[kind] = kind(self)
            return cast(S, self._states[kind])

    def close(self) -> None:
        with self._lock:
            states = list(self._states.values())
        for state in states:
            state.close()


class Sessions:
    """All open tabs, by Gradio's session hash."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}

    def of(self, request: gr.Request) -> Session:
        with self._lock:
            return self._sessions.setdefault(request.session_hash or "", Session())

    def drop(self, request: gr.Request) -> None:
        with self._lock:
            session = self._sessions.pop(request.session_hash or "", None)
        if session:
            session.close()


# Which ledger a request is charged to: the owner's, or on a public Space one that goes with the tab.


class CuratorLedger:
    """The installation's own ledger, which the command line uses too: whoever reaches the server is its owner.

    Attributes:
        footing: what the page says about whose ledger it is.
        warning: what it says before anything else.
        signed_in: somebody signed in, and may sign out.
        lasting: a ledger outlives the tab, and what is kept beside it.
    """

    warning = ""
    lasting = True

    def __init__(self, ledger: PrivacyLedger, signed_in: bool = False) -> None:
        self._ledger, self.signed_in = ledger, signed_in
        self.footing = (
            f"This server is yours alone: whoever {'signs in' if signed_in else 'opens it'} uses your ledger."
        )

    def of(self, request: gr.Request) -> PrivacyLedger:
        return self._ledger

    def drop(self, request: gr.Request) -> None:
        """The tab is closed, and the ledger stays."""


class TabLedgers:
    """One ledger for each open tab of a public Space, whose visitors are strangers to each other."""

    footing = "The ledger lasts as long as this page."
    warning = (
        "This is a public demonstration, no place for private data. The ledger lasts as long as this page: what is "
        "spent here is forgotten when you close it."
    )
    signed_in = lasting = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tabs: dict[str, tuple[tempfile.TemporaryDirectory[str], PrivacyLedger]] = {}

    def of(self, request: gr.Request) -> PrivacyLedger:
        with self._lock:
            tab = request.session_hash or ""
            if tab not in self._tabs:
                folder = tempfile.TemporaryDirectory(prefix="dpicl-", ignore_cleanup_errors=True)
                self._tabs[tab] = folder, PrivacyLedger(Path(folder.name))
            return self._tabs[tab][1]

    def drop(self, request: gr.Request) -> None:
        with self._lock:
            dropped = self._tabs.pop(request.session_hash or "", None)
        if dropped:
            dropped[0].cleanup()


Ledgers = CuratorLedger | TabLedgers
