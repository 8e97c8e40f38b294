"""Signatures of exported demo sets: this installation tells a file that it wrote from one that was edited since.

The key is symmetric and never leaves the machine, so that a signature convinces nobody else. Its name, a digest, is the
same in all exports of an installation.
"""

from __future__ import annotations

import hmac
from enum import StrEnum

from mechanisms.home import derived_key
from mechanisms.studio.certificates.digest import canonical
from mechanisms.studio.synthesis.demo_set import DemoSet, Json, read_json

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
