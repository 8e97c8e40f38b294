"""A digest of what a demo-set file says, short enough to compare on paper, long enough that no other file has it."""

from __future__ import annotations

import hashlib
import hmac
import json
from enum import StrEnum

from mechanisms.demos.demo_set import DemoSet, Json, read_json
from mechanisms.errors import UsageError
from mechanisms.files import derived_key

_DIGITS, _GROUP = 32, 4
"""128 bits of SHA-256: to find another document with a given digest takes 2^128 tries, any two alike 2^64."""


def canonical(document: Json) -> str:
    """One text for all layouts of the same document: neither spaces nor the order of fields count."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(text: str) -> str:
    """The digest of a demo-set file, in groups of four hexadecimal digits; its signature does not count.

    Raises:
        UsageError: not JSON.
    """
    document = read_json(text)
    if isinstance(document, dict):
        document.pop("signature", None)
    digits = hashlib.sha256(canonical(document).encode()).hexdigest()[:_DIGITS]
    return " ".join(digits[start : start + _GROUP] for start in range(0, _DIGITS, _GROUP))


def same_digest(one: str, other: str) -> bool:
    """Whether two digests are the same, however they are spaced and whatever the case of their letters.

    Raises:
        UsageError: `other` is no such digest.
    """
    compared = ["".join(each.split()).lower() for each in (one, other)]
    if len(compared[1]) != _DIGITS or not set(compared[1]) <= set("0123456789abcdef"):
        raise UsageError(f"A digest has {_DIGITS} hexadecimal digits, as the certificate page and `account` print it.")
    return compared[0] == compared[1]


# Signatures of exported demo sets: this installation tells a file that it wrote from one that was edited since.
#
# The key is symmetric and never leaves the machine, so that a signature convinces nobody else. Its name, a digest,
# is the same in all exports of an installation.

ALGORITHM = "hmac-sha256"


class Signature(StrEnum):
    """What this installation can say of a file's signature."""

    VALID = "valid"
    CHANGED = "changed"
    FOREIGN = "foreign"
    """Signed under a key that is not this installation's: it cannot be told here whether the file was edited."""
    ABSENT = "absent"


def signed(demo_set: DemoSet) -> Json:
    """A demo set's document with the signature of this installation, as it is exported."""
    document = demo_set.to_json()
    return document | {"signature": _signature(document)}


def check_signature(text: str) -> Signature:
    """The state of a file's signature; all that the file says is covered, its layout is not.

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
