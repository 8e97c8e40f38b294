"""Notices an older copy of a ledger: how many writes there were is kept beside it as well.

A copy that is put back, by a restored backup or a synchronised folder, has forgotten what was spent since. The number
beside the ledger is raised under the ledger's own lock, by the next who opens it, to what has been committed. So no
crash makes it too large, and after one it is too small by one write at most. It notices accidents: whoever puts back
both files, or removes the number, is not found out.
"""

from __future__ import annotations

import os
from pathlib import Path

from mechanisms.errors import StudioError, UsageError

_DIGITS = 20


class NewestCount:
    """The file at `path`, mode 0600: the largest number of writes that its ledger was ever seen with."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self, writes: int) -> None:
        """Compare with a ledger's number of writes, while nobody else can write to it, and remember a larger one.

        Raises:
            UsageError: the ledger had more writes before, or the file cannot be used.
        """
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                seen = int(os.pread(file, _DIGITS, 0) or 0)
                if seen < writes:
                    os.pwrite(file, f"{writes:0{_DIGITS}d}".encode(), 0)
            finally:
                os.close(file)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"The ledger's count '{self._path}' cannot be used: check the folder's permissions and the room on the "
                "disk. Nothing is released meanwhile."
            ) from error
        if seen > writes:
            raise StudioError(
                f"The ledger beside '{self._path}' is older than the one that was used here last, and does not hold "
                "what was spent since: put the newest copy back. If there is none, count everything that it may have "
                "held as spent, remove that file, and use new names for new people's data alone."
            )
