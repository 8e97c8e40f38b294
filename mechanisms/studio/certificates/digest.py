"""A digest of what a demo-set file says, short enough to compare on paper, long enough that no other file has it."""

from __future__ import annotations

import hashlib
import json

from mechanisms.errors import UsageError
from mechanisms.studio.synthesis.demo_set import Json, read_json

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
