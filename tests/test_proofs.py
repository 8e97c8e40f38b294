"""Proof beside the code: every mechanism, tally and transform names the section of docs/ that proves its claim."""

from __future__ import annotations

import re
import sys
from functools import reduce
from typing import Any

import pytest
from markdown.extensions.toc import slugify

from mechanisms.discovery import defined
from mechanisms.steps import transform_class, transform_names
from tests.conftest import ROOT

REGISTERED = [
    *defined("mechanisms.steps", "MECHANISM").values(),
    *map(transform_class, transform_names()),
    *defined("mechanisms.tallies", "TALLY").values(),
    *defined("mechanisms.queries", "MECHANISM").values(),
]
NAME = r"`(\w+(?:\.\w+)?)`"


def sections(file: str) -> dict[str, str]:
    """What stands below each heading of a page, by the heading's anchor."""
    parts = re.split(r"^#+ (.*)$", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {slugify(heading, "-"): text for heading, text in zip(parts[1::2], parts[2::2], strict=True)}


def proved(proof: str) -> list[str]:
    """The names of the code whose claims a section proves; none where there is no such section."""
    file, _, anchor = proof.partition("#")
    section = sections(file).get(anchor, "") if (ROOT / file).is_file() else ""
    found = re.search(rf"^In code: ({NAME}(?:,\s+{NAME})*)\.$", section, re.MULTILINE)
    return re.findall(NAME, found[1]) if found else []


def missing(registered: type) -> list[str]:
    """What a registered class, or the section that it names, lacks."""
    proof = vars(registered).get("proof")  # its own: a proof is not inherited
    if proof is None:
        return ["a proof"]
    known = {name: value for each in registered.__mro__[::-1] for name, value in vars(module_of(each)).items()}
    names = proved(proof)
    absent = [name for name in names if not reaches(known, name)]
    return absent + ([] if names else [f"a section '{proof}' that ends with 'In code: ...'"])


def module_of(kind: type) -> Any:
    return sys.modules[kind.__module__]


def reaches(known: dict[str, Any], name: str) -> bool:
    first, *rest = name.split(".")
    return first in known and bool(reduce(lambda of, each: getattr(of, each, None), rest, known[first]))


@pytest.mark.parametrize("registered", REGISTERED, ids=lambda each: each.name)
def test_its_claim_is_proved_in_a_section_that_names_its_code(registered: type):
    assert missing(registered) == []


def test_each_has_a_section_of_its_own():
    assert len(REGISTERED) >= 15
    assert len({each.proof for each in REGISTERED}) == len(REGISTERED)


def test_sections_that_the_program_names_are_there():
    programs = [path.read_text(encoding="utf-8") for path in (ROOT / "mechanisms").rglob("*.py")]
    named = {each for text in programs for each in re.findall(r"(docs/\w+\.md)#([\w-]+)", text)}
    assert len(named) >= len(REGISTERED)
    assert [f"{file}#{anchor}" for file, anchor in named if anchor not in sections(file)] == []


def test_a_missing_proof_section_or_function_is_found():
    class Bare:
        pass

    class Lost:
        proof = "docs/mechanisms.md#nowhere"

    class Foreign:
        proof = "docs/mechanisms.md#svt-public-amin-et-al-2024-algorithm-1"

    assert missing(Bare) == ["a proof"]
    assert missing(Lost) == [f"a section '{Lost.proof}' that ends with 'In code: ...'"]
    assert "distance" in missing(Foreign)
