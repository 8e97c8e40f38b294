"""Accounts: what is on the disk, whom it lets in, and who is the same person."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from mechanisms.accounting import PrivacyLedger
from mechanisms.accounts import Accounts, normalised, owner_folder
from mechanisms.errors import StudioError, UsageError

PASSWORD = "pass wörd with spaces"


@pytest.fixture
def accounts() -> Accounts:
    made = Accounts()
    made.add("Ada", PASSWORD)
    return made


def test_the_right_password_and_no_other_lets_in(accounts: Accounts):
    accounts.add("Ben", "another password")
    assert accounts.admits("Ada", PASSWORD)
    for name, password in (("Ada", "another password"), ("Ada", ""), ("Ben", PASSWORD), ("Eve", PASSWORD), ("", "")):
        assert not accounts.admits(name, password)


def test_a_password_is_the_same_however_a_keyboard_composes_it(accounts: Accounts):
    assert accounts.admits(" Ada", PASSWORD.replace("ö", "o\u0308"))


def test_the_file_is_for_its_owner_alone_and_holds_no_password(accounts: Accounts, data_folder: Path):
    accounts.add("Ben", PASSWORD)
    assert stat.S_IMODE((data_folder / "users").stat().st_mode) == 0o600
    assert [path.name for path in data_folder.iterdir()] == ["users"]
    lines = [line.split("\t") for line in (data_folder / "users").read_text(encoding="utf-8").splitlines()]
    assert PASSWORD not in str(lines)
    (ada, salt, hashed), (_, other_salt, other) = lines
    assert (ada, len(bytes.fromhex(salt))) == ("Ada", 16)
    assert salt != other_salt
    assert hashed != other
    memory_hard = hashlib.scrypt(PASSWORD.encode(), salt=bytes.fromhex(salt), n=2**15, r=8, p=1, maxmem=2**26)
    assert hashed == memory_hard.hex()


@pytest.mark.parametrize("name", ["Ada", "nobody", "\0" * 100])
def test_an_unknown_name_is_hashed_for_too(accounts: Accounts, monkeypatch: pytest.MonkeyPatch, name: str):
    hashed = []
    scrypt = hashlib.scrypt
    monkeypatch.setattr(hashlib, "scrypt", lambda *text, **rest: hashed.append(text) or scrypt(*text, **rest))
    accounts.admits(name, "wrong password")
    assert len(hashed) == 1


def test_a_removed_person_stays_out_and_the_ledger_stays(accounts: Accounts):
    PrivacyLedger(owner_folder("Ada"))
    accounts.remove("Ada")
    assert accounts.names() == []
    assert not accounts.admits("Ada", PASSWORD)
    assert (owner_folder("Ada") / "ledger.sqlite").exists()
    with pytest.raises(UsageError, match="users list"):
        accounts.remove("Ada")


def test_an_owners_folder_is_for_its_owner_alone_and_does_not_show_the_name(data_folder: Path):
    PrivacyLedger(owner_folder("Ada"))
    assert stat.S_IMODE(owner_folder("Ada").stat().st_mode) == 0o700
    assert "Ada" not in str(owner_folder("Ada").relative_to(data_folder))
    assert owner_folder("Ada") != owner_folder("ada")


def test_names_are_one_person_in_every_unicode_form():
    assert normalised(" Zoe\u0308 ") == "Zoë"
    assert owner_folder("Zoe\u0308") == owner_folder("Zoë")


@pytest.mark.parametrize("name", ["", "  ", "a\tb", "a\nb", "a\x7fb", "a\u202eb", "a\u200bb", "\ud800", "x" * 65])
def test_names_that_could_pass_for_another_or_break_a_line_are_refused(name: str):
    with pytest.raises(UsageError, match="printable"):
        Accounts().add(name, PASSWORD)


def test_a_taken_name_and_a_short_password_are_refused(accounts: Accounts):
    with pytest.raises(UsageError, match="already"):
        accounts.add("Ada ", PASSWORD)
    with pytest.raises(UsageError, match="at least 8"):
        accounts.add("Ben", "1234567")
    assert accounts.names() == ["Ada"]


def test_a_damaged_file_lets_nobody_in(accounts: Accounts, data_folder: Path):
    (data_folder / "users").write_text("Ada\n")
    with pytest.raises(StudioError, match="restore"):
        accounts.admits("Ada", PASSWORD)
    with pytest.raises(StudioError, match="restore"):
        accounts.names()
