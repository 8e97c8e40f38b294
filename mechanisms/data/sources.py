"""Private rows by what a person calls their place: the path of a file, or a data set of the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from mechanisms.data.files import read_table
from mechanisms.data.hub import SCHEME, read_hub, repository_of
from mechanisms.data.table import Table

_SCHEME_OF_A_PATH = SCHEME.replace("//", "/")


def read_source(said: str | Path) -> Table:
    """A file as `read_table` reads it, or, with `SCHEME` before its name, a data set as `read_hub` does.

    Raises:
        DataError: see there.
    """
    said = _as_said(said)
    return read_hub(said) if said.startswith(SCHEME) else read_table(Path(said))


def name_of(said: str | Path) -> str:
    """What the ledger calls it unless it is told: a file's name, or the data set's, whichever split of it is read.

    The ledger keeps what was spent by name: under "train" one data set would pay for another.
    """
    said = _as_said(said)
    return repository_of(said) if said.startswith(SCHEME) else Path(said).stem


def _as_said(place: str | Path) -> str:
    """A place as a person writes it: a path has a single slash left of those behind a scheme."""
    if isinstance(place, Path) and place.as_posix().startswith(_SCHEME_OF_A_PATH):
        return SCHEME + place.as_posix().removeprefix(_SCHEME_OF_A_PATH)
    return str(place)
