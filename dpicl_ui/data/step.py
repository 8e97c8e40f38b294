"""Step 1: the private file, what its columns mean, and what becomes public."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import gradio as gr

from dpicl_ui.data.columns_form import MOST_WORDS, ColumnsForm, FieldNames, LabelChoice, asked, first_names
from dpicl_ui.data.draft_preview import DraftPreview
from dpicl_ui.data.public_card import Given, PublicCard, button
from dpicl_ui.data.reading import STAYS, ReadingCard, Waiting
from dpicl_ui.data.records import USUAL_KIND, RecordsForm, counted, preview_table, schema_in
from dpicl_ui.data.source import LONGEST_NAME, SourceCard, proposed_name, rows_of
from dpicl_ui.data.state import TITLES, Confirmed, DataState, Rows, blank, with_owner
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.inputs import taken, whole
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import notice, panel
from mechanisms.accounting import fingerprint
from mechanisms.data.columns import ColumnMapping, guess_mapping, to_dataset
from mechanisms.data.field_names import field_name
from mechanisms.data.raw_file import RawFile
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.sources import AnsweredExample, Example, RecordExample, read_table
from mechanisms.data.table import Table
from mechanisms.errors import DataError, StudioError, UsageError
from mechanisms.runs.lockstep import check_schema

_ROWS = [(title, rows.value) for rows, title in TITLES.items()]


class DataStep:
    """Components and handlers of step 1. `confirmed` fires after the data set was accepted or refused, one of
    `changing` after the file, its columns or its labels may have changed, or a confirmation was withdrawn."""

    def __init__(self, app: Services) -> None:
        self._app = app
        self.source = SourceCard()
        self.reading = ReadingCard(app, Waiting, "data")
        with gr.Column(visible=False) as self.body:
            self._build_columns()
            self.public = PublicCard()
        self._wire()

    def _build_columns(self) -> None:
        with gr.Column(elem_classes="card private"):
            self.preview = panel(elem_id="data-preview")
        with gr.Column(elem_classes="card"):
            self.row = gr.Radio(_ROWS, value=Rows.TEXTS.value, label="What is a row?", elem_id="row")
            self.records = RecordsForm()
            self.columns = ColumnsForm()
            with gr.Column() as self._named:
                self.names = FieldNames()
                self.drafts = DraftPreview(self._app)
            with gr.Row():
                self.name = gr.Textbox(
                    label="Name of this data set",
                    elem_id="data-name",
                    max_length=LONGEST_NAME,
                    info="The ledger keeps what was spent under this name: use it again for newer versions.",
                )
                self.drop = gr.Checkbox(label="Leave out rows that repeat an earlier row", visible=False)
        with gr.Column(elem_classes="card private"):
            self.facts = panel(elem_id="data-facts")
            self._choice = LabelChoice(self._app)
            self.labels = self._choice.labels

    def _wire(self) -> None:
        source = self.source
        self._inspected_outputs = [
            *self._choice.outputs, self.facts, self.drop, self._app.bar.html, *self.public.outputs, *self.names.outputs,
            *self.records.outputs,
        ]  # fmt: skip
        self._kinds = [self.row, self._named, self.records.of_records, *self._choice.boxes, *self.columns.inputs]
        self._loaded = loaded = [
            source.upload, source.notice, self.body, self.preview, self.name, self.drafts.drafts, *self._kinds,
            *self._inspected_outputs, *self.reading.outputs,
        ]  # fmt: skip
        self.changing = [source.upload.upload(guarded(source.notice)(self._upload), source.upload, loaded, **PRIVATE)]
        takes = [(button, self._example(each)) for button, each in source.examples]
        takes += [(button, self._record_example(each)) for button, each in source.record_examples]
        for taken_from, take in takes:
            self.changing.append(taken_from.click(guarded(source.notice)(take), None, loaded, **PRIVATE))
        read_so = guarded(self.reading.look)(self._read_so)
        self.changing.append(self.reading.use.click(read_so, self.reading.inputs, loaded, **PRIVATE))
        self.opening = tuple(self.changing)
        self._wire_columns()
        self._wire_labels()
        self._wire_records()
        self._wire_public()

    def _wire_columns(self) -> None:
        mapping = [*self.columns.inputs, self.drop]
        self._described_by = [self.row, *mapping, *self.records.inputs]
        chosen = [each.input for each in self.columns.inputs] + [self.drop.input]
        self.changing += [
            event(guarded(self.public.problem)(self._inspect), self._described_by, self._inspected_outputs, **PRIVATE)
            for event in chosen
        ]

    def _wire_labels(self) -> None:
        choice, shown = self._choice, self._inspected_outputs
        on_problem = guarded(self.public.problem)
        self._label_events = [
            self.labels.input(on_problem(self._choose), self.labels, shown, **PRIVATE),
            choice.every.click(on_problem(self._tick(True)), None, shown, **PRIVATE),
            choice.none.click(on_problem(self._tick(False)), None, shown, **PRIVATE),
            choice.use.click(
                guarded(choice.problem)(self._name_labels), [choice.names, *self._described_by], shown, **PRIVATE
            ),
            choice.merge.click(guarded(choice.problem)(self._merge_labels), self._described_by, shown, **PRIVATE),
        ]
        self.changing += self._label_events

    def _wire_records(self) -> None:
        form = self.records
        latest: dict[str, Any] = {"trigger_mode": "always_last", **PRIVATE}
        shown = [*self._kinds, *self._inspected_outputs]
        self.changing.append(
            self.row.input(guarded(form.problem)(self._choose_row), self._described_by, shown, **latest)
        )
        for event in (form.form.input, form.kind.blur, form.kind.submit):
            self.changing.append(
                event(guarded(form.problem)(self._inspect), self._described_by, self._inspected_outputs, **latest)
            )
        for event, handler, inputs in (
            (form.upload.upload, self._give_schema, [form.upload, *self._described_by]),
            (form.back.click, self._take_back_schema, self._described_by),
        ):
            self.changing.append(event(guarded(form.problem)(handler), inputs, self._inspected_outputs, **PRIVATE))

    def _wire_public(self) -> None:
        public = self.public
        self.confirmed = public.confirm.click(
            guarded(public.problem)(self._confirm),
            [self.name, self.labels, *public.inputs, *self.names.inputs, self.row, *self.records.inputs],
            [public.problem, self._app.bar.html],
            **PRIVATE,
        )
        choice = [public.sizes, public.count_epsilon]
        chosen = public.sizes.input(
            guarded(public.problem)(self._choose_sizes),
            choice,
            [public.count_epsilon, public.counts_public, public.confirm, public.problem, self._app.bar.html],
            **PRIVATE,
        )
        public.count_epsilon.input(lambda *chosen: gr.Button(button(*chosen)), choice, public.confirm, **PRIVATE)
        renamed = [public.problem, self._app.bar.html]
        allowed = public.left_out.input(guarded(public.problem)(self._allow), public.left_out, renamed, **PRIVATE)
        named = self.name.input(guarded(public.problem)(self._renamed), None, renamed, **PRIVATE)
        self.changing += [chosen, named, allowed]
        called, fields = guarded(public.problem)(self._called), (self.names.text, self.names.label)
        shown = [*renamed, self.names.asked, *(each.chips for each in fields)]
        renames = []
        for field in fields:
            copied = field.chips.input(None, field.chips, field.said, js="(name) => name", **PRIVATE)
            renames += [
                event(called, self.names.inputs, shown, **PRIVATE)
                for event in (copied.then, field.said.submit, field.said.blur)
            ]
        length = guarded(public.problem)(self._said_length)
        renames += [
            each(length, self.names.words, renamed, **PRIVATE)
            for each in (self.names.words.submit, self.names.words.blur)
        ]
        self.drafts.follow(self.labels, *renames, *self._label_events)
        self.changing += renames

    def take_example(self, pressed: gr.Button) -> gr.events.Dependency:
        """Let a button elsewhere open the first bundled example."""
        taking = guarded(self.source.notice)(self._example(self.source.examples[0][1]))
        taken = pressed.click(taking, None, self._loaded, **PRIVATE)
        self.changing.append(taken)
        return taken

    def _upload(self, upload: str | None, request: gr.Request) -> dict[Any, Any]:
        if upload is None:
            return {self.source.notice: []}
        session, name = self._app.session(request), proposed_name(upload)
        before = session.of(DataState).file is not None
        try:
            with taken(upload) as path:
                table, shown = self.reading.opened(session, RawFile.at(path), name)
                if table is not None:
                    return {self.source.upload: None} | shown | self._read(session, table, name)
        except DataError as error:
            return {self.source.upload: None, self.source.notice: notice(f"{error} {STAYS}" if before else str(error))}
        return shown | {self.source.upload: None, self.source.notice: notice(STAYS if before else "", "info")}

    def _read_so(self, request: gr.Request, *said: Any) -> dict[Any, Any]:
        session = self._app.session(request)
        table, name, shown = self.reading.again(session, *said)
        return shown if table is None else shown | self._read(session, table, name)

    def _read(self, session: Session, table: Table, name: str) -> dict[Any, Any]:
        mapping, rows = guess_mapping(table), rows_of(table)
        session.of(DataState).open(table, first_names(mapping))
        return self._opened(session, table, mapping, name, rows)

    def _example(self, example: Example) -> Any:
        def take(request: gr.Request) -> dict[Any, Any]:
            session, table = self._app.session(request), read_table(example.path)
            session.of(DataState).open(table, example.fields)
            rows, kind = Rows.TEXTS, USUAL_KIND
            if isinstance(example, AnsweredExample):
                rows, kind = Rows.ANSWERED, example.kind
            return self._opened(session, table, example.mapping, example.path.stem, rows, kind)

        return take

    def _record_example(self, example: RecordExample) -> Any:
        def take(request: gr.Request) -> dict[Any, Any]:
            session, table = self._app.session(request), read_table(example.path)
            mapping, state = guess_mapping(table), session.of(DataState)
            state.open(table, first_names(mapping))
            state.give(RecordSchema.read(example.schema.read_text(encoding="utf-8")))
            return self._opened(session, table, mapping, example.path.stem, Rows.RECORDS, example.kind)

        return take

    def _opened(
        self, session: Session, table: Table, mapping: ColumnMapping, name: str, rows: Rows, kind: str = USUAL_KIND
    ) -> dict[Any, Any]:
        form = with_owner(blank(table.columns), mapping.unit)
        return {
            self.source.notice: [],
            **self.reading.closed(session),
            self.body: gr.Column(visible=True),
            self.preview: preview_table(table),
            self.name: name,
            self._choice.names: "",
            self.names.words: "",
            **self.drafts.cleared(session),
            self.records.form: form,
            **self._shown_as(rows),
            **self.records.shown_as(rows, value=kind),
            **self.columns.opened(table.columns, mapping, rows),
            **self._inspected(session, rows, mapping, kind, form),
        }

    def _shown_as(self, rows: Rows) -> dict[Any, Any]:
        """What is asked of such rows."""
        return {
            self.row: rows.value,
            self._named: gr.Column(visible=rows != Rows.RECORDS),
            **self._choice.shown_as(rows),
            **self.columns.shown_as(rows),
            **self.records.shown_as(rows),
        }

    def _choose_row(self, request: gr.Request, row: str, text: str, label: str, *described: Any) -> dict[Any, Any]:
        self._app.session(request).of(DataState).call(first_names(ColumnMapping(text, label), Rows(row)))
        return self._shown_as(Rows(row)) | self._inspect(request, row, text, label, *described)

    def _give_schema(self, request: gr.Request, upload: str | None, *described: Any) -> dict[Any, Any]:
        if upload is None:
            return {self.records.problem: []}
        self._app.session(request).of(DataState).give(schema_in(upload))
        return self._inspect(request, *described)

    def _take_back_schema(self, request: gr.Request, *described: Any) -> dict[Any, Any]:
        self._app.session(request).of(DataState).give(None)
        return self._inspect(request, *described)

    def _inspect(
        self, request: gr.Request, row: str, text: str, label: str, unit: str, drop: bool, kind: object, form: Any
    ) -> dict[Any, Any]:
        mapping = self.columns.mapping(Rows(row), text, label, unit, drop)
        session = self._app.session(request)
        before, rows = session.of(DataState).columns, Rows(row)
        if rows == Rows.RECORDS:
            owned = self.records.owned(form, mapping.unit)
            return owned | self._inspected(session, rows, mapping, kind, owned.get(self.records.form, form))
        if before is None or (before.records is None and before.named != (mapping.text, mapping.label)):
            session.of(DataState).call(first_names(mapping, rows))
        return self._inspected(session, rows, mapping, kind, form)

    def _inspected(
        self, session: Session, rows: Rows, mapping: ColumnMapping, kind: object, form: Any
    ) -> dict[Any, Any]:
        state, where = session.of(DataState), self.facts if rows == Rows.TEXTS else self.records.problem
        given, before = self.records.shown(state.file.given if state.file else None), state.columns
        labelled_by = state.file.labelled_by if state.file else None
        try:
            columns = self.records.read(state, rows, mapping, kind, form)
            if columns is before:
                return {self.records.problem: []}
        except StudioError as error:
            state.unread()
            nothing = {self.facts: [], **self._choice.offered(())[1]}
            return self._unconfirmed(session, ()) | given | nothing | {where: notice(str(error))}
        inspection = columns.inspection
        labels, offered = self._choice.offered(inspection.counts)
        return (
            self._unconfirmed(session, labels)
            | given
            | self.public.asked(columns.by_user, rows)
            | {
                self.records.problem: [],
                **offered,
                **self._choice.named(columns, labelled_by),
                **self._choice.look_alike(columns),
                self.facts: counted(columns, labels),
                self.drop: gr.Checkbox(visible=inspection.duplicates > 0, value=mapping.drop_duplicates),
            }
            | ({} if columns.records else self.names.proposed(columns.file.field_names, mapping, rows))
        )

    def _choose(self, labels: list[str], request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        columns = session.of(DataState).rechoose()
        return self._unconfirmed(session, labels) | {self.facts: counted(columns, labels)}

    def _tick(self, every: bool) -> Any:
        def tick(request: gr.Request) -> dict[Any, Any]:
            labels = self._choice.all_of(self._app.session(request)) if every else []
            return self._choose(labels, request) | {self.labels: gr.CheckboxGroup(value=labels)}

        return tick

    def _name_labels(self, request: gr.Request, lines: str, *described: Any) -> dict[Any, Any]:
        self._choice.call(self._app.session(request), lines)
        return self._inspect(request, *described)

    def _merge_labels(self, request: gr.Request, *described: Any) -> dict[Any, Any]:
        self._choice.merged(self._app.session(request))
        return self._inspect(request, *described)

    def _allow(self, allowed: bool, request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        session.of(DataState).allow_left_out(allowed)
        return {self.public.problem: [], **self._app.steps(session)}

    def _unconfirmed(self, session: Session, labels: Collection[str]) -> dict[Any, Any]:
        return self.public.unconfirmed(session.of(DataState).columns, labels) | self._app.steps(session)

    def _renamed(self, request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        session.of(DataState).withdraw()
        return {self.public.problem: [], **self._app.steps(session)}

    def _called(self, text: object, label: object, request: gr.Request) -> dict[Any, Any]:
        """What a text and its label are called; what was confirmed stays where both are the same."""
        session = self._app.session(request)
        state = session.of(DataState)
        try:
            names = field_name(text), field_name(label)
        except UsageError:
            state.withdraw()
            raise
        state.call(names)
        rows = state.columns.rows if state.columns else Rows.TEXTS
        return {
            self.public.problem: [],
            **self._app.steps(session),
            self.names.asked: asked(names, rows),
            **self.names.text.chosen(names[0]),
            **self.names.label.chosen(names[1]),
        }

    def _said_length(self, words: str, request: gr.Request) -> dict[Any, Any]:
        """The declared number of words in a text; what was confirmed stays where it is the same."""
        session = self._app.session(request)
        said = whole("The number of words", words.strip()) if words.strip() else None
        if said is not None and not 1 <= said <= MOST_WORDS:
            raise UsageError(f"A text has 1 to {MOST_WORDS:,} words: correct the number, or leave it out.")
        session.of(DataState).say_length(said)
        return {self.public.problem: [], **self._app.steps(session)}

    def _choose_sizes(self, sizes: str, epsilon: float | None, request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        session.of(DataState).withdraw()
        return self.public.chosen(sizes, epsilon) | self._app.steps(session)

    def _confirm(self, request: gr.Request, *given: Any) -> dict[Any, Any]:
        session, said = self._app.session(request), Given(*given)
        state = session.of(DataState)
        columns = said.checked(state, self.records)
        chosen = (columns.kind,) if columns.kind else tuple(sorted(said.labels))
        dataset = to_dataset(columns.table, columns.mapping, said.name.strip(), chosen)
        if columns.records and (said.measured or self._app.loader.ready):  # before anybody pays for a measurement
            check_schema(columns.records.schema, self._app.loader.model())
        ledger = self._app.ledger(request)
        warnings = tuple(ledger.rows.recognise(fingerprint(dataset)))
        measured = state.measured_once(dataset, said.count_epsilon, ledger) if said.measured else None
        state.confirm(Confirmed(columns, dataset, measured, warnings))
        return {self.public.problem: [], **self._app.steps(session, 2)}
