"""Step 1's view of a file, and its form for rows without labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gradio as gr

from dpicl_ui.data.state import Columns, DataState, Records, Rows, kind_of, schema_of, with_owner
from dpicl_ui.frame.inputs import text_of
from dpicl_ui.frame.tree import MANY_LABELS, Tree, count_row, drawn, el, fact, panel, private_tag
from mechanisms.data.columns import ColumnMapping, Inspection
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.table import Table
from mechanisms.errors import DataError

# What step 1 shows about a file, as trees; all of it is private until the curator declares parts public.

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


def preview_table(table: Table, whole: bool = True) -> list[Tree]:
    """The first rows of a parsed file, or of its beginning, cells cut."""
    columns = table.columns[:_COLUMNS]
    head = el("tr", *(el("th", name, scope="col") for name in columns))
    rows = []
    for _, row in table.frame[columns].head(PREVIEW_ROWS).iterrows():
        rows.append(el("tr", *(el("td", el("div.cell", str(cell)[:_CELL])) for cell in row)))
    count = len(table.columns)
    size = f"{len(table.frame):,} rows, " if whole else ""
    size += f"{count} column{'' if count == 1 else 's'}"
    cut = f"; the first {_COLUMNS} are shown" if len(table.columns) > _COLUMNS else ""
    return [
        el("div.card-head", el("h3", "First rows"), private_tag()),
        el("p.muted", size + cut),
        *(el("p.notice.info", remark) for remark in table.remarks),
        el("div.scroll", el("table.preview", el("thead", head), el("tbody", *rows))),
    ]


def counted(columns: Columns, labels: list[str]) -> list[Tree]:
    """The number of rows, of each chosen label where there are labels, and the file's problems."""
    if columns.kind:
        return _of_kind(columns)
    long = columns.table.frame[columns.mapping.text].str.len().median() > _LONG_TEXT
    counts = label_counts(columns.inspection, labels, columns.by_user)
    return [*counts, el("p.notice.info", _CUT)] if long else counts


def label_counts(inspection: Inspection, labels: list[str], by_user: bool = False) -> list[Tree]:
    """Units of each chosen label as bars, the rows that are left out, and the file's problems."""
    units = "users" if by_user else "rows"
    largest, many = max(inspection.counts.values(), default=1), len(labels) > MANY_LABELS
    lines = []
    for label in labels:
        count = inspection.counts.get(label, 0)
        remark = el("span.few", _FEW_ROWS.format(units=units)) if count < _FEW and not many else None
        lines.append(count_row(label, count / largest, f"{count:,}", remark))
    sizes = [inspection.counts.get(label, 0) for label in labels]
    each = " to ".join(dict.fromkeys(f"{size:,}" for size in (min(sizes, default=0), max(sizes, default=0))))
    span = f"{len(labels)} labels, with {each} {units}" if many else ""
    few = sum(size < _FEW for size in sizes) if many else 0
    return [
        _head(f"Labels and how many {units} have them"),
        el("p.muted", span) if span else "",
        el("p.few", _MANY_FEW.format(few=few, of=len(labels), units=units)) if few else "",
        el("div.counts", *lines),
        *_problems(inspection, labels),
    ]


def _head(title: str) -> Tree:
    return el("div.card-head", el("h3", title), private_tag("Private until you confirm below"))


def _problems(inspection: Inspection, labels: list[str]) -> list[Tree]:
    kind = "bad" if inspection.fatal else "warn"
    lines = [inspection.rows.left_out(labels).sentence, *inspection.problems]
    return [el(f"p.notice.{kind}", line) for line in lines if line]


def _of_kind(columns: Columns) -> list[Tree]:
    """The number of rows without labels, and what the model reads of the first record."""
    units = "users" if columns.by_user else "records" if columns.records else "rows"
    count = sum(columns.inspection.counts.values())
    first = next((text for text in columns.table.frame[columns.mapping.text] if text), "")
    return [
        _head(f"How many {units} there are"),
        el("p", el("strong", f"{count:,}"), f" {units}"),
        el("p.few", _FEW_ROWS.format(units=units)) if count < _FEW else "",
        *_problems(columns.inspection, []),
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


# Step 1's form for rows without labels: what one is called, and the schema of records, from a form or a file.

_LARGEST = 2**20
USUAL_KIND = "Record"
"""What a record is called before anybody says so."""
_KIND_INFO = "One word, such as {}: it tells the model what to write. It is public."
_KINDS = {
    Rows.RECORDS: ("What is one record?", "Movie"),
    Rows.ANSWERED: ("What is one row?", "Question"),
    Rows.ALONE: ("What is one row?", "Letter"),
}
_SCHEMA = (
    "Say what a record consists of. What you tick, and how you describe it, is public: it stands in the export. So "
    "nothing is proposed from the cells, which are private. Of values to choose from, type only those that everybody "
    "may know: a list that is copied from the file publishes it."
)


class RecordsForm:
    """Components; `inputs` are the arguments of `wanted`."""

    def __init__(self) -> None:
        self.kind = gr.Textbox(USUAL_KIND, max_length=40, visible=False, elem_id="record-kind")
        with gr.Column(visible=False) as self.of_records:
            with gr.Column() as self.own:
                panel(el("p.muted", _SCHEMA))
                self.form = drawn("schema.js", None, elem_id="schema-form")
            self.given = panel(elem_id="schema-given")
            with gr.Row(elem_classes="actions"):
                self.upload = gr.UploadButton("Use a schema file", size="sm", elem_id="schema-file")
                self.back = gr.Button("Use the form instead", size="sm", visible=False, elem_id="schema-back")
        self.problem = panel(elem_id="schema-problem")

    @property
    def inputs(self) -> list[Any]:
        """The record's name, and the form."""
        return [self.kind, self.form]

    @property
    def outputs(self) -> list[Any]:
        """What changes with a file or a schema."""
        return [self.kind, self.own, self.form, self.given, self.back, self.problem]

    def shown_as(self, rows: Rows, **kind: Any) -> dict[Any, Any]:
        """The components for one kind of row; a typed name is kept unless `value` is given."""
        label, example = _KINDS.get(rows, ("", ""))
        return {
            self.kind: gr.Textbox(label=label, info=_KIND_INFO.format(example), visible=rows in _KINDS, **kind),
            self.of_records: gr.Column(visible=rows == Rows.RECORDS),
        }

    def wanted(self, state: DataState, kind: object, form: Any) -> Records:
        """The schema and the kind of the rows, from the form or the uploaded schema.

        Raises:
            UsageError: they are incomplete or unusable; the message names the place.
        """
        given = state.file.given if state.file else None
        return Records(kind_of(kind), given or schema_of(form))

    def owned(self, form: Any, owner: str | None) -> dict[Any, Any]:
        """The form without the user column; no update if it has none."""
        changed = with_owner(form, owner)
        return {} if isinstance(form, dict) and changed["lines"] == form.get("lines") else {self.form: changed}

    def shown(self, given: RecordSchema | None) -> dict[Any, Any]:
        """The form, or the uploaded schema in its place."""
        return {
            self.own: gr.Column(visible=given is None),
            self.given: schema_card(given) if given else [],
            self.back: gr.Button(visible=given is not None),
        }

    def read(self, state: DataState, rows: Rows, mapping: ColumnMapping, kind: object, form: Any) -> Columns:
        """The file's rows as the form describes them."""
        if rows == Rows.TEXTS:
            return state.read(mapping)
        if rows == Rows.ANSWERED:
            return state.read_answered(kind_of(kind), mapping)
        if rows == Rows.ALONE:
            return state.read_alone(kind_of(kind), mapping)
        return state.read_records(self.wanted(state, kind, form), mapping.unit, mapping.drop_duplicates)

    def asked_for(self, state: DataState, rows: Rows, kind: object, form: Any) -> Columns:
        """The columns to confirm, if the page still shows them.

        Raises:
            DataError: there are none, they changed meanwhile, or a problem must be solved first.
        """
        records = self.wanted(state, kind, form) if rows == Rows.RECORDS else None
        name = None if rows == Rows.TEXTS else kind_of(kind)
        columns = state.columns
        if columns is None:
            raise DataError("Choose a file and its columns first.")
        if (columns.rows, columns.said[1:]) != (rows, (name, records and records.said)):
            raise DataError("The form was changed meanwhile: look at it, and confirm again.")
        if columns.inspection.fatal:
            raise DataError(columns.inspection.problems[-1])
        return columns


def schema_in(upload: str) -> RecordSchema:
    """The schema in an uploaded file.

    Raises:
        UsageError: it is none that can be kept; the message names the first place.
    """
    return RecordSchema.read(text_of(upload, _LARGEST, "a JSON schema of records"))
