"""The words of a column's name, however they are joined."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def column_words(name: str) -> list[str]:
    """Its words in small letters, in order: "user" and "id" of "userId", "user_id" and "User ID"."""
    return [word.lower() for word in _WORD.findall(name)]
