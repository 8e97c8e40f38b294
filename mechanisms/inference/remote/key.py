"""The key of a server: from the environment alone, for the command line is in every list of processes."""

from __future__ import annotations

import os

from mechanisms.errors import UsageError

KEY_VARIABLE = "DPICL_API_KEY"


def key_from_environment() -> str | None:
    """The key, or None where none is set: a server of one's own may want none.

    Raises:
        UsageError: it holds something that no header can carry. A library's error would quote it.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{KEY_VARIABLE} holds characters that no key has: set it to the key alone.")
    return key or None
