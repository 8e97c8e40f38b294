"""The ways to serve (the owner on this machine, the owner behind a password, strangers), as arguments of `launch()`."""

from __future__ import annotations

import asyncio
import hmac
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from dpicl_ui.frame.sessions import CuratorLedger, Ledgers, TabLedgers
from dpicl_ui.frame.theme import SIGN_IN
from dpicl_ui.server.doorkeeper import Bodies, Doorkeeper
from mechanisms.accounting import PrivacyLedger
from mechanisms.errors import UsageError
from mechanisms.evaluation.remote_reader import RemoteReader
from mechanisms.inference.remote import ChatServer, ServerAddress, is_loopback, key_from_environment

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

PASSWORD = "DPICL_PASSWORD"
_SHORTEST = 8
WAIT = 1.0
"""Seconds that a wrong password costs whoever signs in, one after the other."""
_PORTS, _HERE = 65536, "127.0.0.1"
_SPACES = "https://huggingface.co"
"""The host that shows every Space in a frame."""


@dataclass(frozen=True)
class Serving:
    """The ledgers of a server, its arguments for `launch()`, and whether its model is locked."""

    ledgers: Ledgers
    arguments: dict[str, Any]
    locked: bool


def serving(host: str | None = None, port: int | None = None) -> Serving:
    """Decide by the variables HOST, PORT, SPACE_ID, DPICL_PASSWORD and DPICL_LOCK_MODEL.

    Args:
        host, port: replace HOST and PORT.

    Raises:
        UsageError: others could reach a server without a password; or the password or the port is unusable.
    """
    locked = os.environ.get("DPICL_LOCK_MODEL", "") not in ("", "0")
    password, space = os.environ.get(PASSWORD, ""), bool(os.environ.get("SPACE_ID"))
    host = host if host is not None else os.environ.get("HOST", "0.0.0.0" if space else _HERE)
    middleware = [Middleware(Doorkeeper, **({"framed_by": _SPACES} if space else {})), Middleware(Bodies)]
    login: dict[str, Any] = {}
    if password:
        if len(password) < _SHORTEST:
            raise UsageError(f"{PASSWORD} has at least {_SHORTEST} characters: choose a longer one.")
        login = {"auth": admits(password), "auth_message": SIGN_IN}
    elif not space:
        if not is_loopback(host):
            raise UsageError(
                f"HOST={host} lets others in, and whoever comes in would use your ledger: set {PASSWORD}, or leave "
                "HOST out."
            )
        # DNS rebinding: a foreign name that resolves to this machine.
        hosts = ["localhost", _HERE, "[::1]", host]
        middleware.append(Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False))
    public = space and not password
    arguments = {
        "server_name": host,
        "server_port": _asked_port() if port is None else _checked(port),
        "share": False,
        "mcp_server": False,
        "app_kwargs": {"middleware": middleware},
        **login,
    }
    ledgers: Ledgers = TabLedgers() if public else CuratorLedger(PrivacyLedger(), signed_in=bool(password))
    return Serving(ledgers, arguments, locked or public)  # no stranger may change the model of the others


def admits(password: str) -> Callable[[str, str], Awaitable[bool]]:
    """Gradio's `auth`: whether a password is this one. Attempts take turns, and a wrong one costs `WAIT`."""
    turn = asyncio.Lock()

    async def admit(name: str, given: str) -> bool:
        async with turn:
            right = hmac.compare_digest(given.encode(errors="surrogatepass"), password.encode(errors="surrogateescape"))
            if not right:
                await asyncio.sleep(WAIT)
        return right

    return admit


def _asked_port() -> int | None:
    """The variable PORT; None where Gradio takes 7860 or the next free port."""
    if (stated := os.environ.get("PORT")) is None:
        return None
    try:
        return _checked(int(stated))
    except ValueError:
        raise UsageError("PORT must be a number, such as 7860.") from None


def _checked(port: int) -> int:
    if not 0 < port < _PORTS:
        raise UsageError(f"A port is a number from 1 to {_PORTS - 1}.")
    return port
