"""The ways to serve (the owner on this machine, the owner behind a password, strangers), as arguments of `launch()`."""

from __future__ import annotations

import asyncio
import fcntl
import hmac
import os
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from dpicl_ui.frame.services import CuratorLedger, Ledgers, TabLedgers
from dpicl_ui.frame.theme import SIGN_IN
from dpicl_ui.server.doorkeeper import BodyChecks, Doorkeeper
from mechanisms.accounting import PrivacyLedger
from mechanisms.errors import UsageError
from mechanisms.inference.remote import is_loopback

PASSWORD = "DPICL_PASSWORD"
_SHORTEST = 8
WAIT = 1.0
"""Seconds until a wrong password is refused; attempts are checked one at a time."""
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
    """The arguments of the server, from the variables HOST, PORT, SPACE_ID, DPICL_PASSWORD and DPICL_LOCK_MODEL.

    Args:
        host, port: replace HOST and PORT.

    Raises:
        UsageError: others could reach a server without a password, or the password or the port is unusable.
    """
    locked = os.environ.get("DPICL_LOCK_MODEL", "") not in ("", "0")
    password, space = os.environ.get(PASSWORD, ""), bool(os.environ.get("SPACE_ID"))
    host = host if host is not None else os.environ.get("HOST", "0.0.0.0" if space else _HERE)
    middleware = [Middleware(Doorkeeper, **({"framed_by": _SPACES} if space else {})), Middleware(BodyChecks)]
    login: dict[str, Any] = {}
    if password:
        if len(password) < _SHORTEST:
            raise UsageError(f"{PASSWORD} has at least {_SHORTEST} characters: choose a longer one.")
        login = {"auth": admits(password), "auth_message": SIGN_IN}
    elif not space:
        if not is_loopback(host):
            raise UsageError(
                f"HOST={host} lets others reach this server and use your ledger: set {PASSWORD}, or leave HOST out."
            )
        # Against DNS rebinding, in which a foreign name resolves to this machine.
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
    return Serving(ledgers, arguments, locked or public)  # strangers share the model, so none may change it


def admits(password: str) -> Callable[[str, str], Awaitable[bool]]:
    """A function for Gradio's `auth` that checks the password.

    Attempts are checked one at a time, and a wrong password is refused after `WAIT` seconds.
    """
    turn = asyncio.Lock()

    async def admit(name: str, given: str) -> bool:
        async with turn:
            right = hmac.compare_digest(given.encode(errors="surrogatepass"), password.encode(errors="surrogateescape"))
            if not right:
                await asyncio.sleep(WAIT)
        return right

    return admit


def _asked_port() -> int | None:
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


_PREFIX = "dpicl-studio-"
_LOCK = "alive"


class TemporaryFolder:
    """The folder for temporary files of this process and of Gradio, locked as long as the process lives."""

    def __init__(self, base: Path | None = None) -> None:
        base = base or Path(tempfile.gettempdir())
        base.mkdir(parents=True, exist_ok=True)
        sweep(base)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        self._lock = (self.path / _LOCK).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def use(self) -> None:
        """Use the folder, and delete it when the process is terminated."""
        tempfile.tempdir = str(self.path)
        os.environ["GRADIO_TEMP_DIR"] = str(self.path / "gradio")
        signal.signal(signal.SIGTERM, self._end)

    def remove(self) -> None:
        self._lock.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.remove()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


def sweep(base: Path) -> None:
    """Delete the folders of processes that have ended."""
    for folder in base.glob(f"{_PREFIX}*"):
        try:
            with (folder / _LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # its process lives, it is being made, or it belongs to another account
