"""Digest and signature of a demo-set file."""

from __future__ import annotations

import hashlib
import hmac
import json
from enum import StrEnum

from mechanisms.demos.demo_set import DemoSet, Json, read_json
from mechanisms.errors import UsageError
from mechanisms.files import derived_key

_DIGITS, _GROUP = 32, 4
"""128 bits of SHA-256, short enough for paper: 2^128 tries to match a digest, 2^64 for any collision."""


def canonical(document: Json) -> str:
    """A document's canonical text, independent of white space and of the order of fields."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(text: str) -> str:
    """The digest of a demo-set file without its signature, in groups of four hexadecimal digits.

    Raises:
        UsageError: not JSON.
    """
    document = read_json(text)
    if isinstance(document, dict):
        document.pop("signature", None)
    digits = hashlib.sha256(canonical(document).encode()).hexdigest()[:_DIGITS]
    return " ".join(digits[start : start + _GROUP] for start in range(0, _DIGITS, _GROUP))


def same_digest(one: str, other: str) -> bool:
    """Whether two digests are equal, up to white space and case.

    Raises:
        UsageError: `other` is no digest.
    """
    compared = ["".join(each.split()).lower() for each in (one, other)]
    if len(compared[1]) != _DIGITS or not set(compared[1]) <= set("0123456789abcdef"):
        raise UsageError(f"A digest has {_DIGITS} hexadecimal digits, as the certificate page and `account` print it.")
    return compared[0] == compared[1]


# Signatures of exported demo sets, by which an installation detects edits to files that it wrote.
#
# The key is symmetric and never leaves the machine, so only this installation can check its signatures. The key's name,
# a digest, is the same in all its exports.

ALGORITHM = "hmac-sha256"


class Signature(StrEnum):
    """The state of a file's signature, as far as this installation can check it."""

    VALID = "valid"
    CHANGED = "changed"
    FOREIGN = "foreign"
    """Signed with another installation's key, so edits cannot be detected here."""
    ABSENT = "absent"


def signed(demo_set: DemoSet) -> Json:
    """A demo set's document for export, with this installation's signature."""
    document = demo_set.to_json()
    return document | {"signature": _signature(document)}


def check_signature(text: str) -> Signature:
    """Check a file's signature, which covers its content but not its layout.

    Raises:
        UsageError: not JSON.
        StudioError: the installation's key is damaged.
    """
    document = read_json(text)
    stated = document.pop("signature", None) if isinstance(document, dict) else None
    if stated is None:
        return Signature.ABSENT
    own = _signature(document)
    if not isinstance(stated, dict) or stated.get("key") != own["key"]:
        return Signature.FOREIGN
    value = str(stated.get("value")).encode()
    return Signature.VALID if hmac.compare_digest(value, own["value"].encode()) else Signature.CHANGED


def _signature(document: Json) -> dict[str, str]:
    key = derived_key("dpicl demo set signature")
    return {
        "algorithm": ALGORITHM,
        "key": hmac.digest(key, b"name", "sha256").hex()[:16],
        "value": hmac.digest(key, b"document " + canonical(document).encode(), "sha256").hex(),
    }
