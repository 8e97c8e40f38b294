"""The app's words in other languages, a folder for each.

A file of a folder is one JSON object from English to the other language. In both, `{n}` is a number, `{t}` words that
are translated themselves, and `{x}` anything, left as it is; digits tell several apart (`{n1}`, `{n2}`). Which file an
entry stands in is for people alone. Where there is none, the page stays English in that place.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path


@functools.cache
def german() -> dict[str, str]:
    """The catalogue of German, all files in one."""
    entries: dict[str, str] = {}
    for path in sorted((Path(__file__).parent / "german").glob("*.json")):
        entries |= json.loads(path.read_text(encoding="utf-8"))
    return entries
