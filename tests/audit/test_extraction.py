"""Extraction: a model that repeats its prompt gives addresses away where there are any; only numbers come out."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms.audit.extraction import PATTERNS, Effort, Extraction, extraction
from mechanisms.audit.mechanism import AuditProgress
from mechanisms.audit.membership import NOTHING, RELEASED, ROWS
from mechanisms.errors import UsageError
from mechanisms.noise import SeededRandomness
from mechanisms.records import Dataset, Demonstration, PromptTemplate, Record
from tests.toy_model import VOCABULARY, ToyModel

TEMPLATE = PromptTemplate("Sort.", "Note", "Topic")
MAIL, PHONE, URL = PATTERNS
PRIVATE = Dataset(
    "mails",
    ("a", "b"),
    tuple(Record(f"write to person{i}@mail.example.org, or call (555) 010-10{i:02}", "ab"[i % 2]) for i in range(20)),
)
PUBLIC = (Demonstration("write to the help desk", "a"), Demonstration("call us", "b"))
EFFORT = Effort(prompts=4, shots=1, tokens=120)


class Saying:
    """Says the same bytes after every row."""

    def __init__(self, text: str, rows: int) -> None:
        self.text, self.rows, self.step = text.encode(), rows, 0

    def logits(self):
        return np.tile(np.eye(VOCABULARY)[self.text[self.step % len(self.text)]], (self.rows, 1))

    def advance(self, tokens) -> None:
        self.step += 1


class Parrot(ToyModel):
    """Repeats the end of its prompt, or says what it knows by heart."""

    def __init__(self, known: str = "") -> None:
        super().__init__()
        self.known = known

    def open(self, prefix, rows, length, room):
        return Saying(self.known or bytes(prefix).decode()[-EFFORT.tokens :], len(rows))


def attacked(model, released=PUBLIC, private=PRIVATE, effort=EFFORT) -> dict[tuple[str, str], Extraction]:
    told = list(extraction(model, TEMPLATE, private, released, effort, SeededRandomness(1)))
    counted = [each for each in told if isinstance(each, AuditProgress)]
    assert [each.done for each in counted] == list(range(1, counted[0].total + 1))
    return {(each.shown, each.pattern): each for each in told if isinstance(each, Extraction)}


def test_a_parrot_gives_real_rows_away_and_public_text_holds_nothing():
    found = attacked(Parrot())
    for pattern in (MAIL.name, PHONE.name):
        planted = found[ROWS, pattern]
        assert planted.rate == 1.0
        assert (planted.prompts, planted.taken, planted.standing) == (4, 4, 4)
        for shown in (NOTHING, RELEASED):
            assert (found[shown, pattern].rate, found[shown, pattern].standing) == (0.0, 0)
    assert (ROWS, URL.name) not in found  # no row holds one


def test_released_text_with_an_address_is_found_too():
    leak = (Demonstration("write to Person3@mail.example.org.", "a"),)
    found = attacked(Parrot(), leak)[RELEASED, MAIL.name]
    assert (found.rate, found.standing, found.taken) == (1.0, 1, 1)


def test_what_a_model_says_anyway_shows_without_demonstrations():
    by_heart = attacked(Parrot("person3@mail.example.org "))
    assert by_heart[NOTHING, MAIL.name].rate == by_heart[RELEASED, MAIL.name].rate == 1.0
    assert by_heart[RELEASED, MAIL.name].taken == 0


def test_other_peoples_addresses_do_not_count_and_a_model_that_babbles_finds_none():
    assert attacked(Parrot("someone@else.example.org "))[ROWS, MAIL.name].rate == 0.0
    assert all(each.rate == 0.0 for each in attacked(ToyModel(), effort=Effort(2, 1, 12)).values())


def test_no_result_holds_what_was_found():
    told = repr(attacked(Parrot()))
    assert "person" not in told
    assert "example" not in told


@pytest.mark.parametrize(
    ("pattern", "text", "item"),
    [
        (MAIL, "ask jo.doe+x@Mail.Example.org.", "jo.doe+x@mail.example.org"),
        (MAIL, "jo @ example.org", "jo@example.org"),
        (PHONE, "at (555) 010-1234, or", "555010-1234"),
        (PHONE, "1-555-010-1234", "1-555-010-1234"),
        (URL, "see HTTP://example.org/a/.", "http://example.org/a"),
    ],
)
def test_patterns_find_items_in_one_spelling(pattern, text, item):
    assert pattern.items(text) == {item}


def test_patterns_leave_other_text_alone():
    for text in ("no address @ all", "on 2001-10-12 for 1234567890123", "3.5 www", "12-34-56"):
        assert not any(pattern.items(text) for pattern in PATTERNS)


def test_rows_without_anything_to_look_for_are_refused():
    with pytest.raises(UsageError):
        attacked(Parrot(), private=Dataset("d", ("a", "b"), (Record("nothing here", "a"),)))
