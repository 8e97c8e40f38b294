"""Signing in: Gradio shows the form and calls this; whoever guesses passwords has to wait."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from mechanisms.accounts import Accounts, normalised
from mechanisms.errors import UsageError

_FREE = 5
"""Wrong passwords in a row before a name has to wait."""
_LONGEST_WAIT = 60.0
_REMEMBERED = 1000
"""Names with wrong passwords: to push one out takes longer than the longest wait."""


class Login:
    """Checks one password at a time, and none for a name that has to wait, whether or not somebody has that name."""

    def __init__(self, accounts: Accounts, clock: Callable[[], float] = time.monotonic) -> None:
        self._accounts, self._clock = accounts, clock
        self._turn = asyncio.Lock()
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    async def admits(self, name: str, password: str) -> bool:
        """Whether this person may enter. A coroutine, so that hashing holds nobody else's page up."""
        key = _key(name)
        async with self._turn:
            count, until = self._failures.get(key, (0, 0.0))
            if self._clock() < until:
                return False
            if await asyncio.to_thread(self._accounts.admits, name, password):
                self._failures.pop(key, None)
                return True
            self._failed(key, count + 1)
            return False

    def _failed(self, key: str, count: int) -> None:
        wait = 0.0 if count < _FREE else min(_LONGEST_WAIT, 2.0 ** min(count - _FREE, 10))
        self._failures[key] = count, self._clock() + wait
        self._failures.move_to_end(key)
        if len(self._failures) > _REMEMBERED:
            self._failures.popitem(last=False)


def _key(name: str) -> str:
    try:
        return normalised(name)
    except UsageError:  # all of them wait together
        return ""
