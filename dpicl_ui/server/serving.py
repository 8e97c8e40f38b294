"""Whom the server serves: one curator, people with accounts, or strangers; and what follows for where it listens."""

from __future__ import annotations

import errno
import os
import socket
import sys
from dataclasses import dataclass
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Route

from dpicl_ui.frame.choosable import Choosable
from dpicl_ui.frame.ledgers import CuratorLedger, Ledgers, OwnerLedgers, TabLedgers
from dpicl_ui.frame.theme import SIGN_IN
from dpicl_ui.server.bodies import Bodies
from dpicl_ui.server.doorkeeper import Doorkeeper
from dpicl_ui.server.heartbeat import PATH, Heartbeats
from dpicl_ui.server.login import Login
from mechanisms.accounting import PrivacyLedger
from mechanisms.accounts import Accounts
from mechanisms.addresses import is_loopback
from mechanisms.errors import UsageError

_PORTS, _TRIED = 65536, 100
_SPACES = "https://huggingface.co"
"""Shows every Space in a frame of its own page."""


@dataclass(frozen=True)
class Serving:
    """The ledgers of a server, the arguments of `launch()` that go with them, and which models may be loaded there."""

    ledgers: Ledgers
    arguments: dict[str, Any]
    choosable: Choosable = Choosable.NONE


def serving(host: str | None = None, port: int | None = None) -> Serving:
    """Decide by the accounts there are and by the variables HOST, PORT, SPACE_ID and DPICL_LOCK_MODEL.

    Args:
        host, port: go before HOST and PORT.

    Raises:
        UsageError: others could reach a server that has no accounts; there is no such port, or none is free.
    """
    locked = os.environ.get("DPICL_LOCK_MODEL", "") not in ("", "0")
    accounts, space = Accounts(), bool(os.environ.get("SPACE_ID"))
    host = host if host is not None else os.environ.get("HOST", "0.0.0.0" if space else "127.0.0.1")
    port = port if port is not None else _stated_port()
    if accounts.names():
        login = {"auth": Login(accounts).admits, "auth_message": SIGN_IN}
        return Serving(OwnerLedgers(accounts), _listening(host, port) | login, _unless(locked, Choosable.LISTED))
    if space:
        return Serving(TabLedgers(), _listening(host, port))  # no stranger decides for the others
    if not is_loopback(host):
        raise UsageError(
            f"HOST={host} lets others in, and whoever comes in would use your ledger: add accounts with "
            "`python -m mechanisms users add NAME`, or leave HOST out."
        )
    listening = _listening(host, port, only=("localhost", "127.0.0.1", "[::1]", host))
    return Serving(CuratorLedger(PrivacyLedger()), listening, _unless(locked, Choosable.ANY))


def _unless(locked: bool, choosable: Choosable) -> Choosable:
    return Choosable.NONE if locked else choosable


def _stated_port() -> int:
    try:
        return int(os.environ.get("PORT", "7860"))
    except ValueError:
        raise UsageError("PORT must be a number, such as 7860.") from None


def _free_port(host: str, port: int) -> int:
    """The port, or the first free one after it, which is told."""
    if not 0 < port < _PORTS:
        raise UsageError(f"A port is a number from 1 to {_PORTS - 1}.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for each in range(port, min(port + _TRIED, _PORTS)):
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host.strip("[]"), each))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    return each  # the server itself will say what is wrong with the address
                continue
        if each != port:
            sys.stderr.write(f"app: port {port} is taken, so this one serves on {each}.\n")
        return each
    raise UsageError(f"The ports {port} to {port + _TRIED - 1} are all taken: choose another with --port.")


def _listening(host: str, port: int, only: tuple[str, ...] = ()) -> dict[str, Any]:
    framed = {"framed_by": _SPACES} if os.environ.get("SPACE_ID") else {}
    middleware = [Middleware(Doorkeeper, **framed), Middleware(Bodies)]
    if only:  # a page elsewhere whose name was made to lead to this machine is another site
        middleware.append(Middleware(TrustedHostMiddleware, allowed_hosts=list(only), www_redirect=False))
    return {
        "server_name": host,
        "server_port": _free_port(host, port),
        "share": False,
        "mcp_server": False,
        # Routes that are given here stand before Gradio's own.
        "app_kwargs": {"middleware": middleware, "routes": [Route(PATH, Heartbeats())]},
    }
