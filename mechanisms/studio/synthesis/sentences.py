"""Where sentences end, in any script: a text that stops in the middle of one can be cut back to the one before."""

from __future__ import annotations

import re

_WIDE = "。！？｡．"
"""Ends of scripts that put no space behind them."""
_NARROW = "!?…؟۔।॥።፧։။។"
_CLOSING = "\"'”’»«“›)）」』】"

# A period behind one letter is an initial or an abbreviation ("J. Smith", "e.g."), behind a title a name follows, and
# one that stands alone ends nothing.
_NOT_BEHIND = r"(?<!\s)(?<!\b[^\W\d_])(?<!\b[DMS]r)(?<!\bMrs)(?<!\bMs)"
_END = re.compile(
    rf"(?:[{_WIDE}]|(?:{_NOT_BEHIND}\.|[{_NARROW}])(?=[.{_NARROW}{_CLOSING}]*(?:\s|$)))[.{_NARROW}{_CLOSING}]*"
)


def whole_sentences(text: str) -> str:
    """The text up to its last end of a sentence, quotes and brackets behind it included; "" where there is none."""
    ends = [match.end() for match in _END.finditer(text)]
    return text[: ends[-1]].strip() if ends else ""


def without_rest(text: str) -> str:
    """The whole sentences of a text that broke off; all of it where they are less than half."""
    whole = whole_sentences(text)
    return whole if 2 * len(whole) >= len(text) else text
