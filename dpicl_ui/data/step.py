"""Step 1: the private file, what its columns mean, and what becomes public."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import gradio as gr

from dpicl_ui.data.cards import (
    MEASURE,
    UNCONFIRMED,
    ColumnsForm,
    LabelChoice,
    PublicCard,
    ReadingCard,
    SourceCard,
    WordingForm,
    counted,
    first_words,
    preview_table,
    proposed_name,
)
from dpicl_ui.data.drafts import DraftPreview
from dpicl_ui.data.state import LOST, ConfirmedData, DataState, InspectedFile
from dpicl_ui.frame.handlers import PRIVATE, on
from dpicl_ui.frame.services import Services, Session
from dpicl_ui.frame.tree import Updates, el, notice, panel
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.asking import Wording
from mechanisms.data.columns import ColumnMapping, guess_mapping, to_dataset
from mechanisms.data.sizes import check_epsilon
from mechanisms.data.sources import Example, read_table
from mechanisms.data.table import Table
from mechanisms.errors import DataError, SeveralErrors, StudioError, UsageError


class DataStep:
    """Components and handlers of step 1.

    `confirmed` fires after the data set was accepted or refused; each event in `opening` fires after a file was opened.
    """

    def __init__(self, app: Services) -> None:
        self._app = app
        self.source = SourceCard()
        self.reading = ReadingCard(app, "data")
        with gr.Column(visible=False) as self.body:
            with gr.Column(elem_classes="card private"):
                self.preview = panel(elem_id="data-preview")
            with gr.Row(elem_classes="split"):
                with gr.Column(scale=7, min_width=300, elem_classes="aside"):
                    with gr.Column(elem_classes="card"):
                        self.columns = ColumnsForm()
                        self.drop = gr.Checkbox(label="Leave out rows that repeat an earlier row", visible=False)
                        panel(el("h3", "How the model is asked to write"))
                        self.words = WordingForm()
                    with gr.Column(elem_classes="card private"):
                        self.facts = panel(elem_id="data-facts")
                        self.choice = LabelChoice()
                        self.labels = self.choice.labels
                with gr.Column(scale=5, min_width=300, elem_classes=["card", "aside"]):
                    self.drafts = DraftPreview(app)
            self.public = PublicCard()
        self._wire()

    def _wire(self) -> None:
        source, choice, public = self.source, self.choice, self.public
        shown = [
            *choice.outputs, self.facts, self.drop, self._app.bar.html, *public.outputs, *self.words.outputs,
        ]  # fmt: skip
        self._loaded = [
            source.upload, source.notice, source.reloaded, self.body, self.preview, public.name, self.drafts.drafts,
            *self.columns.inputs, *shown, *self.reading.outputs,
        ]  # fmt: skip
        reading = self.reading
        self.opening = [
            on(source.upload.upload, self._upload, source.upload, self._loaded, source.notice),
            on(reading.use.click, self._read_so, reading.inputs, self._loaded, reading.look),
        ]
        for pressed, example in source.examples:
            self.opening.append(on(pressed.click, self._example(example), None, self._loaded, source.notice))
        described = [*self.columns.inputs, self.drop]
        problem, told = public.problem, [public.problem, self._app.bar.html]
        read = [on(each.input, self._inspect, described, shown, problem) for each in described]
        chosen = [
            on(self.labels.input, self._choose, self.labels, shown, problem),
            on(choice.use.click, self._name_labels, [choice.names, *described], shown, choice.problem),
            on(choice.merge.click, self._merge_labels, described, shown, choice.problem),
        ]
        asking = {self.labels, *self.words.inputs}
        worded = [
            on(each, self._set_wording, asking, [*told, self.words.sentence_panel], problem)
            for each in self.words.settled
        ]
        typed = gr.on(
            self.words.typing,
            self._typed,
            asking,
            [*told, self.words.sentence_panel],
            trigger_mode="always_last",
            **PRIVATE,
        )
        self.drafts.follow(self.labels, *self.opening, *read, *chosen, *worded, typed)
        sizes: list[Any] = [public.sizes, public.count_epsilon]
        of_sizes = [public.count_epsilon, public.public, public.confirm, *told]
        for each in sizes:
            on(each.input, self._choose_sizes, sizes, of_sizes, problem)
        on(public.left_out.input, self._allow, public.left_out, told, problem)
        on(public.name.input, self._withdraw, None, told, problem)
        confirming = {public.name, self.labels, *public.inputs, *self.words.inputs}
        self.confirmed = on(public.confirm.click, self._confirm, confirming, told, problem)

    def take_example(self, pressed: gr.Button) -> gr.events.Dependency:
        """Make a button elsewhere open the first bundled example, which is fictional, and confirm it."""
        example = self.source.examples[0][1]

        def take(request: gr.Request) -> Updates:
            shown: Updates = self._example(example)(request)
            session = self._app.session(request)
            inspected = session.of(DataState).inspected
            assert inspected is not None
            self._use(session, self._app.ledger(request), inspected, example.path.stem, inspected.labels)
            return shown | self._app.steps(session) | {self.public.public: True}

        return on(pressed.click, take, None, self._loaded, self.source.notice)

    # A file.

    def _upload(self, upload: str | None, request: gr.Request) -> Updates:
        if upload is None:
            return {self.source.notice: []}
        session, name = self._app.session(request), proposed_name(upload)
        before = session.of(DataState).file is not None
        table, shown, said = self.reading.uploaded(session, upload, name, before)
        read = {self.source.notice: said} if table is None else self._open_table(session, table, name)
        return {self.source.upload: None} | shown | read

    def _read_so(self, request: gr.Request, *answers: Any) -> Updates:
        session = self._app.session(request)
        table, name, shown = self.reading.read_again(session, *answers)
        return shown if table is None else shown | self._open_table(session, table, name)

    def _open_table(self, session: Session, table: Table, name: str) -> Updates:
        mapping = guess_mapping(table)
        return self._opened(session, table, mapping, name, *first_words(mapping))

    def _example(self, example: Example) -> Any:
        def take(request: gr.Request) -> Updates:
            session, table = self._app.session(request), read_table(example.path)
            return self._opened(session, table, example.mapping, example.path.stem, example.wording, example.fields[1])

        return take

    def _opened(
        self, session: Session, table: Table, mapping: ColumnMapping, name: str, wording: Wording, label_field: str
    ) -> Updates:
        session.of(DataState).open(table, wording, label_field, (mapping.text, mapping.label))
        return {
            self.source.notice: [],
            self.source.reloaded: "",
            **self.reading.closed(session),
            self.body: gr.Column(visible=True),
            self.preview: preview_table(table),
            self.public.name: name,
            self.choice.names: "",
            **self.drafts.cleared(session),
            **self.columns.opened(table.columns, mapping),
            **self.words.filled(wording),
            **self._inspected(session, mapping),
        }

    # Its columns, and the labels that take part.

    def _inspect(self, request: gr.Request, text: str, label: str, unit: str, drop: bool) -> Updates:
        mapping = self.columns.mapping(text, label, unit, drop)
        session = self._app.session(request)
        state, of, proposed = session.of(DataState), (mapping.text, mapping.label), dict[Any, Any]()
        if state.file is not None and state.file.worded_for != of:
            wording, label_field = first_words(mapping, state.wording)
            state.propose_wording(of, wording, label_field)
            proposed = self.words.filled(wording)
        return proposed | self._inspected(session, mapping)

    def _inspected(self, session: Session, mapping: ColumnMapping) -> Updates:
        state = session.of(DataState)
        before, labelled_by = state.inspected, state.file.labelled_by if state.file else None
        try:
            inspected = state.inspect(mapping)
        except StudioError as error:
            state.keep_uninspected()
            nothing = self.choice.offered(())[1] | self.words.sentence_shown(state.wording, ())
            return self._unconfirmed(session, ()) | nothing | {self.facts: notice(str(error))}
        if inspected is before:
            return {self.public.problem: []}
        labels, offered = self.choice.offered(inspected.inspection.counts)
        return {
            **self._unconfirmed(session, labels),
            **offered,
            **self.choice.named(inspected, labelled_by),
            **self.choice.look_alike(inspected),
            **self.words.labelled(state.wording, inspected.labels),
            **self._sentence_shown(state.wording, labels),
            self.facts: counted(inspected, labels),
            self.drop: gr.Checkbox(visible=inspected.inspection.duplicates > 0, value=mapping.drop_duplicates),
        }

    def _choose(self, labels: list[str], request: gr.Request) -> Updates:
        session = self._app.session(request)
        inspected = session.of(DataState).rechoose()
        told = self._sentence_shown(inspected.file.wording, labels)
        return self._unconfirmed(session, labels) | told | {self.facts: counted(inspected, labels)}

    def _name_labels(self, request: gr.Request, lines: str, *described: Any) -> Updates:
        self._app.session(request).of(DataState).name_labels(lines)
        return self._inspect(request, *described)

    def _merge_labels(self, request: gr.Request, *described: Any) -> Updates:
        self._app.session(request).of(DataState).merge_labels()
        return self._inspect(request, *described)

    def _unconfirmed(self, session: Session, labels: Collection[str]) -> Updates:
        return self.public.unconfirmed(session.of(DataState).inspected, labels) | self._app.steps(session)

    # The words.

    def _sentence_shown(self, wording: Wording, labels: Collection[str]) -> Updates:
        return self.words.sentence_shown(wording, sorted(labels))

    def _set_wording(self, values: Mapping[Any, Any], request: gr.Request) -> Updates:
        """Set the wording; a confirmation stays if the wording is the same."""
        session = self._app.session(request)
        state = session.of(DataState)
        try:
            wording = self.words.wording(values)
            state.set_wording(wording)
        except UsageError:
            state.withdraw()
            raise
        return {
            self.public.problem: [],
            **self._app.steps(session),
            **self._sentence_shown(wording, values[self.labels] or ()),
        }

    def _typed(self, values: Mapping[Any, Any], request: gr.Request) -> Updates:
        """Set the wording while the user types; errors are shown when the user leaves the field."""
        try:
            return self._set_wording(values, request)
        except UsageError:
            return self._app.steps(self._app.session(request))

    # What becomes public.

    def _allow(self, allowed: bool, request: gr.Request) -> Updates:
        session = self._app.session(request)
        session.of(DataState).allow_left_out(allowed)
        return {self.public.problem: [], **self._app.steps(session)}

    def _withdraw(self, request: gr.Request) -> Updates:
        session = self._app.session(request)
        session.of(DataState).withdraw()
        return {self.public.problem: [], **self._app.steps(session)}

    def _choose_sizes(self, sizes: str, epsilon: float | None, request: gr.Request) -> Updates:
        return self.public.chosen(sizes, epsilon) | self._withdraw(request)

    def _confirm(self, values: Mapping[Any, Any], request: gr.Request) -> Updates:
        session, public = self._app.session(request), self.public
        state = session.of(DataState)
        name, labels = str(values[public.name] or "").strip(), sorted(values[self.labels] or ())
        measured, count_epsilon = values[public.sizes] == MEASURE, values[public.count_epsilon]
        missing: list[UsageError] = []

        @contextmanager
        def if_refused() -> Iterator[None]:
            try:
                yield
            except UsageError as error:
                missing.append(error)

        with if_refused():
            state.set_wording(self.words.wording(values))
        with if_refused():
            if (inspected := state.inspected) is None:
                raise DataError(LOST if state.file is None else "Choose the columns of texts and labels first.")
            inspected.check(labels)
        with if_refused():
            if not name:
                raise DataError("Give the data set a name: the ledger keeps what it has spent under it.")
        with if_refused():
            if not values[public.public]:
                raise DataError(UNCONFIRMED)
        with if_refused():
            if measured:
                check_epsilon(float(count_epsilon or 0))
        if missing:
            raise missing[0] if len(missing) == 1 else SeveralErrors(map(str, missing))
        assert inspected is not None
        self._use(
            session, self._app.ledger(request), inspected, name, labels, float(count_epsilon) if measured else None
        )
        return {public.problem: [], **self._app.steps(session, 2)}

    def _use(
        self,
        session: Session,
        ledger: PrivacyLedger,
        inspected: InspectedFile,
        name: str,
        labels: Sequence[str],
        count_epsilon: float | None = None,
    ) -> None:
        """Confirm a data set; its label sizes are measured for `count_epsilon`, or declared public if that is None."""
        state = session.of(DataState)
        dataset = to_dataset(inspected.file.table, inspected.mapping, name, tuple(labels))
        warnings = tuple(ledger.rows.recognise(fingerprint(dataset)))
        measured = None if count_epsilon is None else state.measured_once(dataset, count_epsilon, ledger)
        state.confirm(ConfirmedData(inspected, dataset, measured, warnings))
