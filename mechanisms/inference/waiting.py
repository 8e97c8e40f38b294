"""Telling torch's threads not to wait busily for long.

By default GNU's OpenMP library, which torch brings along on Linux, lets a thread that waits for another one turn in a
loop for milliseconds. Beside a busy process it holds the very core that the other thread needs.
"""

from __future__ import annotations

import os

_SETTINGS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
_TURNS = "1000"
"""Turns of the loop before a thread sleeps, of 300,000 by default; alone they suffice (docs/engine.md)."""


def wait_briefly() -> None:
    """Set it, unless the environment says how to wait; the library reads it when torch is first imported."""
    if not any(name in os.environ for name in _SETTINGS):
        os.environ[_SETTINGS[0]] = _TURNS
