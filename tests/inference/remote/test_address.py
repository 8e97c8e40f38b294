"""Where a key may be sent."""

from __future__ import annotations

import pytest

from mechanisms.errors import UsageError
from mechanisms.inference.remote import KEY_VARIABLE, ServerAddress, key_from_environment


@pytest.mark.parametrize(
    ("url", "endpoint", "host"),
    [
        ("https://api.example.org", "https://api.example.org/v1/chat/completions", "api.example.org"),
        ("https://api.example.org/v1/", "https://api.example.org/v1/chat/completions", "api.example.org"),
        ("https://h.example/openai/v1", "https://h.example/openai/v1/chat/completions", "h.example"),
        (" http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/chat/completions", "127.0.0.1:8000"),
        ("http://[::1]:1/v1", "http://[::1]:1/v1/chat/completions", "[::1]:1"),
        ("HTTP://LocalHost", "http://localhost/v1/chat/completions", "localhost"),
        ("https://bücher.example", "https://xn--bcher-kva.example/v1/chat/completions", "xn--bcher-kva.example"),
    ],
)
def test_https_and_this_machine_are_asked(url, endpoint, host):
    address = ServerAddress.of(url)
    assert (address.endpoint, address.host) == (endpoint, host)
    assert address.encrypted == endpoint.startswith("https")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        *[(f"http://{host}/v1", "https://") for host in ("example.org", "10.0.0.1", "0.0.0.0", "localhost.org")],
        *[(f"http://{host}/v1", "https://") for host in ("127.0.0.1.nip.io", "127.1", "[::]", "localhost.")],
        *[(url, "not a URL") for url in ("", "example.org", "ftp://example.org", "file:///etc/passwd", "https://")],
        *[(url, "not a URL") for url in ("https://h:99999", "http://１２７.0.0.1", "//localhost", "\0")],
        *[(f"https://{rest}", "no user") for rest in ("me@h", "me:key@h", "h?key=secret", "h/#secret")],
        ("http://127.0.0.1@example.org/v1", "no user"),
        (r"http://localhost\@example.org", "no user"),
    ],
)
def test_everything_else_is_refused_in_one_line_that_does_not_repeat_it(url, why):
    with pytest.raises(UsageError, match=why) as refused:
        ServerAddress.of(url)
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_the_key_comes_from_the_environment(monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert key_from_environment() is None
    monkeypatch.setenv(KEY_VARIABLE, " ")
    assert key_from_environment() is None
    monkeypatch.setenv(KEY_VARIABLE, "sk-1\n")
    assert key_from_environment() == "sk-1"


@pytest.mark.parametrize("key", ["sk-1\nX-Other: 2", "schlüssel", "a\x7f"])
def test_a_key_that_no_header_can_carry_is_not_quoted(monkeypatch, key):
    monkeypatch.setenv(KEY_VARIABLE, key)
    with pytest.raises(UsageError, match=KEY_VARIABLE) as refused:
        key_from_environment()
    assert key not in str(refused.value)
