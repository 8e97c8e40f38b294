"""The lines of a text file, each decoded by itself in the one encoding of the file."""

from __future__ import annotations

import codecs
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from mechanisms.data.encodings import (
    ENCODINGS,
    ISO_2022_JP,
    UTF8,
    UTF16,
    WINDOWS_1252,
    decoded,
    encodings_named,
    fits,
    recognised,
)
from mechanisms.data.raw_file import RawFile
from mechanisms.data.reading import Reading, ReadingAsked
from mechanisms.errors import DataError, UsageError

_MARKS = {codecs.BOM_UTF8: UTF8, codecs.BOM_UTF16_LE: UTF16, codecs.BOM_UTF16_BE: UTF16}
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_BLOCK = 2**20
_SAMPLE = 200
"""Lines that an encoding is recognised by."""
_LONGEST = 2**12
"""Bytes of a line that count there."""
_HALF_ZERO, _OTHER_HALF = 0.03, 0.1
"""The least share of zero bytes at even, or at odd, places of UTF-16 without a mark, and how many of these there are at
most at the others: the high bytes of separators and line ends are zero in any script."""
_ESCAPES = b"\x1b$"
"""Begins Japanese in ISO-2022-JP, whose bytes are all ASCII's."""


@dataclass(repr=False)
class TextLines:
    """A text file.

    Attributes:
        mark: the byte-order mark that it begins with, if any.
        encodings: of every line, the first that fits it; see `encodings_named`.
        said: whether its owner, or its mark, named the encoding. Where nobody did, a line that is not UTF-8 is asked
            about.
        found: lines read so far that are not in the first encoding, by the one that they are in; by None those with
            bad bytes, which are replaced.
    """

    raw: RawFile
    mark: bytes
    encodings: tuple[str, ...]
    said: bool
    found: Counter[str | None] = field(default_factory=Counter)

    @classmethod
    def of(cls, raw: RawFile, encoding: str | None, zeros: bool = False) -> TextLines:
        """The lines of a file in the encoding that its owner says, if it says one.

        Args:
            zeros: whether zero bytes are left to whoever reads the lines.

        Raises:
            DataError: it is no text, or its mark says another encoding.
            ReadingAsked: it is UTF-16 without a mark.
        """
        start = raw.start(len(_UTF32[0]))
        if start in _UTF32:
            raise DataError("This file is UTF-32: save the table as CSV (UTF-8) and try again.")
        mark = next((each for each in _MARKS if start.startswith(each)), b"")
        named = encodings_named(encoding) if encoding else ()
        if mark and named and named[0] != _MARKS[mark]:
            raise UsageError(f"The file's first bytes say that it is {_MARKS[mark]}: leave out --encoding.")
        made = cls(raw, mark, named or (_MARKS.get(mark, UTF8),), bool(named) or _MARKS.get(mark) == UTF16)
        if not named and (wide := _utf16_without_mark(raw.start(_LONGEST))):
            question = "The file looks like UTF-16, and does not begin with its mark."
            way = f"Give --encoding {wide} (in Python encoding='{wide}') if it is."
            raise ReadingAsked(question, way, Reading(encoding=wide))
        if not zeros and not made.is_utf16:
            _check_no_zeros(raw)
        return made

    @property
    def is_utf16(self) -> bool:
        """Whether characters have two bytes each, or four."""
        return self.encodings[0].startswith(UTF16)

    def lines(self, end: str) -> Iterator[bytes]:
        """The lines with their ends, as UTF-8.

        Args:
            end: of a line, a line feed or a carriage return.

        Raises:
            ReadingAsked: a line is not UTF-8, and nobody said what else it is.
        """
        return self._of_utf16(end) if self.is_utf16 else self._of_bytes(end)

    def _of_bytes(self, end: str) -> Iterator[bytes]:
        first = self.encodings[0]
        for number, line in enumerate(self._divided(end), start=1):
            if line.isascii() and _ESCAPES not in line:
                yield line
                continue
            if _ESCAPES in line and not self.said:
                raise _question(number, ISO_2022_JP)
            text, found = decoded(line, self.encodings)
            if found != first:
                if not self.said:
                    raise _asked(self.raw, number)
                self.found[found] += 1
            yield line if found == UTF8 else text.encode()

    def _divided(self, end: str) -> Iterator[bytes]:
        with self.raw.opened() as file:
            file.seek(len(self.mark))
            if end == "\n":
                yield from file
                return
            with io.TextIOWrapper(file, "latin-1", newline=end) as text:
                yield from (line.encode("latin-1") for line in text)

    def _of_utf16(self, end: str) -> Iterator[bytes]:
        number = 0
        try:
            with io.TextIOWrapper(self.raw.opened(), ENCODINGS[self.encodings[0]], newline=end) as text:
                for line in text:
                    yield line.encode()
                    number += 1
        except UnicodeDecodeError as error:
            raise DataError(
                f"This is not a text file: it stops being UTF-16 after line {number}. Save the table as CSV (UTF-8) "
                "and try again."
            ) from error

    def line_end(self) -> str:
        """The line end: a lone carriage return only if it ends the first line; otherwise it belongs to its cell."""
        encoding = ENCODINGS[self.encodings[0]] if self.is_utf16 else "latin-1"
        with io.TextIOWrapper(self.raw.opened(), encoding, "replace", newline="") as text:
            header = next((line for line in text if line.strip()), "")
        return "\r" if header.endswith("\r") else "\n"

    def remarks(self) -> Iterator[str]:
        """What its owner should know of how the lines read so far were decoded."""
        if self.mark and self.is_utf16:
            yield "Read as UTF-16."
        for encoding in self.encodings[1:]:
            if self.found[encoding]:
                yield f"Lines that are not {self.encodings[0]}, read as {encoding}: {self.found[encoding]}."
        if self.found[None]:
            named = " or ".join(self.encodings)
            yield f"Lines with bytes that are not {named}, which are replaced: {self.found[None]}."


# What is no text, and the question for the encoding.


def _check_no_zeros(raw: RawFile) -> None:
    """Refuse a file with zero bytes, by the line of the first one."""
    number = 1
    with raw.opened() as file:
        while block := file.read(_BLOCK):
            if (place := block.find(b"\x00")) >= 0:
                number += block.count(b"\n", 0, place)
                raise DataError(
                    f"Line {number} has a NUL byte, so that this is not a text file: remove the byte, or save the "
                    "table as CSV (UTF-8) and try again."
                )
            number += block.count(b"\n")


def _utf16_without_mark(start: bytes) -> str | None:
    if b"\x00" not in start or start[:2] in _MARKS:
        return None
    even, odd = (start[place::2].count(0) / max(1, len(start) // 2) for place in (0, 1))
    if max(even, odd) < _HALF_ZERO or min(even, odd) > _OTHER_HALF * max(even, odd):
        return None
    if 2 * start.count(0) <= start.count(b"\n"):  # in any script, every line end has one
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _asked(raw: RawFile, line: int) -> ReadingAsked:
    """The question for the encoding of a file with a line that is not UTF-8."""
    with raw.opened() as file:
        others = list(islice((_beginning(each) for each in file if not each.isascii()), 50 * _SAMPLE))
    bad = [each for each in others if not fits(each, UTF8)]
    sample = bad[:_SAMPLE]
    encoding = recognised(sample)
    if 2 * len(bad) <= len(others):  # text of another encoding is hardly ever UTF-8 by chance
        encoding = f"{UTF8}+{encoding or WINDOWS_1252}"
    return _question(line, encoding)


def _question(line: int, encoding: str | None) -> ReadingAsked:
    question = f"Line {line} is not UTF-8, " + (
        f"and the file looks like {encoding}." if encoding else "and no usual encoding makes sense of the file."
    )
    way = f"--encoding {encoding} (in Python encoding='{encoding}')" if encoding else "--encoding NAME"
    return ReadingAsked(question, f"Give {way} if that is right, or the one that is.", Reading(encoding=encoding))


def _beginning(line: bytes) -> bytes:
    """What is looked at of a line; only if it is cut may its last character be incomplete."""
    return line[:_LONGEST] if len(line) > _LONGEST else line.rstrip(b"\r\n") + b"\n"


def start_of(raw: RawFile, size: int) -> RawFile:
    """The whole lines among the first bytes of a text file, for a look at them."""
    head = raw.start(size)
    return RawFile(f"start{raw.suffix}", head if len(head) < size else head[: head.rfind(b"\n") + 1] or head)
