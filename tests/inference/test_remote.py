"""A reader elsewhere: where a key may be sent, what is asked, and every way in which a server can fail."""

from __future__ import annotations

import gzip
import threading
import time

import pytest

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference import remote
from mechanisms.inference.remote import KEY_VARIABLE, ChatServer, ServerAddress, key_from_environment
from tests.chat_server import Reply, Server, serving

KEY = "sk-not-to-be-seen"
NOBODY = Server("http://127.0.0.1:9/v1", [])
"""Nothing listens there, and no server of a test gets this port."""


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


def test_the_key_comes_from_the_environment_and_one_that_no_header_can_carry_is_not_quoted(monkeypatch):
    for said, key in ((" ", None), ("sk-1\n", "sk-1")):
        monkeypatch.setenv(KEY_VARIABLE, said)
        assert key_from_environment() == key
    for said in ("sk-1\nX-Other: 2", "schlüssel", "a\x7f"):
        monkeypatch.setenv(KEY_VARIABLE, said)
        with pytest.raises(UsageError, match=KEY_VARIABLE) as refused:
            key_from_environment()
        assert said not in str(refused.value)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(remote, "_FIRST_WAIT", 0.001)
    monkeypatch.setattr(remote, "_LONGEST_WAIT", 0.01)


def asking(server, key=KEY) -> ChatServer:
    return ChatServer(ServerAddress.of(server.url), "small", key)


def answers(server, messages, key=KEY):
    return [each for batch in asking(server, key).answers(messages, 9) for each in batch]


def failure(reply):
    """The line of a request that gets such a reply, and how often it was sent."""
    with serving(lambda asked: reply) as server:
        with pytest.raises(ModelUnavailable) as failed:
            answers(server, ["hello"])
        line = str(failed.value)
        assert line.startswith(f"small at {server.url.removeprefix('http://').removesuffix('/v1')} ")
        assert "\n" not in line
        assert KEY not in line
        return line, len(server.asked)


def test_answers_come_in_order_from_deterministic_requests():
    def rule(asked):
        time.sleep(0.02 * (len(asked.prompt) % 3))
        return Reply(asked.prompt.upper())

    messages = [f"message {i} " + "x" * i for i in range(37)]
    with serving(rule) as server:
        assert answers(server, messages) == [each.upper() for each in messages]
        for asked in server.asked:
            chat = asked.chat
            assert asked.path == "/v1/chat/completions"
            assert (chat["model"], chat["temperature"], chat["max_tokens"], chat["stream"]) == ("small", 0, 9, False)
            assert set(chat) == {"model", "messages", "temperature", "max_tokens", "stream"}


def test_the_key_stands_in_one_header_and_nowhere_else():
    with serving(lambda asked: Reply("ok")) as server:
        answers(server, ["hello"])
        answers(server, ["hello"], key=None)
        with_key, without = server.asked
        assert with_key.headers["Authorization"] == f"Bearer {KEY}"
        assert KEY not in with_key.body + with_key.path
        assert [name for name, value in with_key.headers.items() if KEY in value] == ["Authorization"]
        assert "Authorization" not in without.headers
        assert KEY not in repr(asking(server))


def test_no_more_requests_are_under_way_than_was_said(monkeypatch):
    monkeypatch.setattr(remote, "_AT_ONCE", 3)
    now, most, lock, together = 0, 0, threading.Lock(), threading.Event()

    def rule(asked):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            if now > 1:
                together.set()
        together.wait(5)  # on a busy machine the second request may be late
        time.sleep(0.02)  # time for one too many to come
        with lock:
            now -= 1
        return Reply("ok")

    with serving(rule) as server:
        answers(server, ["hello"] * 16)
    assert 1 < most <= 3


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again_but_not_for_ever_nor_for_as_long_as_it_likes(status):
    replies = iter([Reply(status=status), Reply(status=status, headers={"Retry-After": "0"}), Reply("at last")])
    with serving(lambda asked: next(replies)) as server:
        assert answers(server, ["hello"]) == ["at last"]
        assert len(server.asked) == 3
    line, times = failure(Reply(status=status, headers={"Retry-After": "100000"}))
    assert str(status) in line
    assert times == 4


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(status=401, body=f"your key {KEY} is wrong".encode()), "DPICL_API_KEY"),
        (Reply(status=403), "DPICL_API_KEY"),
        (Reply(status=404), "model's name"),
        (Reply(status=400, body=KEY.encode()), "400"),
        (Reply(status=200, body=b"<html>hello"), "JSON"),
        (Reply(status=200, body=b"\xff\xfe"), "JSON"),
        (Reply(status=200, body=b"[" * 100_000), "JSON"),
        (Reply(status=200, body=gzip.compress(b"0" * 10_000_000), headers={"Content-Encoding": "gzip"}), "JSON"),
        (Reply(status=200, body=b"{}"), "OpenAI"),
        (Reply(status=200, body=b"[]"), "OpenAI"),
        (Reply(status=200, body=b'{"choices": []}'), "OpenAI"),
        (Reply(status=200, body=b'{"choices": [{"message": {"content": [1]}}]}'), "OpenAI"),
        (Reply(status=200, body=b" " * ((1 << 20) + 1)), "MiB"),
        (Reply(status=200, headers={"Content-Length": "10000"}), "closed the connection"),
    ],
)
def test_a_failure_is_one_clear_line_and_is_not_repeated(reply, said):
    if "Content-Length" in reply.headers:
        reply.headers["Connection"] = "close"
    line, times = failure(reply)
    assert said in line
    assert times == 1


def test_a_redirect_is_not_followed():
    with serving(lambda asked: Reply("elsewhere")) as other:
        line, _ = failure(Reply(status=307, headers={"Location": f"{other.url}/chat/completions"}))
        assert "307" in line
        assert other.asked == []


def test_a_server_that_is_not_there_or_never_answers(monkeypatch):
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        answers(NOBODY, ["hello"])
    done = threading.Event()

    def rule(asked):
        done.wait(60)
        return Reply("late")

    monkeypatch.setattr(remote, "_TIMEOUT", 0.1)
    with serving(rule) as server:
        with pytest.raises(ModelUnavailable, match=r"within 0.1 seconds"):
            answers(server, ["hello"])
        done.set()


def test_no_proxy_reads_what_is_not_encrypted(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving(lambda asked: Reply("ok")) as server:
        assert answers(server, ["hello"]) == ["ok"]


def test_text_that_is_no_unicode_is_sent_and_no_content_is_an_empty_answer():
    with serving(lambda asked: Reply(None)) as server:
        assert answers(server, ["caf\udce9"]) == [""]
        with pytest.raises(UsageError):
            ChatServer(ServerAddress.of(server.url), " ")
