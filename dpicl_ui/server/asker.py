"""Who asks: whom a request counts for, where each may have so much and no more."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network, ip_address

from starlette.requests import Request

_PREFIX = 64
"""Bits of an IPv6 address that name a household; whoever has one may use all addresses in it."""


def person_of(request: Request) -> str | None:
    """Who signed in, as Gradio knows it."""
    app = request.app
    cookies = (request.cookies.get(f"access-token-{kind}{app.cookie_id}") for kind in ("", "unsecure-"))
    person: str | None = app.tokens.get(next(filter(None, cookies), None))
    return person


def address_of(request: Request) -> str:
    """The address of who connects, or whom a proxy names that the operator trusts (FORWARDED_ALLOW_IPS of uvicorn)."""
    host = request.client.host if request.client else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or IPv6Network((address.packed, _PREFIX), strict=False))
