"""Who may sign in to the app: names and salted hashes of passwords, and where each person's ledger lies."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import tempfile
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

from mechanisms.errors import StudioError, UsageError
from mechanisms.files import data_folder

_LONGEST_NAME = 64
_SHORTEST_PASSWORD = 8
_SALT_BYTES = 16


@dataclass(frozen=True, repr=False)
class _Secret:
    salt: bytes
    hashed: bytes


_NOBODY = _Secret(bytes(_SALT_BYTES), b"")


def normalised(name: str) -> str:
    """A person's name in the one form in which it is kept and compared.

    Raises:
        UsageError: it has no character or more than 64, or one that cannot be printed.
    """
    name = unicodedata.normalize("NFC", name).strip()
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        raise UsageError(f"A name has 1 to {_LONGEST_NAME} printable characters: choose another.")
    return name


def owner_folder(name: str) -> Path:
    """Where a person's ledger lies; `PrivacyLedger` makes it.

    Raises:
        UsageError: it is no name.
    """
    # Without the installation's key: whoever loses that must not find every budget unspent.
    return data_folder() / "owners" / hashlib.sha256(normalised(name).encode()).hexdigest()


def _hash(password: str, salt: bytes) -> bytes:
    # About 50 ms and 32 MiB a guess.
    text = unicodedata.normalize("NFC", password).encode(errors="surrogatepass")
    return hashlib.scrypt(text, salt=salt, n=2**15, r=8, p=1, maxmem=2**26)


@dataclass(frozen=True)
class Accounts:
    """The file `users` of the data folder, mode 0600: on each line a name, a salt and a hash, separated by tabs."""

    path: Path = field(default_factory=lambda: data_folder() / "users")

    def names(self) -> list[str]:
        """Everybody who may sign in.

        Raises:
            StudioError: the file is damaged.
        """
        return sorted(self._read())

    def add(self, name: str, password: str) -> None:
        """Let somebody sign in.

        Raises:
            UsageError: the name cannot be used or is taken, the password is too short, or the file cannot be written.
        """
        people, name = self._read(), normalised(name)
        if name in people:
            raise UsageError(f"'{name}' is there already: for a new password remove the name and add it again.")
        if len(password) < _SHORTEST_PASSWORD:
            raise UsageError(f"A password has at least {_SHORTEST_PASSWORD} characters: choose a longer one.")
        salt = secrets.token_bytes(_SALT_BYTES)
        self._write(people | {name: _Secret(salt, _hash(password, salt))})

    def remove(self, name: str) -> None:
        """Let somebody no longer sign in; the ledger stays.

        Raises:
            UsageError: nobody has that name, or the file cannot be written.
        """
        people, name = self._read(), normalised(name)
        if name not in people:
            raise UsageError(f"Nobody is called '{name}': `users list` shows who there is.")
        del people[name]
        self._write(people)

    def admits(self, name: str, password: str) -> bool:
        """Whether this is somebody's password; as slow for a name that nobody has."""
        try:
            secret = self._read().get(normalised(name), _NOBODY)
        except UsageError:
            secret = _NOBODY
        return hmac.compare_digest(_hash(password, secret.salt), secret.hashed)

    def _read(self) -> dict[str, _Secret]:
        if not self.path.exists():
            return {}
        people = {}
        try:
            for line in self.path.read_text(encoding="utf-8").splitlines():
                name, salt, hashed = line.split("\t")
                people[name] = _Secret(bytes.fromhex(salt), bytes.fromhex(hashed))
        except (OSError, ValueError) as error:
            raise StudioError(f"The file '{self.path}' cannot be read: restore it, or remove it.") from error
        return people

    def _write(self, people: dict[str, _Secret]) -> None:
        lines = [f"{name}\t{each.salt.hex()}\t{each.hashed.hex()}\n" for name, each in people.items()]
        try:
            self._replace(lines)
        except OSError as error:
            raise UsageError(
                f"The file '{self.path}' cannot be written and stays as it was: check the folder's permissions and the "
                "room on the disk."
            ) from error

    def _replace(self, lines: list[str]) -> None:
        # Complete before it has its name; temporary files are readable by their owner alone.
        descriptor, partial = tempfile.mkstemp(dir=self.path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self.path)
        except OSError:
            os.unlink(partial)
            raise
