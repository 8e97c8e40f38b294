"""The screen after recorded events."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from dpicl_ui.generate.run_view import RunView, reduce
from mechanisms.runs.events import RunEvent


def replay(events: Iterable[RunEvent]) -> RunView:
    return functools.reduce(reduce, events, RunView())
