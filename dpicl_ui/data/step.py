"""Step 1: the private file, what its columns mean, and what becomes public."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from dpicl_ui.data.cards import label_counts, preview_table
from dpicl_ui.data.names import FieldNames, first_names
from dpicl_ui.data.state import Confirmed, DataState
from dpicl_ui.frame.choices import PrivateCheckboxGroup, PrivateDropdown
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.ledgers import Ledgers
from dpicl_ui.frame.sessions import Session, Sessions
from dpicl_ui.frame.step_bar import StepBar
from dpicl_ui.frame.tree import el, notice, panel
from dpicl_ui.frame.uploads import taken
from mechanisms.accounting import fingerprint
from mechanisms.errors import DataError
from mechanisms.studio.data.csv_file import Mapping, Table, guess_columns, read_table, to_dataset
from mechanisms.studio.data.examples import EXAMPLES
from mechanisms.studio.data.field_names import field_name

_NO_USER = "(every row stands for itself)"
_MOST_LABELS = 50

_SOURCE = [
    el("h2", "Bring your labelled texts"),
    el(
        "p.lead",
        "A CSV file with one row for each text and a column with its label. It is read into this server's memory, "
        "removed from its disk at once, and forgotten when you close the page.",
    ),
]
_LABELS_PUBLIC = "The label names above become public. They will stand in the prompts and in the export."


def counts_public(by_user: bool) -> str:
    """What the curator confirms: the numbers that the noise is computed from, and that a certificate gives away."""
    units = "users" if by_user else "rows"
    return (
        f"I declare the number of {units} of each label public, as shown above. The noise is computed from these "
        "numbers, so they are not protected: do not confirm if one of them is itself a secret."
    )


_DECLARE, _MEASURE = "declare", "measure"
_SIZES = [("Declare the counts public", _DECLARE), ("Measure them with noise, for a share of epsilon", _MEASURE)]


class DataStep:
    """Components and handlers of step 1. `confirmed` fires after the data set was accepted or refused, one of
    `changing` after the file, its columns or its labels may have changed, or a confirmation was withdrawn."""

    def __init__(self, sessions: Sessions, ledgers: Ledgers, bar: StepBar) -> None:
        self._sessions, self._ledgers, self._bar = sessions, ledgers, bar
        with bar.panel(1):
            self._build_source()
            with gr.Column(visible=False) as self.body:
                self._build_columns()
                self._build_public()
        self._wire()

    def _build_source(self) -> None:
        with gr.Column(elem_classes="card"):
            panel(*_SOURCE)
            with gr.Row(elem_classes="source"):
                self.upload = gr.File(show_label=False, height=150, elem_id="upload-data", elem_classes="drop")
                with gr.Column(elem_classes="examples", min_width=240):
                    panel(el("p.small-head", "No data at hand? Take an example"))
                    self.examples = [gr.Button(each.title, size="sm") for each in EXAMPLES]
                    panel(el("p.small-head", "Demonstrations made before?"))
                    self.load_instead = gr.Button("Load an exported set and test it", size="sm", elem_id="load-instead")
            self.notice = panel(elem_id="data-notice")

    def _build_columns(self) -> None:
        with gr.Column(elem_classes="card private"):
            self.preview = panel(elem_id="data-preview")
        with gr.Column(elem_classes="card"):
            panel(el("h3", "What the columns mean"))
            with gr.Row():
                self.text = PrivateDropdown(label="Text", elem_id="text-column")
                self.label = PrivateDropdown(label="Label", elem_id="label-column")
                self.unit = PrivateDropdown(
                    label="User (optional)",
                    elem_id="unit-column",
                    info="If one person can have several rows: protects all rows of a person together.",
                )
            self.names = FieldNames()
            with gr.Row():
                self.name = gr.Textbox(
                    label="Name of this data set",
                    elem_id="data-name",
                    max_length=80,
                    info="The ledger keeps what was spent under this name: use it again for newer versions.",
                )
                self.drop = gr.Checkbox(label="Leave out rows that repeat an earlier row", visible=False)
        with gr.Column(elem_classes="card private"):
            self.facts = panel(elem_id="data-facts")
            with gr.Accordion("Choose which labels take part", open=False):
                self.labels = PrivateCheckboxGroup(label="Labels", show_label=False, elem_id="labels")

    def _build_public(self) -> None:
        with gr.Column(elem_classes="card public"):
            panel(el("div.card-head", el("h3", "What becomes public"), el("span.tag.public", "Releasable")))
            self.labels_public = gr.Checkbox(label=_LABELS_PUBLIC, elem_id="labels-public")
            self.sizes = gr.Radio(_SIZES, value=_DECLARE, label="How large each label is", elem_id="sizes")
            self.count_epsilon = gr.Number(
                0.1,
                label="Epsilon for counting",
                info="Spent once for this data set while this page is open; every run on it claims it too.",
                visible=False,
                elem_id="count-epsilon",
            )
            self.counts_public = gr.Checkbox(label=counts_public(False), elem_id="counts-public")
            self.problem = panel(elem_id="data-problem")
            self.confirm = gr.Button("Use this data set", variant="primary", elem_id="confirm-data")

    def _wire(self) -> None:
        loaded = [
            self.upload, self.notice, self.body, self.preview, self.text, self.label, self.unit, self.name, self.drop,
            self.labels, self.facts, self.labels_public, self.counts_public, self.problem, self._bar.html,
            *self.names.inputs,
        ]  # fmt: skip
        self.changing = [self.upload.upload(guarded(self.notice)(self._upload), self.upload, loaded, **PRIVATE)]
        for number, button in enumerate(self.examples):
            self.changing.append(button.click(guarded(self.notice)(self._example(number)), None, loaded, **PRIVATE))
        self._wire_columns()
        self._wire_public()

    def _wire_columns(self) -> None:
        mapping = [self.text, self.label, self.unit, self.drop]
        inspected = [
            self.labels, self.facts, self.drop, self.labels_public, self.counts_public, self.problem, self._bar.html,
            *self.names.inputs,
        ]  # fmt: skip
        chosen = [each.input for each in (self.text, self.label, self.unit)] + [self.drop.input]
        self.changing += [
            event(guarded(self.problem)(self._inspect), mapping, inspected, **PRIVATE) for event in chosen
        ]
        self.changing.append(self.labels.input(guarded(self.problem)(self._choose), self.labels, inspected, **PRIVATE))

    def _wire_public(self) -> None:
        public = [
            self.name, self.labels, self.labels_public, self.counts_public, self.sizes, self.count_epsilon,
        ]  # fmt: skip
        self.confirmed = self.confirm.click(
            guarded(self.problem)(self._confirm),
            [*public, *self.names.inputs],
            [self.problem, self._bar.html],
            **PRIVATE,
        )
        choice = [self.sizes, self.count_epsilon]
        chosen = self.sizes.input(
            guarded(self.problem)(self._choose_sizes),
            choice,
            [self.count_epsilon, self.counts_public, self.confirm, self.problem, self._bar.html],
            **PRIVATE,
        )
        self.count_epsilon.input(lambda *chosen: gr.Button(_button(*chosen)), choice, self.confirm, **PRIVATE)
        named = self.name.input(guarded(self.problem)(self._renamed), None, [self.problem, self._bar.html], **PRIVATE)
        self.changing += [chosen, named]
        for each in self.names.inputs:
            event = each.input(
                guarded(self.problem)(self._called), self.names.inputs, [self.problem, self._bar.html], **PRIVATE
            )
            self.changing.append(event)

    def _upload(self, upload: str | None, request: gr.Request) -> dict[Any, Any]:
        if upload is None:
            return {self.notice: []}
        try:
            with taken(upload) as path:
                table = read_table(path)
        except DataError as error:
            return {self.upload: None, self.notice: notice(str(error))}
        session = self._sessions.of(request)
        mapping = Mapping(*guess_columns(table))
        session.of(DataState).open(table, first_names(mapping))
        return {self.upload: None} | self._opened(session, table, mapping, Path(upload).stem[:80])

    def _example(self, number: int) -> Any:
        def take(request: gr.Request) -> dict[Any, Any]:
            example = EXAMPLES[number]
            session, table = self._sessions.of(request), read_table(example.path)
            session.of(DataState).open(table, example.fields)
            return self._opened(session, table, example.mapping, example.path.stem)

        return take

    def _opened(self, session: Session, table: Table, mapping: Mapping, name: str) -> dict[Any, Any]:
        columns = table.columns
        return {
            self.notice: [],
            self.body: gr.Column(visible=True),
            self.preview: preview_table(table),
            self.text: gr.Dropdown(choices=columns, value=mapping.text),
            self.label: gr.Dropdown(choices=columns, value=mapping.label),
            self.unit: gr.Dropdown(choices=[_NO_USER, *columns], value=mapping.unit or _NO_USER),
            self.name: name,
        } | self._inspected(session, mapping)

    def _inspect(self, text: str, label: str, unit: str, drop: bool, request: gr.Request) -> dict[Any, Any]:
        mapping = Mapping(text, label, None if unit == _NO_USER else unit, drop)
        session = self._sessions.of(request)
        before = session.of(DataState).columns
        if before is None or (before.mapping.text, before.mapping.label) != (text, label):
            session.of(DataState).call(first_names(mapping))
        return self._inspected(session, mapping)

    def _inspected(self, session: Session, mapping: Mapping) -> dict[Any, Any]:
        try:
            columns = session.of(DataState).read(mapping)
        except DataError as error:
            nothing = {self.facts: notice(str(error)), self.labels: gr.CheckboxGroup(choices=[], value=[])}
            return self._unconfirmed(session) | nothing
        inspection = columns.inspection
        labels = sorted(inspection.counts)[:_MOST_LABELS]
        return self._unconfirmed(session) | {
            self.labels: gr.CheckboxGroup(choices=labels, value=labels),
            self.facts: label_counts(inspection, labels, columns.by_user),
            self.counts_public: gr.Checkbox(value=False, label=counts_public(columns.by_user)),
            self.drop: gr.Checkbox(visible=inspection.duplicates > 0, value=mapping.drop_duplicates),
            **self.names.proposed(columns.file.field_names, mapping),
        }

    def _choose(self, labels: list[str], request: gr.Request) -> dict[Any, Any]:
        session = self._sessions.of(request)
        columns = session.of(DataState).rechoose()
        facts = label_counts(columns.inspection, labels, columns.by_user)
        return self._unconfirmed(session) | {self.facts: facts}

    def _unconfirmed(self, session: Session) -> dict[Any, Any]:
        return {
            self.labels_public: False,
            self.counts_public: False,
            self.problem: [],
            self._bar.html: self._bar.value(session),
        }

    def _renamed(self, request: gr.Request) -> dict[Any, Any]:
        session = self._sessions.of(request)
        session.of(DataState).withdraw()
        return {self.problem: [], self._bar.html: self._bar.value(session)}

    def _called(self, text: object, label: object, request: gr.Request) -> dict[Any, Any]:
        shown = self._renamed(request)
        self._sessions.of(request).of(DataState).call((field_name(text), field_name(label)))
        return shown

    def _choose_sizes(self, sizes: str, epsilon: float | None, request: gr.Request) -> dict[Any, Any]:
        session = self._sessions.of(request)
        session.of(DataState).withdraw()
        return {
            self.count_epsilon: gr.Number(visible=sizes == _MEASURE),
            self.counts_public: gr.Checkbox(value=False, visible=sizes == _DECLARE),
            self.confirm: gr.Button(_button(sizes, epsilon)),
            self.problem: [],
            self._bar.html: self._bar.value(session),
        }

    def _confirm(
        self,
        name: str,
        labels: list[str],
        labels_public: bool,
        counts_public: bool,
        sizes: str,
        count_epsilon: float | None,
        text_name: object,
        label_name: object,
        request: gr.Request,
    ) -> dict[Any, Any]:
        session = self._sessions.of(request)
        state = session.of(DataState)
        state.call((field_name(text_name), field_name(label_name)))
        columns = state.columns
        if columns is None:
            raise DataError("Choose a file and its columns first.")
        if columns.inspection.fatal:
            raise DataError(columns.inspection.problems[-1])
        if len(labels) < 2:
            raise DataError("Demonstrations need at least two labels: choose them above.")
        if not name.strip():
            raise DataError("Give the data set a name: the ledger keeps what it has spent under it.")
        if sizes == _DECLARE and not (labels_public and counts_public):
            raise DataError("Confirm both boxes: the label names and the label counts become public.")
        if not labels_public:
            raise DataError("Confirm that the label names become public.")
        dataset = to_dataset(columns.file.table, columns.mapping, name.strip(), tuple(sorted(labels)))
        ledger = self._ledgers.of(request)
        warnings = tuple(ledger.rows.recognise(fingerprint(dataset)))
        measured = None if sizes == _DECLARE else state.measured_once(dataset, count_epsilon, ledger)
        state.confirm(Confirmed(columns, dataset, measured, warnings))
        return {self.problem: [], self._bar.html: self._bar.value(session, 2)}


def _button(sizes: str, epsilon: float | None) -> str:
    if sizes == _DECLARE:
        return "Use this data set"
    return f"Spend epsilon {epsilon or 0:g} on counting, and use this data set"
