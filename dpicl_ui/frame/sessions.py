"""The state of each open tab, and the ledger of each request."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import Protocol, TypeVar, cast

import gradio as gr

from mechanisms.accounting import PrivacyLedger
from mechanisms.accounts import Accounts, normalised, owner_folder
from mechanisms.errors import UsageError

# What the server remembers for one open tab: the state of each step, in memory only, dropped when the tab closes.


class State:
    """The state of one step in one tab, made with the tab's session, from which it takes earlier steps' states."""

    def __init__(self, session: Session) -> None:
        """Take the states it follows from out of `session`."""

    def close(self) -> None:
        """Stop what runs; called when the tab is closed."""


S = TypeVar("S", bound=State)


class Session:
    """The states of one tab, one for each type; the steps define the types."""

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
    """All open tabs, by Gradio's session hash and the signed-in name: a leaked hash opens nothing to others."""

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


# What Gradio remembers of a tab: all that its page has shown, rows of a preview and typed questions among it.
#
# It keeps that after the tab has closed, for the next 10,000 tabs, so that a page could be opened again by a link.
# Here no page can, and a closed tab's rows have no business in memory.


def forget_shown(page: gr.Blocks, tab: str) -> None:
    """Drop Gradio's copy of what a tab has shown."""
    held = page.state_holder
    with held.lock:
        held.session_data.pop(tab, None)
        held.time_last_used.pop(tab, None)


# Whose ledger a request is charged to: one curator's, each person's own, or one that goes with the tab.


class Ledgers(Protocol):
    """The ledgers of a server: names, digests, caps and reservations of one are not seen or changed through another.

    Attributes:
        footing: what the page says about whose ledger it is.
        warning: what it says before anything else.
        signed_in: somebody signed in, and may sign out.
        serves_programs: whoever comes in is known, so that programs may ask too; strangers' would take the model.
        lasting: a ledger outlives the tab, and what is kept beside it.
        own_account: whoever comes in is who runs the server, and may read what a token of this account may.
    """

    footing: str
    warning: str
    signed_in: bool
    serves_programs: bool
    lasting: bool
    own_account: bool

    def of(self, request: gr.Request) -> PrivacyLedger:
        """The ledger of whoever sent a request.

        Raises:
            UsageError: they may no longer use one.
        """

    def drop(self, request: gr.Request) -> None:
        """The tab is closed."""


class CuratorLedger:
    """The installation's own ledger, which the command line uses too: whoever reaches the server is its curator."""

    footing = "This server is yours alone: whoever opens it uses your ledger."
    warning = ""
    signed_in = False
    serves_programs = True
    lasting = True
    own_account = True

    def __init__(self, ledger: PrivacyLedger) -> None:
        self._ledger = ledger

    def of(self, request: gr.Request) -> PrivacyLedger:
        """The one ledger."""
        return self._ledger

    def drop(self, request: gr.Request) -> None:
        """Does nothing: the ledger stays."""


class OwnerLedgers:
    """One ledger for each person who signs in, in a folder of its own."""

    footing = "Your ledger is yours alone: nobody else who signs in here sees it or spends from it."
    warning = ""
    signed_in = True
    serves_programs = True
    lasting = True
    own_account = False

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._lock = threading.Lock()
        self._ledgers: dict[str, PrivacyLedger] = {}

    def of(self, request: gr.Request) -> PrivacyLedger:
        """See `Ledgers.of`; a person who was removed while signed in is refused."""
        name = normalised(request.username or "")
        if name not in self._accounts.names():
            raise UsageError("You can no longer use this server: ask who runs it.")
        with self._lock:
            if name not in self._ledgers:
                self._ledgers[name] = PrivacyLedger(owner_folder(name))
            return self._ledgers[name]

    def drop(self, request: gr.Request) -> None:
        """Does nothing: the ledger stays."""


class TabLedgers:
    """One ledger for each open tab, for visitors who are strangers to each other."""

    footing = "The ledger lasts as long as this page."
    warning = (
        "This is a public demonstration, no place for private data. The ledger lasts as long as this page: what is "
        "spent here is forgotten when you close it."
    )
    signed_in = False
    serves_programs = False
    lasting = False
    own_account = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tabs: dict[str, tuple[tempfile.TemporaryDirectory[str], PrivacyLedger]] = {}

    def of(self, request: gr.Request) -> PrivacyLedger:
        """See `Ledgers.of`."""
        with self._lock:
            tab = request.session_hash or ""
            if tab not in self._tabs:
                folder = tempfile.TemporaryDirectory(prefix="dpicl-", ignore_cleanup_errors=True)
                self._tabs[tab] = folder, PrivacyLedger(Path(folder.name))
            return self._tabs[tab][1]

    def drop(self, request: gr.Request) -> None:
        """The ledger goes with the tab."""
        with self._lock:
            dropped = self._tabs.pop(request.session_hash or "", None)
        if dropped:
            dropped[0].cleanup()
