"""A model behind an OpenAI-compatible address: public text in, text out.

It is not a `LanguageModel`: it has no tokens, sessions or logits, so code that reads private rows cannot use it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus

import httpx

from mechanisms.errors import ModelUnavailable, UsageError

KEY_VARIABLE = "DPICL_API_KEY"
"""The variable with a server's key; on the command line every list of processes would show the key."""


def key_from_environment() -> str | None:
    """The key, or None if none is set, as for a local server without a key."""
    return key_of(os.environ.get(KEY_VARIABLE, ""), KEY_VARIABLE)


def key_of(given: str, where: str) -> str | None:
    """The given key, or None if it is empty; a `UsageError` that names `where` if it is not a valid key."""
    key = given.strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{where} has characters that occur in no key: give only the key.")
    return key or None


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's loopback; other names are not resolved."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


_LAST_PORT = 65535
_NOT_SAFE = (
    "The reader's address must begin with https://, or with http:// and lead to this machine: elsewhere everybody on "
    "the way could read the key and the texts."
)
_NO_ADDRESS = "The reader's address is not a URL: give the base of its API, such as https://api.example.org/v1."
_TOO_MUCH = "The reader's address may hold no user, password, query or fragment: a key goes into the environment."


@dataclass(frozen=True)
class ServerAddress:
    """The base of an OpenAI-compatible API; `of` checks it."""

    endpoint: str
    host: str
    """The host with its port, as requested; a name in another script has its ASCII form."""
    encrypted: bool

    @classmethod
    def of(cls, url: str) -> ServerAddress:
        """Read a URL such as "https://api.example.org/v1"; without a path, /v1 is meant."""
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


_BATCH = 16
"""Messages between two reports of progress."""
_MOST_BYTES = 1 << 20
"""The most bytes of an answer: a few tokens with all metadata are a few kilobytes."""
_AT_ONCE, _TRIES = 4, 4
"""The most concurrent requests, and the most requests for one message if the server is busy or fails."""
_FIRST_WAIT, _LONGEST_WAIT, _TIMEOUT = 1.0, 20.0, 60.0
"""Seconds before the second try, doubled with each try; the longest wait, even if the server asks for more; the longest
time for a whole answer."""


class ChatServer:
    """A model by its name at an address; it has nothing private, and sends its key to that address only."""

    def __init__(self, address: ServerAddress, model: str, key: str | None = None) -> None:
        if not model.strip():
            raise UsageError("Name the model for the server's answers.")
        self.host, self.model = address.host, model.strip()
        self._address = address
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    @property
    def name(self) -> str:
        return f"{self.model} at {self.host}"

    def answers(self, messages: Sequence[str], tokens: int) -> Iterator[list[str]]:
        """The answer to each message, of at most `tokens` tokens, in order; yields one batch at a time.

        Raises:
            ModelUnavailable: a message has no answer; the error gives the reason without quoting message or answer.
        """
        for start in range(0, len(messages), _BATCH):
            # In this thread, so that Ctrl-C ends pending requests.
            yield asyncio.run(self._batch(messages[start : start + _BATCH], tokens))

    async def _batch(self, messages: Sequence[str], tokens: int) -> list[str]:
        turns = asyncio.Semaphore(_AT_ONCE)
        client = httpx.AsyncClient(
            headers=self._headers,
            timeout=_TIMEOUT,
            follow_redirects=False,  # the key and the texts are for this address
            trust_env=self._address.encrypted,  # a proxy reads what is not encrypted, also on its way to this machine
        )
        async with client:
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(self._in_turn(turns, client, each, tokens)) for each in messages]
            except ExceptionGroup as failed:
                raise failed.exceptions[0] from None
        return [each.result() for each in tasks]

    async def _in_turn(self, turns: asyncio.Semaphore, client: httpx.AsyncClient, message: str, tokens: int) -> str:
        chat = {"model": self.model, "messages": [{"role": "user", "content": message}]}
        # In ASCII: a command line may contain characters that are not valid Unicode.
        body = json.dumps({**chat, "temperature": 0, "max_tokens": tokens, "stream": False}).encode("ascii")
        async with turns:
            for again in range(_TRIES):
                status, asked_for, found = await self._post(client, body)
                if not _may_pass(status) or again == _TRIES - 1:
                    break
                await asyncio.sleep(min(max(_FIRST_WAIT * 2**again, asked_for), _LONGEST_WAIT))
        if status != HTTPStatus.OK:
            raise ModelUnavailable(f"{self.name} {self._refusal(status)}")
        return self._words(found)

    async def _post(self, client: httpx.AsyncClient, body: bytes) -> tuple[int, float, bytes]:
        """Status, seconds that the server asks to wait, and the answer's bytes."""
        found = b""
        try:
            async with (
                asyncio.timeout(_TIMEOUT),  # the client's own timeout restarts with every byte
                client.stream("POST", self._address.endpoint, content=body) as response,
            ):
                async for part in response.aiter_raw():
                    found += part
                    if len(found) > _MOST_BYTES:
                        raise ModelUnavailable(f"{self.name} answers with more than {_MOST_BYTES >> 20} MiB.")
                wait = response.headers.get("Retry-After", "")
                return response.status_code, float(wait) if wait.isascii() and wait.isdigit() else 0.0, found
        except (TimeoutError, httpx.TimeoutException) as error:
            late = f"did not answer within {_TIMEOUT:g} seconds: try again, or use another server."
            raise ModelUnavailable(f"{self.name} {late}") from error
        except httpx.ConnectError as error:
            raise ModelUnavailable(
                f"{self.name} cannot be reached: check that it runs, and that the address is right."
            ) from error
        except httpx.HTTPError as error:
            raise ModelUnavailable(f"{self.name} closed the connection: try again, or use another server.") from error

    def _refusal(self, status: int) -> str:
        """The error for a status, in this program's words: a server's message could contain the key."""
        if _may_pass(status):
            why = "is too busy" if status == HTTPStatus.TOO_MANY_REQUESTS else "failed"
            return f"{why} ({status}), {_TRIES} times: try again later."
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return f"refuses the key ({status}): set {KEY_VARIABLE} to a valid key."
        if status == HTTPStatus.NOT_FOUND:
            return "is not there (404): see the model's name, and that the address is the API's base, such as .../v1."
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            return f"redirects ({status}), which is not followed: give the address that it leads to."
        return f"refuses the request ({status}): it may not support temperature 0, max_tokens or so long a prompt."

    def _words(self, found: bytes) -> str:
        try:
            words = json.loads(found)["choices"][0]["message"]["content"]
        except (ValueError, RecursionError) as error:
            raise ModelUnavailable(f"{self.name} does not answer with JSON: is it an OpenAI-compatible API?") from error
        except (KeyError, IndexError, TypeError) as error:
            raise ModelUnavailable(f"{self.name} answers, but not as an OpenAI-compatible API does.") from error
        if words is not None and not isinstance(words, str):
            raise ModelUnavailable(f"{self.name} answers, but not as an OpenAI-compatible API does.")
        return words or ""


def _may_pass(status: int) -> bool:
    return status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
