"""Words and n-grams in any language, for distinct-n and for the search in private rows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Thai, Lao, Burmese, Khmer, kana and Han: scripts without spaces between words."""
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")

Gram = tuple[str, ...]


def words_of(text: str) -> list[str]:
    """Runs of letters and digits, ignoring case; in scripts without spaces, single characters."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def grams(words: Sequence[str], n: int) -> Iterator[Gram]:
    """All runs of n words."""
    return (tuple(words[i : i + n]) for i in range(len(words) - n + 1))
