"""A record, or a text with its answer, as a tree: names and values as text nodes, and whose tokens they are."""

from __future__ import annotations

import json
from typing import Any

from dpicl_ui.frame.tree import Tree, el
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.runs.events import TokenCounts


def record(text: str) -> Tree:
    """A record's text as a list of names and values; as it stands where it is no record."""
    try:
        said = json.loads(text)
        return _value(said) if isinstance(said, dict) else el("p", text)
    except (ValueError, RecursionError):
        return el("p", text)


def answered(each: Demonstration, template: PromptTemplate) -> Tree:
    """A text and its answer, each under its name."""
    return el("dl.record", _field(template.text, each.text), _field(template.output or "", each.output))


def counted(counts: TokenCounts) -> Tree:
    """Whose the tokens of a record are."""
    total = counts.charged + counts.forced + counts.rest
    parts = f"{counts.charged} charged, {counts.forced} forced by the schema, {counts.rest} public"
    return el("p.muted.counts-of", f"{total} tokens: {parts}")


def _value(value: Any) -> Tree:
    if isinstance(value, dict):
        return el("dl.record", *(_field(name, each) for name, each in value.items()))
    if isinstance(value, list):
        return el("ul", *(el("li", el("span.chip", each) if isinstance(each, str) else _value(each)) for each in value))
    return value if isinstance(value, str) else json.dumps(value)


def _field(name: str, value: Any) -> Tree:
    return el("div.record-field", el("dt", name), el("dd", _value(value)))
