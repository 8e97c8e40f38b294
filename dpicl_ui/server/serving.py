"""Whom the server serves: one curator, people with accounts, or strangers; and what follows for where it listens."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from dpicl_ui.frame.choosable import Choosable
from dpicl_ui.frame.ledgers import CuratorLedger, Ledgers, OwnerLedgers, TabLedgers
from dpicl_ui.frame.theme import SIGN_IN
from dpicl_ui.server.doorkeeper import Doorkeeper
from dpicl_ui.server.login import Login
from mechanisms.accounting import PrivacyLedger
from mechanisms.accounts import Accounts
from mechanisms.addresses import is_loopback
from mechanisms.errors import UsageError

_SPACES = "https://huggingface.co"
"""Shows every Space in a frame of its own page."""


@dataclass(frozen=True)
class Serving:
    """The ledgers of a server, the arguments of `launch()` that go with them, and which models may be loaded there."""

    ledgers: Ledgers
    arguments: dict[str, Any]
    choosable: Choosable = Choosable.NONE


def serving() -> Serving:
    """Decide by the accounts there are and by the variables HOST, PORT, SPACE_ID and DPICL_LOCK_MODEL.

    Raises:
        UsageError: others could reach a server that has no accounts.
    """
    locked = os.environ.get("DPICL_LOCK_MODEL", "") not in ("", "0")
    accounts, space = Accounts(), bool(os.environ.get("SPACE_ID"))
    host = os.environ.get("HOST", "0.0.0.0" if space else "127.0.0.1")
    if accounts.names():
        login = {"auth": Login(accounts).admits, "auth_message": SIGN_IN}
        return Serving(OwnerLedgers(accounts), _listening(host) | login, _unless(locked, Choosable.LISTED))
    if space:
        return Serving(TabLedgers(), _listening(host))  # no stranger decides for the others
    if not is_loopback(host):
        raise UsageError(
            f"HOST={host} lets others in, and whoever comes in would use your ledger: add accounts with "
            "`python -m mechanisms users add NAME`, or leave HOST out."
        )
    listening = _listening(host, only=("localhost", "127.0.0.1", "[::1]", host))
    return Serving(CuratorLedger(PrivacyLedger()), listening, _unless(locked, Choosable.ANY))


def _unless(locked: bool, choosable: Choosable) -> Choosable:
    return Choosable.NONE if locked else choosable


def _listening(host: str, only: tuple[str, ...] = ()) -> dict[str, Any]:
    framed = {"framed_by": _SPACES} if os.environ.get("SPACE_ID") else {}
    middleware = [Middleware(Doorkeeper, **framed)]
    if only:  # a page elsewhere whose name was made to lead to this machine is another site
        middleware.append(Middleware(TrustedHostMiddleware, allowed_hosts=list(only), www_redirect=False))
    return {
        "server_name": host,
        "server_port": int(os.environ.get("PORT", "7860")),
        "share": False,
        "mcp_server": False,
        "app_kwargs": {"middleware": middleware},
    }
