"""The three ways to serve (one curator, people with accounts, strangers), and the arguments of `launch()` for each."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Route

from dpicl_ui.frame.model_loader import Choosable
from dpicl_ui.frame.sessions import CuratorLedger, Ledgers, OwnerLedgers, TabLedgers
from dpicl_ui.frame.theme import SIGN_IN
from dpicl_ui.server.doorkeeper import Bodies, Doorkeeper
from dpicl_ui.server.places import PATH, Heartbeats, Places
from mechanisms.accounting import PrivacyLedger
from mechanisms.accounts import Accounts, normalised
from mechanisms.errors import UsageError
from mechanisms.evaluation.remote_reader import RemoteReader
from mechanisms.inference.remote import ChatServer, ServerAddress, is_loopback, key_from_environment

# Signing in. Gradio shows the form and calls `Login.admits`.

_FREE = 5
"""Wrong passwords in a row before a name must wait."""
_LONGEST_WAIT = 60.0
_REMEMBERED = 1000
"""Names whose failures are kept. To push a name out of the list takes longer than `_LONGEST_WAIT`."""


class Login:
    """Checks passwords one at a time. After several wrong ones a name must wait, also a name without an account."""

    def __init__(self, accounts: Accounts, clock: Callable[[], float] = time.monotonic) -> None:
        self._accounts, self._clock = accounts, clock
        self._turn = asyncio.Lock()
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    async def admits(self, name: str, password: str) -> bool:
        """Whether this person may enter. It is a coroutine, so that hashing does not block other pages."""
        key = _key(name)
        async with self._turn:
            count, until = self._failures.get(key, (0, 0.0))
            if self._clock() < until:
                return False
            if await asyncio.to_thread(self._accounts.admits, name, password):
                self._failures.pop(key, None)
                return True
            self._failed(key, count + 1)
            return False

    def _failed(self, key: str, count: int) -> None:
        wait = 0.0 if count < _FREE else min(_LONGEST_WAIT, 2.0 ** min(count - _FREE, 10))
        self._failures[key] = count, self._clock() + wait
        self._failures.move_to_end(key)
        if len(self._failures) > _REMEMBERED:
            self._failures.popitem(last=False)


def _key(name: str) -> str:
    try:
        return normalised(name)
    except UsageError:  # invalid names share one counter
        return ""


# The remote reader that step 4 may offer. The operator chooses its address; visitors cannot.

URL, MODEL = "DPICL_READER_URL", "DPICL_READER_MODEL"


def reader_elsewhere() -> RemoteReader | None:
    """The remote reader that DPICL_READER_URL, DPICL_READER_MODEL and the API key of the environment describe; None if
    they are not set.

    Raises:
        UsageError: one of the two is missing, or the address or the key cannot be used.
    """
    url, model = (os.environ.get(name, "").strip() for name in (URL, MODEL))
    if not url and not model:
        return None
    if not url or not model:
        raise UsageError(f"A reader elsewhere needs both {URL} and {MODEL}.")
    return RemoteReader(ChatServer(ServerAddress.of(url), model, key_from_environment()))


# The way to serve.

_PORT, _PORTS, _TRIED, _HERE = 7860, 65536, 100, "127.0.0.1"
BELIEVED = "FORWARDED_ALLOW_IPS"
"""Variable of uvicorn: addresses of trusted proxies. By default uvicorn would trust this machine."""
_SPACES = "https://huggingface.co"
"""The host that shows every Space in a frame."""


@dataclass(frozen=True)
class Serving:
    """The ledgers of a server, its arguments for `launch()`, and which models may be loaded."""

    ledgers: Ledgers
    arguments: dict[str, Any]
    choosable: Choosable = Choosable.NONE


def serving(host: str | None = None, port: int | None = None) -> Serving:
    """Decide by the existing accounts and by the variables HOST, PORT, SPACE_ID and DPICL_LOCK_MODEL.

    Args:
        host, port: replace HOST and PORT.

    Raises:
        UsageError: others could reach a server without accounts; or the port is invalid or taken.
    """
    locked = os.environ.get("DPICL_LOCK_MODEL", "") not in ("", "0")
    accounts, space = Accounts(), bool(os.environ.get("SPACE_ID"))
    host = host if host is not None else os.environ.get("HOST", "0.0.0.0" if space else "127.0.0.1")
    port = port if port is not None else _stated_port()
    if accounts.names():
        login = {"auth": Login(accounts).admits, "auth_message": SIGN_IN}
        return Serving(OwnerLedgers(accounts), _listening(host, port) | login, _unless(locked, Choosable.LISTED))
    if space:
        return Serving(TabLedgers(), _listening(host, port))  # no visitor may change the model of the others
    if not is_loopback(host):
        raise UsageError(
            f"HOST={host} lets others in, and whoever comes in would use your ledger: add accounts with "
            "`python -m mechanisms users add NAME`, or leave HOST out."
        )
    listening = _listening(host, port, only=("localhost", "127.0.0.1", "[::1]", host))
    return Serving(CuratorLedger(PrivacyLedger()), listening, _unless(locked, Choosable.ANY))


def _unless(locked: bool, choosable: Choosable) -> Choosable:
    return Choosable.NONE if locked else choosable


def _stated_port() -> int | None:
    stated = os.environ.get("PORT")
    try:
        return None if stated is None else int(stated)
    except ValueError:
        raise UsageError("PORT must be a number, such as 7860.") from None


def _free_port(host: str, port: int, asked: bool) -> int:
    """This port; if it is taken and nobody asked for it, the next free one, which is written to standard error."""
    if not 0 < port < _PORTS:
        raise UsageError(f"A port is a number from 1 to {_PORTS - 1}.")
    if _is_free(host, port):
        return port
    if asked:
        raise UsageError(f"Port {port} is taken: choose another, or leave it out and the next free one is taken.")
    for each in range(port + 1, port + _TRIED):
        if _is_free(host, each):
            sys.stderr.write(f"app: port {port} is taken, so this one serves on {each}.\n")
            return each
    raise UsageError(f"The ports {port} to {port + _TRIED - 1} are all taken: choose another with --port.")


def _is_free(host: str, port: int) -> bool:
    """Whether nobody listens at this host, nor at 127.0.0.1: Gradio checks that address, whatever the host is."""
    try:
        found = socket.getaddrinfo(host.strip("[]") or _HERE, port, type=socket.SOCK_STREAM)
    except OSError as error:  # no such name
        raise UsageError(f"This machine cannot listen on {host}: {error.strerror}.") from None
    refused = [_refused(family, address) for family, *_, address in found]
    if errno.EADDRINUSE in (*refused, _refused(socket.AF_INET, (_HERE, port))):
        return False
    if all(refused):  # the machine may lack IPv6, for instance
        raise UsageError(f"This machine cannot listen on {host}, port {port}: {os.strerror(refused[0])}.")
    return True


def _refused(family: int, address: Any) -> int:
    """The error number of an attempt to bind the address; 0 for success."""
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
    except OSError as error:
        return error.errno or errno.EINVAL
    return 0


def _listening(host: str, port: int | None, only: tuple[str, ...] = ()) -> dict[str, Any]:
    framed = {"framed_by": _SPACES} if os.environ.get("SPACE_ID") else {}
    # All visitors of a Space come through one proxy: their addresses differ only if the operator trusts it.
    told_apart = not framed or bool(os.environ.get(BELIEVED))
    middleware = [Middleware(Doorkeeper, **framed), Middleware(Bodies), Middleware(Places, by_address=told_apart)]
    if only:  # DNS rebinding: a foreign name that resolves to this machine
        middleware.append(Middleware(TrustedHostMiddleware, allowed_hosts=list(only), www_redirect=False))
    return {
        "server_name": host,
        "server_port": _free_port(host, _PORT if port is None else port, asked=port is not None),
        "share": False,
        "mcp_server": False,
        # These routes come before Gradio's own.
        "app_kwargs": {"middleware": middleware, "routes": [Route(PATH, Heartbeats())]},
    }
