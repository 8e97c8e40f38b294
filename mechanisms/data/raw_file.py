"""The bytes of a private file, on the disk or in memory, plain or packed with gzip; opened as often as needed."""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, cast

from mechanisms.data.table import MAX_BYTES, UNPACKED, checked_size
from mechanisms.errors import DataError

_GZIP = b"\x1f\x8b"
PACKED = ".gz"
_BLOCK = 2**20


@dataclass(frozen=True, repr=False)
class RawFile:
    """A file that is not parsed yet; private.

    Attributes:
        name: the file's, as its owner knows it.
        content: its place, or its bytes.
        packed: whether it is gzip.
    """

    name: str
    content: Path | bytes
    packed: bool = False

    @classmethod
    def at(cls, path: Path) -> RawFile:
        """The file at a path. A pipe can be read only once, so its bytes are kept.

        Raises:
            DataError: not accessible, too large, also when it is unpacked, or damaged gzip.
        """
        checked_size(path)
        file = cls(path.name, path if path.is_file() else path.read_bytes())
        if file.start(len(_GZIP)) != _GZIP:
            return file
        file = replace(file, packed=True)
        _check_unpacked(file)
        return file

    @property
    def suffix(self) -> str:
        """How the name ends, in small letters, without the ending of gzip."""
        name = self.name.lower()
        return PurePosixPath(name.removesuffix(PACKED) if self.packed else name).suffix

    def opened(self) -> IO[bytes]:
        """The unpacked bytes, from the start.

        Raises:
            DataError: it cannot be read.
        """
        source = io.BytesIO(self.content) if isinstance(self.content, bytes) else self.content
        try:
            if self.packed:
                return cast(IO[bytes], gzip.open(source))
            return source if isinstance(source, io.BytesIO) else source.open("rb")
        except OSError as error:
            raise DataError(f"The file '{self.name}' cannot be read: check its permissions.") from error

    def start(self, length: int) -> bytes:
        """The first bytes."""
        with self.opened() as file:
            return file.read(length)

    def in_memory(self) -> RawFile:
        """The same file, wherever its place on the disk goes."""
        content = self.content if isinstance(self.content, bytes) else self.content.read_bytes()
        return replace(self, content=content)


def _check_unpacked(file: RawFile) -> None:
    size = 0
    try:
        with file.opened() as unpacked:
            while block := unpacked.read(_BLOCK):
                size += len(block)
                if size > MAX_BYTES:
                    raise DataError(UNPACKED)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError("The gzip file is damaged: pack it again, or unpack it.") from error
