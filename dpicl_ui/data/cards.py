"""What step 1 shows about a file, as trees; all of it is private until the curator declares parts public."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpicl_ui.data.state import Columns
from dpicl_ui.frame.cards import MANY_LABELS, fact, private_tag
from dpicl_ui.frame.tree import Tree, el
from mechanisms.data.columns import Inspection
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.table import Table

PREVIEW_ROWS = 5
_CELL = 240
_COLUMNS = 12
_FEW = 30
_LONG = 2000
_FEW_ROWS = "few {units}: much noise for each"
_MANY_FEW = f"{{few}} of the {{of}} labels have fewer than {_FEW} {{units}}: much noise for each. Leave some out below."
_LONG_TEXT = 600
"""Characters, well beyond the tokens of a row that step 2 proposes to read."""
_CUT = (
    "Most of these texts are long. Of each the model reads about the first 50 words, unless you let it read more under "
    "'Delta, and how much of a row is read' in step 2; that takes longer."
)
_FIRST = "What the model reads of the first one"


def preview_table(table: Table) -> list[Tree]:
    """The first rows of a parsed file, cells cut."""
    columns = table.columns[:_COLUMNS]
    head = el("tr", *(el("th", name, scope="col") for name in columns))
    rows = []
    for _, row in table.frame[columns].head(PREVIEW_ROWS).iterrows():
        rows.append(el("tr", *(el("td", el("div.cell", str(cell)[:_CELL])) for cell in row)))
    count = len(table.columns)
    size = f"{len(table.frame):,} rows, {count} column{'' if count == 1 else 's'}"
    cut = f"; the first {_COLUMNS} are shown" if len(table.columns) > _COLUMNS else ""
    return [
        el("div.card-head", el("h3", "First rows"), private_tag()),
        el("p.muted", size + cut),
        *(el("p.notice.info", remark) for remark in table.remarks),
        el("div.scroll", el("table.preview", el("thead", head), el("tbody", *rows))),
    ]


def counted(columns: Columns, labels: list[str]) -> list[Tree]:
    """How many rows there are, of each chosen label where they have any, and the file's problems."""
    if columns.kind:
        return _of_kind(columns)
    long = columns.table.frame[columns.mapping.text].str.len().median() > _LONG_TEXT
    counts = label_counts(columns.inspection, labels, columns.by_user)
    return [*counts, el("p.notice.info", _CUT)] if long else counts


def label_counts(inspection: Inspection, labels: list[str], by_user: bool = False) -> list[Tree]:
    """Units of each chosen label as bars, and the file's problems."""
    units = "users" if by_user else "rows"
    title = f"Labels and how many {units} have them"
    largest, many = max(inspection.counts.values(), default=1), len(labels) > MANY_LABELS
    lines = []
    for label in labels:
        count = inspection.counts.get(label, 0)
        remark = el("span.few", _FEW_ROWS.format(units=units)) if count < _FEW and not many else None
        lines.append(
            el(
                "div.count-row",
                el("span.count-name", label, title=label),
                el("span.count-bar", numbers={"share": count / largest}),
                el("span.count-number", f"{count:,}"),
                remark,
            )
        )
    sizes = [inspection.counts.get(label, 0) for label in labels]
    each = " to ".join(dict.fromkeys(f"{size:,}" for size in (min(sizes, default=0), max(sizes, default=0))))
    span = f"{len(labels)} labels, with {each} {units}" if many else ""
    few = sum(size < _FEW for size in sizes) if many else 0
    return [
        el(
            "div.card-head",
            el("h3", title),
            private_tag("Private until you confirm below"),
        ),
        el("p.muted", span) if span else "",
        el("p.few", _MANY_FEW.format(few=few, of=len(labels), units=units)) if few else "",
        el("div.counts", *lines),
        *_problems(inspection),
    ]


def _problems(inspection: Inspection) -> list[Tree]:
    kind = "bad" if inspection.fatal else "warn"
    return [el(f"p.notice.{kind}", problem) for problem in inspection.problems]


def _of_kind(columns: Columns) -> list[Tree]:
    """How many rows without labels there are, and what the model reads of the first record."""
    units = "users" if columns.by_user else "records" if columns.records else "rows"
    count = sum(columns.inspection.counts.values())
    first = next((text for text in columns.table.frame[columns.mapping.text] if text), "")
    return [
        el("div.card-head", el("h3", f"How many {units} there are"), private_tag("Private until you confirm below")),
        el("p", el("strong", f"{count:,}"), f" {units}"),
        el("p.few", _FEW_ROWS.format(units=units)) if count < _FEW else "",
        *_problems(columns.inspection),
        *([el("details", el("summary", _FIRST), el("p.line", first[:_LONG]))] if columns.records else []),
    ]


def schema_card(schema: RecordSchema) -> list[Tree]:
    """A schema in words."""
    return [
        el("div.card-head", el("h4", "The schema"), el("span.tag.public", "Releasable")),
        el("dl.facts", *_properties(schema.document)),
    ]


def _properties(document: Mapping[str, Any]) -> list[Tree]:
    needed = document.get("required", ())
    return [
        fact(name, _words(each), "" if name in needed else "may be left out")
        for name, each in document["properties"].items()
    ]


def _words(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "One of: " + ", ".join(map(str, schema["enum"]))
    match schema["type"]:
        case "object":
            return f"Record of {', '.join(schema['properties'])}"
        case "array":
            return f"List of at most {schema['maxItems']}. Each: {_words(schema['items'])}"
        case "string":
            return f"Text of at most {schema['maxLength']} letters"
        case "integer":
            return f"Whole number from {schema['minimum']} to {schema['maximum']}"
        case "boolean":
            return "Yes or no"
    return "Nothing (null)"
