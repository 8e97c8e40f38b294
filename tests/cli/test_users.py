"""`users`: adding, listing and removing people without showing a password."""

from __future__ import annotations

import io
import json

import pytest

from mechanisms.accounts import Accounts
from tests.cli.command import check_refusal, run

PASSWORD = "a long password"


def answer(monkeypatch: pytest.MonkeyPatch, *passwords: str) -> None:
    given = iter(passwords)
    monkeypatch.setattr("getpass.getpass", lambda _prompt: next(given))


def test_people_come_and_go(capsys, monkeypatch):
    answer(monkeypatch, PASSWORD, PASSWORD)
    code, out, err = run(capsys, "users add Ada --json")
    assert (code, json.loads(out)) == (0, {"added": "Ada"})
    assert "next start" in err
    monkeypatch.setattr("sys.stdin", io.StringIO("another one\n"))
    _, out, err = run(capsys, "users add --password-stdin", " Ben Smith ")
    assert "Ben Smith" in out
    assert "another one" not in out + err
    assert Accounts().admits("Ada", PASSWORD)
    assert Accounts().admits("Ben Smith", "another one")
    _, out, _ = run(capsys, "users list --json")
    assert json.loads(out) == {"users": ["Ada", "Ben Smith"]}
    run(capsys, "users remove Ada")
    assert Accounts().names() == ["Ben Smith"]


def test_a_mistyped_password_changes_nothing(capsys, monkeypatch):
    answer(monkeypatch, PASSWORD, "a lang password")
    check_refusal(capsys, "users add Ada", 2, "differ")
    assert Accounts().names() == []


def test_without_a_terminal_one_line_says_what_to_do(capsys, monkeypatch):
    def asked(_prompt):
        raise EOFError

    monkeypatch.setattr("getpass.getpass", asked)
    check_refusal(capsys, "users add Ada", 2, "give --password-stdin.")
    assert Accounts().names() == []


@pytest.mark.parametrize("option", ["", "--password-stdin"])
def test_a_password_that_is_no_text_is_refused_and_not_shown(capsys, monkeypatch, option):
    given = io.TextIOWrapper(io.BytesIO(b"canary\xff\n"), encoding="utf-8")
    monkeypatch.setattr("sys.stdin", given)
    monkeypatch.setattr("getpass.getpass", lambda _prompt: given.readline())
    code, out, err = run(capsys, f"users add Ada {option}")
    assert (code, out) == (2, "")
    assert "UTF-8" in err
    assert "canary" not in err
    assert Accounts().names() == []


@pytest.mark.parametrize(("line", "message"), [("users remove Ada", "Nobody"), ("users remove \x07", "printable")])
def test_who_is_not_there_cannot_be_removed(capsys, line: str, message: str):
    check_refusal(capsys, line, 2, message)
