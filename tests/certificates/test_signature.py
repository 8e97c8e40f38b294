"""Signatures: every edit of a file shows on the machine that wrote it, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mechanisms.demos.demo_set import loads, to_text
from mechanisms.demos.signature import Signature, check_signature, digest, same_digest, signed
from mechanisms.errors import UsageError
from mechanisms.runs.spec import Recipe, Split
from tests.certificates.recipes import certified, demonstrations, document_of, planned, text_of
from tests.certificates.test_verification import edited


@pytest.fixture
def document() -> dict[str, Any]:
    return signed(certified(planned(Recipe.BOTH, Split.ROLES), demonstrations=demonstrations(2)))


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from leaves(child, (*path, key))
    if not isinstance(node, dict | list):
        yield path


def changed(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case str():
            return value + " "
        case None:
            return 1
        case _:
            return value * (1 + 2**-50) if isinstance(value, float) and value else value + 1


def test_an_export_is_valid_in_any_layout_and_reads_as_without_a_signature(document):
    for text in (to_text(document), json.dumps(document, sort_keys=True), json.dumps(document, ensure_ascii=True)):
        assert check_signature(text) is Signature.VALID
    unsigned = {name: value for name, value in document.items() if name != "signature"}
    assert loads(to_text(document)) == loads(to_text(unsigned))
    assert check_signature(to_text(unsigned)) is Signature.ABSENT


def test_any_edit_shows(document):
    places = [path for path in leaves(document) if path[0] != "signature"]
    assert len(places) > 50
    for path in places:
        other = json.dumps(edited(json.dumps(document), path, changed))
        assert check_signature(other) is Signature.CHANGED, path
    assert check_signature(json.dumps(document | {"more": 1})) is Signature.CHANGED


@pytest.mark.parametrize("value", ["0" * 64, "é", None, ["x"]])
def test_a_wrong_value_under_the_right_name_is_a_change(document, value):
    document["signature"]["value"] = value
    assert check_signature(json.dumps(document)) is Signature.CHANGED


def test_another_installation_cannot_tell(document, tmp_path, monkeypatch):
    monkeypatch.setenv("DPICL_HOME", str(tmp_path / "elsewhere"))
    assert check_signature(to_text(document)) is Signature.FOREIGN


# The digest that ties paper and file: the same for every layout, another one for every other document.


def test_neither_layout_nor_signature_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("DPICL_HOME", str(tmp_path))
    made = loads(text_of(Recipe.BOTH, Split.EPSILON))
    document = made.to_json()
    turned = json.dumps(dict(reversed(document.items())), indent=7)
    assert digest(made.dumps()) == digest(turned) == digest(to_text(signed(made)))


def test_every_field_counts():
    whole, seen = document_of(Recipe.VOTE, Split.ROLES), {digest(text_of(Recipe.VOTE, Split.ROLES))}
    for name in whole:
        seen.add(digest(json.dumps(whole | {name: "x"})))
        seen.add(digest(json.dumps({each: value for each, value in whole.items() if each != name})))
    seen.add(digest(json.dumps(whole | {"more": 1})))
    assert len(seen) == 2 * len(whole) + 2


def test_it_is_compared_however_it_is_typed():
    one = digest(text_of(Recipe.BOTH, Split.EPSILON))
    assert same_digest(one, one.replace(" ", "").upper())
    assert not same_digest(one, one[:-1] + ("0" if one[-1] != "0" else "1"))
    for wrong in ("", one[:-1], "g" + one[1:]):
        with pytest.raises(UsageError, match="32 hexadecimal"):
            same_digest(one, wrong)
