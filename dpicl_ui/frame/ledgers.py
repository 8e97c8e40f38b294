"""Whose ledger a request is charged to: one curator's, each person's own, or one that goes with the tab."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import Protocol

import gradio as gr

from mechanisms.accounting import PrivacyLedger
from mechanisms.accounts import Accounts, normalised, owner_folder
from mechanisms.errors import UsageError


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
        """The ledger stays."""


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
        """The ledger stays."""


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
