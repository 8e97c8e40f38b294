"""Where runs are written down while they go on: one file for a data set, in a folder beside its owner's ledger.

A file holds what its run released, and nothing else (`mechanisms/runs/journal.py`). Names are keyed digests and
the key by which the ledger knows the run, so that it can forget one whose file is damaged.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mechanisms.accounting import Fingerprint, PrivacyLedger, new_key
from mechanisms.errors import UsageError
from mechanisms.files import keyed_digest
from mechanisms.runs.journal import RunJournal

_FOLDER = "journals"


class Unfinished:
    """The runs of one ledger that have not ended."""

    def __init__(self, ledger: PrivacyLedger) -> None:
        self._ledger, self._folder = ledger, ledger.folder / _FOLDER

    def begin(self, data: Fingerprint) -> RunJournal:
        """The journal of a new run; what an older one has left stays until `replace`.

        Raises:
            UsageError: the folder cannot be made.
        """
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise UsageError(f"The folder '{self._folder}' cannot be used: check its permissions.") from error
        key = new_key()
        return RunJournal.new(self._folder / f"{_whose(data)}-{_what(data)}-{key}.jsonl", key)

    def replace(self, data: Fingerprint, journal: RunJournal) -> None:
        """The run has begun: the other ones under the data set's name cannot be gone on with any more."""
        for path in self._folder.glob(f"{_whose(data)}-*"):
            if path != journal.path:
                self.remove(path)

    def waits(self, data: Fingerprint) -> bool:
        """Whether there is a run on these very data that has not ended."""
        return any(self._of(data))

    def read(self, data: Fingerprint) -> RunJournal:
        """The journal of the run that has not ended.

        Raises:
            UsageError: there is none, or it cannot be read.
        """
        path = next(self._of(data), None)
        if path is None:
            raise UsageError("This run has ended, or was left: there is nothing to go on with.")
        return RunJournal.read(path, self._ledger)

    def leave(self, data: Fingerprint) -> None:
        """Remove the journal; see `remove`."""
        for path in self._of(data):
            self.remove(path)

    def remove(self, path: Path) -> None:
        """Remove a journal, if it is still there, and what the ledger holds of what its run told.

        Raises:
            UsageError: the folder cannot be written.
            StudioError: the ledger cannot be used; the journal stays.
        """
        self._ledger.forget(path.stem.rpartition("-")[2])
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"Cannot remove '{path}': check the permissions of its folder.") from error

    def _of(self, data: Fingerprint) -> Iterator[Path]:
        return self._folder.glob(f"{_whose(data)}-{_what(data)}-*")


def _whose(data: Fingerprint) -> str:
    return keyed_digest(("journal of", data.name, data.unit))[:32]


def _what(data: Fingerprint) -> str:
    return keyed_digest(("journal on", data.content))[:32]
