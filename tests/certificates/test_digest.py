"""The digest that ties paper and file: the same for every layout, another one for every other document."""

from __future__ import annotations

import json

import pytest

from mechanisms.demos.demo_set import to_text
from mechanisms.demos.signature import digest, same_digest, signed
from mechanisms.errors import UsageError
from mechanisms.runs.recipe import Division, Kind
from tests.certificates.recipes import document_of, text_of
from tests.ui.generate.recording import demo_set


def test_neither_layout_nor_signature_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("DPICL_HOME", str(tmp_path))
    made = demo_set()
    document = made.to_json()
    turned = json.dumps(dict(reversed(document.items())), indent=7)
    assert digest(made.dumps()) == digest(turned) == digest(to_text(signed(made)))


def test_every_field_counts():
    whole, seen = document_of(Kind.VOTE, Division.ROLES), {digest(text_of(Kind.VOTE, Division.ROLES))}
    for name in whole:
        seen.add(digest(json.dumps(whole | {name: "x"})))
        seen.add(digest(json.dumps({each: value for each, value in whole.items() if each != name})))
    seen.add(digest(json.dumps(whole | {"more": 1})))
    assert len(seen) == 2 * len(whole) + 2


def test_it_is_compared_however_it_is_typed():
    one = digest(demo_set().dumps())
    assert same_digest(one, one.replace(" ", "").upper())
    assert not same_digest(one, one[:-1] + ("0" if one[-1] != "0" else "1"))
    for wrong in ("", one[:-1], "g" + one[1:]):
        with pytest.raises(UsageError, match="32 hexadecimal"):
            same_digest(one, wrong)
