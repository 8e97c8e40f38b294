"""What a format of private files is, and which there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mechanisms.data.raw_file import RawFile
from mechanisms.data.reading import FLAGS, Reading
from mechanisms.data.table import Table
from mechanisms.discovery import defined
from mechanisms.errors import UsageError


@dataclass(frozen=True)
class FileFormat:
    """A format that private rows are read from.

    Attributes:
        title: for people, in a list of formats.
        suffixes: how names of such files end; where there is no mark, a file is known by them.
        read: the rows, each read by itself: none decides what is read of another.
        takes: the fields of a `Reading` that mean something for such a file.
        starts: the first bytes of every such file, by which it is known whatever its name is; empty for text.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    read: Callable[[RawFile, Reading], Table]
    takes: tuple[str, ...] = ()
    starts: bytes = b""

    def check(self, reading: Reading) -> None:
        """Refuse what means nothing for such a file.

        Raises:
            UsageError: it was said.
        """
        if foreign := [name for name in reading.said if name not in self.takes]:
            raise UsageError(
                f"A file of the kind {self.title} has no {foreign[0]} to say: leave out {FLAGS[foreign[0]]}."
            )


# Which formats there are: whatever modules of this package define `READER`.


def file_formats() -> list[FileFormat]:
    """All of them, in the order of their names."""
    found = defined("mechanisms.data", "READER")
    return [found[name] for name in sorted(found)]


def formats_in_words() -> str:
    """What a file may be, as a person is told."""
    *most, last = (each.title for each in file_formats())
    return f"{', '.join(most)} or {last}"


def format_of(start: bytes, suffix: str, otherwise: str) -> FileFormat:
    """The format of a file.

    Args:
        start: its first bytes, as many as `longest_mark`, or all that there are.
        suffix: how its name ends.
        otherwise: the name of the format of a text that no suffix says more of.
    """
    formats = file_formats()
    marked = [each for each in formats if each.starts and start.startswith(each.starts)]
    if marked:
        return max(marked, key=lambda each: len(each.starts))
    texts = [each for each in formats if not each.starts]
    named = [each for each in texts if suffix.lower() in each.suffixes]
    return (named or [each for each in texts if each.name == otherwise])[0]


def longest_mark() -> int:
    """Bytes of the longest mark."""
    return max(len(each.starts) for each in file_formats())
