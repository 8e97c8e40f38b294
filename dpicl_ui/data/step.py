"""Step 1: the private file, what its columns mean, and what becomes public."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import gradio as gr

from dpicl_ui.data.asking import AskingForm, first_words, labels_in
from dpicl_ui.data.columns_form import ColumnsForm, LabelChoice
from dpicl_ui.data.draft_preview import DraftPreview
from dpicl_ui.data.facts import counted, preview_table
from dpicl_ui.data.public_card import MEASURE, UNCONFIRMED, Missing, PublicCard, button
from dpicl_ui.data.reading import STAYS, ReadingCard, Waiting
from dpicl_ui.data.source import LONGEST_NAME, SourceCard, proposed_name
from dpicl_ui.data.state import Columns, Confirmed, DataState
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.inputs import taken
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import el, notice, panel
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.asking import Asked
from mechanisms.data.columns import ColumnMapping, guess_mapping, to_dataset
from mechanisms.data.sizes import check_epsilon
from mechanisms.data.sources import Example, RawFile, read_table
from mechanisms.data.table import Table
from mechanisms.errors import DataError, StudioError, UsageError


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
            self.columns = ColumnsForm()
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
        with gr.Column(elem_classes="card"):
            panel(el("h3", "How the model is asked to write"))
            self.words = AskingForm()
            self.drafts = DraftPreview(self._app)

    def _wire(self) -> None:
        source = self.source
        self._inspected_outputs = [
            *self._choice.outputs, self.facts, self.drop, self._app.bar.html, *self.public.outputs, *self.words.outputs,
        ]  # fmt: skip
        self._loaded = loaded = [
            source.upload, source.notice, self.body, self.preview, self.name, self.drafts.drafts, *self.columns.inputs,
            *self._inspected_outputs, *self.reading.outputs,
        ]  # fmt: skip
        self.changing = [source.upload.upload(guarded(source.notice)(self._upload), source.upload, loaded, **PRIVATE)]
        for pressed, example in source.examples:
            take = guarded(source.notice)(self._example(example))
            self.changing.append(pressed.click(take, None, loaded, **PRIVATE))
        read_so = guarded(self.reading.look)(self._read_so)
        self.changing.append(self.reading.use.click(read_so, self.reading.inputs, loaded, **PRIVATE))
        self.opening = tuple(self.changing)
        self._wire_columns()
        self._wire_labels()
        self._wire_public()

    def _wire_columns(self) -> None:
        self._described_by: list[Any] = [*self.columns.inputs, self.drop]
        self.changing += [
            each.input(
                guarded(self.public.problem)(self._inspect), self._described_by, self._inspected_outputs, **PRIVATE
            )
            for each in self._described_by
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

    def _wire_public(self) -> None:
        public, on_problem = self.public, guarded(self.public.problem)
        self.confirmed = public.confirm.click(
            on_problem(self._confirm),
            {self.name, self.labels, *public.inputs, *self.words.inputs},
            [public.problem, self._app.bar.html],
            **PRIVATE,
        )
        choice = [public.sizes, public.count_epsilon]
        chosen = public.sizes.input(
            on_problem(self._choose_sizes),
            choice,
            [public.count_epsilon, public.public, public.confirm, public.problem, self._app.bar.html],
            **PRIVATE,
        )
        public.count_epsilon.input(lambda *chosen: gr.Button(button(*chosen)), choice, public.confirm, **PRIVATE)
        renamed = [public.problem, self._app.bar.html]
        allowed = public.left_out.input(on_problem(self._allow), public.left_out, renamed, **PRIVATE)
        named = self.name.input(on_problem(self._renamed), None, renamed, **PRIVATE)
        asking = [
            event(on_problem(self._asked), {self.labels, *self.words.inputs}, [*renamed, self.words.said], **PRIVATE)
            for event in self.words.settled
        ]
        self.drafts.follow(self.labels, *asking, *self._label_events)
        self.changing += [chosen, named, allowed, *asking]

    def take_example(self, pressed: gr.Button) -> gr.events.Dependency:
        """Let a button elsewhere open the first bundled example, and confirm it: nobody stands in it."""
        example = self.source.examples[0][1]

        def take(request: gr.Request) -> dict[Any, Any]:
            shown: dict[Any, Any] = self._example(example)(request)
            session = self._app.session(request)
            columns = session.of(DataState).columns
            assert columns is not None
            self._use(session, self._app.ledger(request), columns, example.path.stem, labels_in(columns))
            return shown | self._app.steps(session) | {self.public.public: True}

        taken = pressed.click(guarded(self.source.notice)(take), None, self._loaded, **PRIVATE)
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
        mapping = guess_mapping(table)
        return self._opened(session, table, mapping, name, *first_words(mapping))

    def _example(self, example: Example) -> Any:
        def take(request: gr.Request) -> dict[Any, Any]:
            session, table = self._app.session(request), read_table(example.path)
            return self._opened(session, table, example.mapping, example.path.stem, example.asked, example.fields[1])

        return take

    def _opened(
        self, session: Session, table: Table, mapping: ColumnMapping, name: str, asked: Asked, label_field: str
    ) -> dict[Any, Any]:
        session.of(DataState).open(table, asked, label_field, (mapping.text, mapping.label))
        return {
            self.source.notice: [],
            **self.reading.closed(session),
            self.body: gr.Column(visible=True),
            self.preview: preview_table(table),
            self.name: name,
            self._choice.names: "",
            **self.drafts.cleared(session),
            **self.columns.opened(table.columns, mapping),
            **self.words.shown(asked),
            **self._inspected(session, mapping),
        }

    def _inspect(self, request: gr.Request, text: str, label: str, unit: str, drop: bool) -> dict[Any, Any]:
        mapping = self.columns.mapping(text, label, unit, drop)
        session = self._app.session(request)
        state, of, proposed = session.of(DataState), (mapping.text, mapping.label), dict[Any, Any]()
        if state.file is not None and state.file.asked_of != of:
            asked, label_field = first_words(mapping, state.asked)
            state.ask_of(of, asked, label_field)
            proposed = self.words.shown(asked)
        return proposed | self._inspected(session, mapping)

    def _inspected(self, session: Session, mapping: ColumnMapping) -> dict[Any, Any]:
        state = session.of(DataState)
        before, labelled_by = state.columns, state.file.labelled_by if state.file else None
        try:
            columns = state.read(mapping)
            if columns is before:
                return {self.public.problem: []}
        except StudioError as error:
            state.unread()
            nothing = self._choice.offered(())[1] | self.words.told(state.asked, (), sent=False)
            return self._unconfirmed(session, ()) | nothing | {self.facts: notice(str(error))}
        inspection = columns.inspection
        labels, offered = self._choice.offered(inspection.counts)
        return (
            self._unconfirmed(session, labels)
            | offered
            | self._choice.named(columns, labelled_by)
            | self._choice.look_alike(columns)
            | self.words.labelled(state.asked, labels_in(columns))
            | self._told(state.asked, labels)
            | {
                self.facts: counted(columns, labels),
                self.drop: gr.Checkbox(visible=inspection.duplicates > 0, value=mapping.drop_duplicates),
            }
        )

    def _told(self, asked: Asked, labels: Collection[str]) -> dict[Any, Any]:
        return self.words.told(asked, sorted(labels), self._app.loader.plays_reader)

    def _choose(self, labels: list[str], request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        columns = session.of(DataState).rechoose()
        told = self._told(columns.file.asked, labels)
        return self._unconfirmed(session, labels) | told | {self.facts: counted(columns, labels)}

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

    def _asked(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        """The words that ask for a text; what was confirmed stays where they are the same."""
        session = self._app.session(request)
        state = session.of(DataState)
        try:
            asked = self.words.read(values)
            state.ask(asked)
        except UsageError:
            state.withdraw()
            raise
        return {self.public.problem: [], **self._app.steps(session), **self._told(asked, values[self.labels] or ())}

    def _choose_sizes(self, sizes: str, epsilon: float | None, request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        session.of(DataState).withdraw()
        return self.public.chosen(sizes, epsilon) | self._app.steps(session)

    def _confirm(self, values: Mapping[Any, Any], request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        state = session.of(DataState)
        name, labels = str(values[self.name] or "").strip(), sorted(values[self.labels] or ())
        measured, count_epsilon = values[self.public.sizes] == MEASURE, values[self.public.count_epsilon]
        missing = Missing()
        with missing.if_refused():
            state.ask(self.words.read(values))
        with missing.if_refused():
            columns = _to_confirm(state, labels)
        with missing.if_refused():
            if not name:
                raise DataError("Give the data set a name: the ledger keeps what it has spent under it.")
        with missing.if_refused():
            if not values[self.public.public]:
                raise DataError(UNCONFIRMED)
        with missing.if_refused():
            if measured:
                check_epsilon(float(count_epsilon or 0))
        missing.tell()
        self._use(session, self._app.ledger(request), columns, name, labels, float(count_epsilon) if measured else None)
        return {self.public.problem: [], **self._app.steps(session, 2)}

    def _use(
        self,
        session: Session,
        ledger: PrivacyLedger,
        columns: Columns,
        name: str,
        labels: Sequence[str],
        count_epsilon: float | None = None,
    ) -> None:
        """Confirm a data set, whose label sizes are measured for `count_epsilon`, or else declared public."""
        state = session.of(DataState)
        dataset = to_dataset(columns.file.table, columns.mapping, name, tuple(labels))
        warnings = tuple(ledger.rows.recognise(fingerprint(dataset)))
        measured = None if count_epsilon is None else state.measured_once(dataset, count_epsilon, ledger)
        state.confirm(Confirmed(columns, dataset, measured, warnings))


def _to_confirm(state: DataState, labels: Collection[str]) -> Columns:
    """The columns as they are read now.

    Raises:
        DataError: there are none, or a problem must be solved first.
    """
    columns = state.columns
    if columns is None:
        raise DataError("Choose a file and its columns first.")
    if columns.inspection.fatal:
        raise DataError(columns.inspection.problems[-1])
    if len(labels) < 2:
        raise DataError("Demonstrations need at least two labels: choose them above.")
    columns.check_left_out(labels)
    return columns
