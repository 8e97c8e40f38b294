"""Finished runs that a reload of their page finds again: in memory, and as what their run files would hold.

A run is found by the random key that the browser keeps with its tab, and by who signed in. Kept are the releases, the
name and the content's keyed digest of the data set, and nothing else that follows from its rows.
"""

from __future__ import annotations

import re
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import gradio as gr

from dpicl_ui.frame.sessions import Session, State
from dpicl_ui.generate.replay import own_run
from dpicl_ui.generate.state import GenerateState, Made, Run
from mechanisms.accounting import Fingerprint, PrivacyLedger
from mechanisms.errors import StudioError, UsageError
from mechanisms.runs.run_file import ENDS, from_lines

AGE = 1800.0
"""Seconds for which a run is kept after its page was closed."""
MOST_RUNS, MOST_BYTES = 50, 64 * 2**20
"""That are kept on a server; beyond these the oldest go first."""
_KEY = re.compile(r"[0-9a-f]{32}")
_UNDER_WAY = "A run is under way: stop it, or wait."


class TabKey(State):
    """By what a tab's finished run is found again: who signed in, and the browser's key; None where it has none."""

    def __init__(self, session: Session) -> None:
        self.value: tuple[str, str] | None = None
        self.runs: KeptRuns | None = None

    def close(self) -> None:
        """See `State.close`."""
        if self.runs is not None:
            self.runs.closed(self)
        self.value = self.runs = None


@dataclass(eq=False, repr=False)
class _Kept:
    """A finished run.

    Attributes:
        file: its run file, packed.
        of: the data set, without digests of its rows.
        owner: the open page that has it, or had it last.
        ledger: where marks of the data set are noted while that page is open; `marks` are those from before.
        until: when it goes; None while the page is open.
    """

    file: bytes
    of: Fingerprint
    owner: TabKey
    ledger: PrivacyLedger
    marks: tuple[str, ...] = ()
    until: float | None = None

    def marked(self) -> tuple[str, ...]:
        """All marks that are known by now."""
        return tuple(sorted({*self.marks, *(self.ledger.rows.marks(self.of) if self.until is None else ())}))


class KeptRuns:
    """All of a server; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._runs: dict[tuple[str, str], _Kept] = {}

    def know(self, session: Session, key: object, request: gr.Request) -> bool:
        """Take the key that the browser keeps with a tab; gives whether it is one."""
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            return False
        tab = session.of(TabKey)
        tab.value, tab.runs = (request.username or "", key), self
        return True

    def keep(self, session: Session, ledger: PrivacyLedger) -> None:
        """Keep a tab's finished run; one that has no run file is not kept."""
        tab, made = session.of(TabKey), session.of(GenerateState).made
        if tab.value is None or made is None:
            return
        with suppress(StudioError):
            file = zlib.compress(own_run(session, ledger).encode())
            of = Fingerprint(made.of.name, made.of.unit, made.of.content)
            with self._lock:
                self._runs.pop(tab.value, None)
                self._runs[tab.value] = _Kept(file, of, tab, ledger)
                self._sweep()

    def drop(self, session: Session) -> None:
        """Keep a tab's run no longer."""
        with self._lock:
            if (key := session.of(TabKey).value) is not None:
                self._runs.pop(key, None)

    def restore(self, session: Session, ledger: PrivacyLedger) -> bool:
        """Give a tab that knows of no run the one that was kept for it; gives whether there was one.

        Raises:
            StudioError: the ledger cannot be used.
        """
        state, tab = session.of(GenerateState), session.of(TabKey)
        if state.run is not None or state.made is not None or (kept := self._taken(tab, ledger)) is None:
            return False
        *events, end = from_lines(zlib.decompress(kept.file).decode())
        assert isinstance(end, ENDS)
        end = replace(end, demo_set=end.demo_set.with_marks(kept.marks))
        state.restore(Run(recording=[*events, end]), Made(end.demo_set, kept.of))
        return True

    def closed(self, tab: TabKey) -> None:
        """A page was closed, whose ledger may go next: from now on its run has an end."""
        with self._lock:
            kept = self._runs.get(tab.value) if tab.value else None
            if tab.value is None or kept is None or kept.owner is not tab:  # a reload may have it already
                return
            try:
                kept.marks = kept.marked()
            except StudioError:  # what has to be on the set is not known
                del self._runs[tab.value]
                return
            kept.until = self._clock() + AGE
        later = threading.Timer(AGE, self.sweep)
        later.daemon = True
        later.start()

    def sweep(self) -> None:
        """Drop what is too old."""
        with self._lock:
            self._sweep()

    def _taken(self, tab: TabKey, ledger: PrivacyLedger) -> _Kept | None:
        with self._lock:
            self._sweep()
            kept = self._runs.get(tab.value) if tab.value else None
            if kept is not None:
                # The page before may still be open to the server, and its ledger then has the newest marks.
                kept.marks, kept.owner, kept.ledger, kept.until = kept.marked(), tab, ledger, None
            return kept

    def _sweep(self) -> None:
        now = self._clock()
        for key in [key for key, kept in self._runs.items() if kept.until is not None and kept.until <= now]:
            del self._runs[key]
        while len(self._runs) > MOST_RUNS or sum(len(kept.file) for kept in self._runs.values()) > MOST_BYTES:
            del self._runs[next(iter(self._runs))]


def forgotten(session: Session, runs: KeptRuns) -> None:
    """Forget a tab's run and its set.

    Raises:
        UsageError: one is under way.
    """
    state = session.of(GenerateState)
    if state.under_way:
        raise UsageError(_UNDER_WAY)
    state.forget()
    runs.drop(session)
