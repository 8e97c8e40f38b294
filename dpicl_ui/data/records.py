"""Step 1's form for rows without labels: what one is called, and the schema of records, from a form or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from dpicl_ui.data.cards import schema_card
from dpicl_ui.data.rows import Rows
from dpicl_ui.data.schema_form import Records, kind_of, schema_of, with_owner
from dpicl_ui.data.state import Columns, DataState
from dpicl_ui.frame.tree import drawn, el, panel
from dpicl_ui.frame.uploads import taken
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.record_schema import RecordSchema
from mechanisms.errors import DataError, UsageError

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
    """Components; `inputs` are what `wanted` reads."""

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
        """What is asked of such rows; their name stays what was typed, unless there is another `value`."""
        label, example = _KINDS.get(rows, ("", ""))
        return {
            self.kind: gr.Textbox(label=label, info=_KIND_INFO.format(example), visible=rows in _KINDS, **kind),
            self.of_records: gr.Column(visible=rows == Rows.RECORDS),
        }

    def wanted(self, state: DataState, kind: object, form: Any) -> Records:
        """What the form, or the schema in its place, says that rows are.

        Raises:
            UsageError: it says nothing that can be kept; the message names the place.
        """
        given = state.file.given if state.file else None
        return Records(kind_of(kind), given or schema_of(form))

    def owned(self, form: Any, owner: str | None) -> dict[Any, Any]:
        """The form without the user column; no update where it says so already."""
        changed = with_owner(form, owner)
        return {} if isinstance(form, dict) and changed["lines"] == form.get("lines") else {self.form: changed}

    def shown(self, given: RecordSchema | None) -> dict[Any, Any]:
        """The form, or the schema that is there in its place."""
        return {
            self.own: gr.Column(visible=given is None),
            self.given: schema_card(given) if given else [],
            self.back: gr.Button(visible=given is not None),
        }

    def read(self, state: DataState, rows: Rows, mapping: ColumnMapping, kind: object, form: Any) -> Columns:
        """The file's rows under what is said of them."""
        if rows == Rows.TEXTS:
            return state.read(mapping)
        if rows == Rows.ANSWERED:
            return state.read_answered(kind_of(kind), mapping)
        if rows == Rows.ALONE:
            return state.read_alone(kind_of(kind), mapping)
        return state.read_records(self.wanted(state, kind, form), mapping.unit, mapping.drop_duplicates)

    def asked_for(self, state: DataState, rows: Rows, kind: object, form: Any) -> Columns:
        """What is confirmed, if it is what the page shows.

        Raises:
            DataError: there is nothing, or it was changed meanwhile, or a problem must be mended first.
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
    with taken(upload) as path:
        return RecordSchema.read(_text_in(path))


def _text_in(path: Path) -> str:
    if path.stat().st_size > _LARGEST:
        raise UsageError("This file is too large for a schema.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("This is not a JSON schema of records: the file is not text.") from error
