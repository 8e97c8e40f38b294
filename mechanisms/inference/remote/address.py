"""Where a server is asked, and what may be asked there without showing the key to others."""

from __future__ import annotations

from dataclasses import dataclass

import httpx

from mechanisms.addresses import is_loopback
from mechanisms.errors import UsageError

_LAST_PORT = 65535
_NOT_SAFE = (
    "The reader's address must begin with https://, or with http:// and lead to this machine: elsewhere everybody on "
    "the way could read the key and the texts."
)
_NO_ADDRESS = "The reader's address is not a URL: give the base of its API, such as https://api.example.org/v1."
_TOO_MUCH = "The reader's address may hold no user, password, query or fragment: a key goes into the environment."


@dataclass(frozen=True)
class ServerAddress:
    """The base of an OpenAI-compatible API; `of` checks it.

    Attributes:
        endpoint: where chats are posted to.
        host: with its port, as it is asked for: a name in other scripts shows in its ASCII form.
        encrypted: https.
    """

    endpoint: str
    host: str
    encrypted: bool

    @classmethod
    def of(cls, url: str) -> ServerAddress:
        """Read a URL such as "https://api.example.org/v1"; without a path, /v1 is meant.

        Raises:
            UsageError: it is none, is neither https nor this machine's own, or holds what should not be in it.
        """
        try:
            read = httpx.URL(url.strip())
        except (httpx.InvalidURL, UnicodeError) as error:
            raise UsageError(_NO_ADDRESS) from error
        if not read.host or read.scheme not in ("http", "https") or not 0 < (read.port or 1) <= _LAST_PORT:
            raise UsageError(_NO_ADDRESS)
        if read.userinfo or read.query or read.fragment:
            raise UsageError(_TOO_MUCH)
        encrypted = read.scheme == "https"
        if not encrypted and not is_loopback(read.host):
            raise UsageError(_NOT_SAFE)
        path = read.path.rstrip("/") or "/v1"
        return cls(str(read.copy_with(path=f"{path}/chat/completions")), read.netloc.decode(), encrypted)
