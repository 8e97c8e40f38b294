"""Disjoint batches: every unit belongs to one batch by a secret keyed hash of itself.

Never by position: removing a row would shift everybody after it, and neighbouring data sets would differ everywhere.
"""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence


def keyed_place(key: bytes, identity: Sequence[str], purpose: str, places: int) -> int:
    """The place, 0 .. places - 1, of a unit: a pseudo-random function of the unit alone.

    Args:
        key: a run's secret; without it nobody can compute who is where.
        identity: the user's id, or everything the record says where there is no id.
        purpose: keeps the places of different uses independent.
        places: public.
    """
    # With their lengths, so that no two sequences make one message, whatever the texts hold.
    message = "".join(f"{len(part)}:{part}" for part in (purpose, *identity)).encode()
    return int.from_bytes(hmac.digest(key, message, "sha256")[:16], "big") % places


def copy_numbers(contents: Iterable[Hashable]) -> list[int]:
    """How many earlier units say exactly the same: equal rows must not share a coin, or what one of them has paid.

    One row more or less adds or takes one pair (content, copy), whichever of the equal rows it is.
    """
    seen: Counter[Hashable] = Counter()
    copies = []
    for content in contents:
        copies.append(seen[content])
        seen[content] += 1
    return copies
