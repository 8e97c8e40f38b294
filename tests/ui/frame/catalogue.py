"""How the browser looks words up (`assets/language.js`), in Python, and the words that stand in the app's sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

HOLDER = re.compile(r"\{[ntx]\d*\}")
_NUMBER = r"(?:(?:[-−+±]?\d[\d.,:]*(?:e[-+]?\d+)?)|∞|inf)"
_SENTENCES = re.compile(r"(?<=[.!?:;…]) ")
_FIELD = re.compile(r"\{[^{}]*\}")
_TAG = re.compile(r"<[^>]*>")
_LOGGED = {"debug", "info", "warning", "error", "exception", "critical"}


def holders(words: str) -> list[str]:
    """The placeholders of an entry, in their order."""
    return HOLDER.findall(words)


def renumbered(english: str, german: str) -> tuple[str, str]:
    """An entry with its placeholders counted from the left: what is the same entry looks the same."""
    order = {name: f"{{{name[1]}{i}}}" for i, name in enumerate(dict.fromkeys(holders(english)))}
    known = (HOLDER.sub(lambda found: order.get(found[0], found[0]), words) for words in (english, german))
    return next(known), next(known)


class Lookup:
    """What has an entry."""

    def __init__(self, catalogue: Mapping[str, str]) -> None:
        self._entries = catalogue.keys()
        self._patterns = [_pattern(english) for english in catalogue if holders(english)]

    def knows(self, text: str) -> bool:
        """Whether a text is translated, whole or sentence by sentence; part of a sentence may stand inside an entry."""
        words = text.strip(" ")
        return self._has(words, words != text) or all(self._has(each) for each in _SENTENCES.split(words))

    def _has(self, words: str, part: bool = False) -> bool:
        if words in self._entries or any(pattern.fullmatch(words) for pattern in self._patterns):
            return True
        whole = not part and words[:1].isupper() and words.endswith((".", "!", "?", ":", ";", "…"))
        if whole and not _FIELD.search(words):
            return False
        filled = re.compile(".+?".join(map(re.escape, _FIELD.split(words))))
        return any(filled.fullmatch(each) if whole else filled.search(each) for each in self._entries)


def _pattern(english: str) -> re.Pattern[str]:
    parts = re.split(r"(\{[ntx]\d*\})", english)
    taken = (_NUMBER if part[1] == "n" else ".+?" for part in parts[1::2])
    source = "".join(map("".join, zip_longest(map(re.escape, parts[::2]), taken, fillvalue="")))
    return re.compile(source, re.DOTALL)


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Constant texts of a folder's sources, with their places: no docstrings, no log lines, and no f-strings."""
    for path in sorted(folder.rglob("*.py")):
        for node in _constants(ast.parse(path.read_text(encoding="utf-8"))):
            for piece in _TAG.split(node.value):
                yield f"{path.relative_to(folder.parent)}:{node.lineno}", piece.strip("\n")


def _constants(tree: ast.AST) -> Iterator[ast.Constant]:
    if isinstance(tree, ast.JoinedStr) or (isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant)):
        return
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree
    for child in _but_what_is_logged(tree):
        yield from _constants(child)


def _but_what_is_logged(tree: ast.AST) -> Iterable[ast.AST]:
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and tree.func.attr in _LOGGED:
        return tree.args[1:]
    return ast.iter_child_nodes(tree)
