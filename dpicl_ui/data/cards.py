"""Step 1's cards: the file and how it is read, its columns and labels, the wording, and what becomes public."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import gradio as gr

from dpicl_ui.data.state import GO_ON, LOST, InspectedFile
from dpicl_ui.frame.controls import control, pairs_in_lines
from dpicl_ui.frame.files import drop, taken
from dpicl_ui.frame.handlers import PRIVATE, guarded
from dpicl_ui.frame.inputs import PrivateCheckboxGroup, PrivateDropdown, whole_number
from dpicl_ui.frame.services import Services, Session, State
from dpicl_ui.frame.tree import (
    MANY_LABELS,
    Tree,
    count_row,
    drawn,
    el,
    notice,
    panel,
    private_tag,
)
from mechanisms.asking import Wording, in_words
from mechanisms.data.columns import MOST_LABELS, ColumnMapping, Inspection
from mechanisms.data.headers import TEXTS, suggested_names
from mechanisms.data.label_names import SPELLED, alike
from mechanisms.data.sources import EXAMPLES, PACKED, RawFile, format_in, formats_in_words, read_table
from mechanisms.data.table import BACKSLASH, DOUBLED, USUAL, Reading, ReadingQuestion, Table
from mechanisms.data.text_lines import ENCODINGS
from mechanisms.errors import DataError, UsageError
from mechanisms.runs.spec import RunSpec

LONGEST_NAME = 100
"""Characters of a data set's name."""
_SAY_NOTHING = {
    "all", "book", "copy", "csv", "data", "dataset", "default", "dev", "download", "eval", "excel", "export", "file",
    "final", "full", "input", "json", "jsonl", "labeled", "labelled", "list", "master", "new", "output", "parquet",
    "part", "private", "public", "records", "results", "rows", "sample", "sheet", "split", "table", "temp", "test",
    "testing", "text", "texts", "tmp", "train", "training", "untitled", "val", "valid", "validation", "version",
}  # fmt: skip
"""Words of file names that many data sets share."""
_SOURCE = [
    el("h2", "Bring your labelled texts"),
    el(
        "p.lead",
        f"A file ({formats_in_words()}) with one row for each text, and a column with its label. It is read into "
        "memory, deleted from the server's disk at once, and dropped when you close the page. Only keyed digests of "
        "its rows stay.",
    ),
]

_RELOADED = "The page was reloaded, which dropped its file from this server's memory: choose the file again."


def proposed_name(file: str) -> str:
    """A file's name without its ending; empty if the name is a common word.

    The ledger stores costs by name: two data sets called "train" would share one budget.
    """
    stem = Path(file.removesuffix(PACKED)).stem
    words = "".join(each if each.isalpha() else " " for each in stem.lower()).split()
    return stem[:LONGEST_NAME] if any(len(word) > 1 and word not in _SAY_NOTHING for word in words) else ""


class SourceCard:
    """The card that opens a file (by upload or from an example), or instead an exported set or a saved run."""

    def __init__(self) -> None:
        with gr.Column(elem_classes="card"):
            panel(*_SOURCE)
            with gr.Row(elem_classes="source"):
                with gr.Column(min_width=240):
                    self.upload = drop("upload-data", 150)
                with gr.Column(elem_classes="examples", min_width=240):
                    panel(el("p.small-head", "No data at hand? Take an example"))
                    self.examples = [(gr.Button(each.title, size="sm"), each) for each in EXAMPLES]
                    panel(el("p.small-head", "Demonstrations made before?"))
                    self.load_instead = gr.Button("Load an exported set and test it", size="sm", elem_id="load-instead")
                    self.load_run = gr.UploadButton("Look at a saved run again", size="sm", elem_id="look-again")
            self.reloaded = drawn("reloaded.js", _RELOADED, elem_id="reloaded", elem_classes="tree")
            self.notice = panel(elem_id="data-notice")


# All of a file's content is private until the owner declares parts public.
PREVIEW_ROWS = 5
_CELL, _COLUMNS = 240, 12
_FEW = 30
_FEW_ROWS = "few {units}: much noise for each"
_MANY_FEW = f"{{few}} of the {{of}} labels have fewer than {_FEW} {{units}}: much noise for each. Leave some out below."
_LONG_TEXT = 600
"""Characters of a text that counts as long; step 2 proposes to read far fewer of each row."""
_CUT = (
    "Most of these texts are long. The model reads about the first 35 words of each. To read more, raise the tokens "
    "of a row under 'For experts' in step 2; the run then takes longer."
)


def preview_table(table: Table, whole: bool = True) -> list[Tree]:
    """The first rows of a parsed file, or of its beginning, with long cells cut."""
    columns, count = table.columns[:_COLUMNS], len(table.columns)
    rows = table.frame[columns].head(PREVIEW_ROWS).itertuples(index=False)
    size = f"{len(table.frame):,} rows, " if whole else ""
    size += f"{count} column{'' if count == 1 else 's'}"
    cut = f"; the first {_COLUMNS} are shown" if count > _COLUMNS else ""
    cells = (el("tr", *(el("td", el("div.cell", str(cell)[:_CELL])) for cell in row)) for row in rows)
    head = el("thead", el("tr", *(el("th", name, scope="col") for name in columns)))
    return [
        el("div.card-head", el("h3", "First rows"), private_tag()),
        el("p.muted", size + cut),
        *(el("p.notice.info", remark) for remark in table.remarks),
        el("div.scroll", el("table.preview", head, el("tbody", *cells))),
    ]


def counted(inspected: InspectedFile, labels: list[str]) -> list[Tree]:
    long = inspected.file.table.frame[inspected.mapping.text].str.len().median() > _LONG_TEXT
    counts = label_counts(inspected.inspection, labels, inspected.by_user)
    return [*counts, el("p.notice.info", _CUT)] if long else counts


def label_counts(inspection: Inspection, labels: list[str], by_user: bool = False) -> list[Tree]:
    """The units of each chosen label as bars, the number of rows left out, and the file's problems."""
    units = "users" if by_user else "rows"
    largest, many = max(inspection.counts.values(), default=1), len(labels) > MANY_LABELS
    sizes = [inspection.counts.get(label, 0) for label in labels]
    few = [size < _FEW for size in sizes]
    lines = (
        count_row(
            label,
            size / largest,
            f"{size:,}",
            el("span.few", _FEW_ROWS.format(units=units)) if is_few and not many else None,
        )
        for label, size, is_few in zip(labels, sizes, few, strict=True)
    )
    span = " to ".join(dict.fromkeys(f"{size:,}" for size in (min(sizes, default=0), max(sizes, default=0))))
    told = [el("p.muted", f"{len(labels)} labels, with {span} {units}")] if many else []
    if many and any(few):
        told.append(el("p.few", _MANY_FEW.format(few=sum(few), of=len(labels), units=units)))
    kind = "bad" if inspection.fatal else "warn"
    problems = filter(None, [inspection.rows.left_out(labels).sentence, *inspection.problems])
    tag = private_tag()
    return [
        el("div.card-head", el("h3", f"Labels and how many {units} have them"), tag),
        *told,
        el("div.counts", *lines),
        *(el(f"p.notice.{kind}", line) for line in problems),
    ]


DECLARE, MEASURE = "declare", "measure"
_SIZES = [("Declare the counts public", DECLARE), ("Measure them with noise, for a share of epsilon", MEASURE)]
_PUBLIC = (
    "I declare public: the label names, the words above, the columns' names, how the file is read (encoding, "
    "separator, header), and the number of {units} of each label (unless it is measured with noise). Label names and "
    "the words above appear in prompts and in the export. None of this is protected: do not confirm if any of it is "
    "secret."
)
UNCONFIRMED = "Read the declaration, and tick it if all of it may become public."


def declared(by_user: bool) -> str:
    """The text of the checkbox that declares what becomes public."""
    return _PUBLIC.format(units="users" if by_user else "rows")


class PublicCard:
    """The card of what becomes public.

    Attributes:
        inputs: the checkbox of the declaration, and the choice of how the label sizes become public.
        outputs: the components that change with the columns.
    """

    def __init__(self) -> None:
        with gr.Column(elem_classes="card public"):
            panel(el("div.card-head", el("h3", "What becomes public"), el("span.tag.public", "Releasable")))
            self.name = gr.Textbox(
                label="Name of this data set",
                elem_id="data-name",
                max_length=LONGEST_NAME,
                info="The ledger keeps what was spent under this name: use it again for newer versions.",
            )
            self.sizes = gr.Radio(_SIZES, value=DECLARE, label="How large each label is", elem_id="sizes")
            self.count_epsilon = gr.Number(
                0.1,
                label="Epsilon for counting",
                info="Charged once: this page keeps the counts while it is open. Every run's claim includes it.",
                visible=False,
                elem_id="count-epsilon",
            )
            self.public = gr.Checkbox(label=declared(False), elem_id="declared-public")
            self.left_out = gr.Checkbox(label=GO_ON, visible=False, elem_id="allow-left-out")
            self.problem = panel(elem_id="data-problem")
            self.confirm = gr.Button("Use this data set", variant="primary", elem_id="confirm-data")
        self.inputs: list[Any] = [self.public, self.sizes, self.count_epsilon]
        self.outputs: list[Any] = [self.public, self.left_out, self.problem]

    def unconfirmed(self, inspected: InspectedFile | None, labels: Collection[str]) -> dict[Any, Any]:
        many = inspected is not None and not inspected.inspection.fatal and inspected.left_out(labels).many
        return {
            self.public: gr.Checkbox(value=False, label=declared(inspected is not None and inspected.by_user)),
            self.left_out: gr.Checkbox(value=False, visible=many),
            self.problem: [],
        }

    def chosen(self, sizes: str, epsilon: float | None) -> dict[Any, Any]:
        spends = f"Spend epsilon {epsilon or 0:g} on counting, and use this data set"
        return {
            self.count_epsilon: gr.Number(visible=sizes == MEASURE),
            self.public: False,
            self.confirm: gr.Button(spends if sizes == MEASURE else "Use this data set"),
            self.problem: [],
        }


_NAMES, _ROW = "names", "row"
_FIRST_LINE = [("It names the columns", _NAMES), ("It is a row; columns are called 1, 2, ...", _ROW)]
_UNSAID = ""
_ENCODINGS = [("As the file's mark says, or UTF-8", _UNSAID), *((name, name) for name in ENCODINGS)]
_SEPARATORS = [("As usual", _UNSAID), ("comma", ","), ("semicolon", ";"), ("tab", "tab"), ("bar", "|")]
_ESCAPES = [("As usual, doubled", _UNSAID), ("behind a backslash", BACKSLASH), ("doubled", DOUBLED)]
_EACH, _FIRST = "each", "first"
_MERGED = [("Each of the rows that it spans", _EACH), ("The first of them alone", _FIRST)]
_LOOK_BYTES = 2**18
"""Bytes at the beginning of a text file that are read to show its first rows."""
_HOW = "Choose, look at the first rows, and read the file. The choice covers the whole file, and is public."
STAYS = "The file that was open before stays open."


class WaitingFiles(State):
    """Files that wait for their owner to choose how they are read, with proposed names, by card; private."""

    def __init__(self, session: Session) -> None:
        self.files: dict[str, tuple[RawFile, str]] = {}

    def file(self, card: str) -> tuple[RawFile, str]:
        if card not in self.files:
            raise UsageError(LOST)
        return self.files[card]


class ReadingCard:
    """The card that asks how a file is read.

    Attributes:
        inputs: the owner's answers.
        outputs: the components that change with a question.
    """

    def __init__(self, app: Services, prefix: str) -> None:
        self._app, self._prefix = app, prefix
        with gr.Column(visible=False, elem_classes="card private", elem_id=f"{prefix}-reading") as self.card:
            self.question = panel(elem_id=f"{prefix}-question")
            with gr.Row():
                self.header = gr.Radio(_FIRST_LINE, label="What is the first line?", elem_id=f"{prefix}-header")
                self.skip = gr.Textbox("0", label="Lines above it, left out", max_length=4, elem_id=f"{prefix}-skip")
            with gr.Row():
                self.encoding = gr.Dropdown(
                    _ENCODINGS, value=_UNSAID, label="Encoding", allow_custom_value=True, elem_id=f"{prefix}-encoding"
                )
                self.separator = gr.Dropdown(
                    _SEPARATORS, value=_UNSAID, label="Between cells", elem_id=f"{prefix}-separator"
                )
                self.escape = gr.Dropdown(
                    _ESCAPES, value=_UNSAID, label="A quote in a quoted cell", elem_id=f"{prefix}-escape"
                )
                self.sheet = PrivateDropdown(label="Sheet", elem_id=f"{prefix}-sheet")
                self.merged = gr.Radio(_MERGED, label="Who has a merged cell's value?", elem_id=f"{prefix}-merged")
                self.rows = PrivateDropdown(label="List that holds the rows", elem_id=f"{prefix}-rows")
            self.look = panel(elem_id=f"{prefix}-look")
            self.use = gr.Button("Read it so", variant="primary", elem_id=f"{prefix}-read-so")
        chosen: list[Any] = [self.header, self.encoding, self.separator, self.sheet]
        more: list[Any] = [self.escape, self.merged, self.rows]
        self.inputs: list[Any] = [*chosen, self.skip, *more]
        self.outputs: list[Any] = [self.card, self.question, self.look, *self.inputs]
        for event in (*(each.input for each in (*chosen, *more)), self.skip.blur):
            event(guarded(self.look)(self._look), self.inputs, self.look, **PRIVATE)

    def uploaded(
        self, session: Session, upload: str, name: str, before: bool
    ) -> tuple[Table | None, dict[Any, Any], list[Tree]]:
        """A new file's table (None if it is refused, or its owner must answer a question), the components' values, and
        a notice."""
        stays = STAYS if before else ""
        try:
            with taken(upload) as path:
                raw = RawFile.at(path)
                try:
                    return _table(raw, USUAL), self.closed(session), []
                except ReadingQuestion as question:
                    raw = raw.in_memory()
                    session.of(WaitingFiles).files[self._prefix] = raw, name
                    return None, self._ask(question, raw, USUAL), notice(stays, "info")
        except DataError as error:
            return None, {}, notice(f"{error} {stays}".rstrip())

    def read_again(self, session: Session, *answers: Any) -> tuple[Table | None, str, dict[Any, Any]]:
        """Read the waiting file according to its owner's answers.

        Returns:
            The table (None if there is another question), its name, and the components' values.

        Raises:
            UsageError: no file waits, or an answer is unusable.
            DataError: the file cannot be read this way.
        """
        (raw, name), reading = session.of(WaitingFiles).file(self._prefix), _reading(*answers)
        try:
            return _table(raw, reading), name, self.closed(session)
        except ReadingQuestion as question:
            return None, name, self._ask(question, raw, reading)

    def closed(self, session: Session) -> dict[Any, Any]:
        """The components' values without a question; the waiting file is dropped."""
        session.of(WaitingFiles).files.pop(self._prefix, None)
        return {self.card: gr.Column(visible=False), self.look: []}

    def _ask(self, question: ReadingQuestion, raw: RawFile, reading: Reading) -> dict[Any, Any]:
        proposed = replace(reading, **{name: getattr(question.proposed, name) for name in question.proposed.declared})
        takes = format_in(raw).takes
        header = None if proposed.header is None else _NAMES if proposed.header else _ROW
        merged = None if proposed.fill_merged is None else _EACH if proposed.fill_merged else _FIRST
        return {
            self.card: gr.Column(visible=True),
            self.question: [
                el("h3", "How is this file to be read?"),
                *notice(question.sentence, "warn"),
                el("p", _HOW),
            ],
            self.header: gr.Radio(value=header, visible="header" in takes),
            self.skip: gr.Textbox(value=str(proposed.skip), visible="skip" in takes),
            self.encoding: gr.Dropdown(
                choices=_ENCODINGS, value=proposed.encoding or _UNSAID, visible="encoding" in takes
            ),
            self.separator: gr.Dropdown(
                choices=_SEPARATORS, value=proposed.separator or _UNSAID, visible="separator" in takes
            ),
            self.escape: gr.Dropdown(choices=_ESCAPES, value=proposed.escape or _UNSAID, visible="escape" in takes),
            self.sheet: gr.Dropdown(
                choices=list(question.parts), value=proposed.sheet, visible="sheet" in takes and len(question.parts) > 1
            ),
            self.merged: gr.Radio(value=merged, visible="fill_merged" in takes),
            self.rows: gr.Dropdown(
                choices=list(question.parts), value=proposed.rows, visible="rows" in takes and len(question.parts) > 1
            ),
            self.look: _look_at(raw, proposed),
        }

    def _look(self, request: gr.Request, *answers: Any) -> list[Tree]:
        raw, _ = self._app.session(request).of(WaitingFiles).file(self._prefix)
        return _look_at(raw, _reading(*answers))


def _table(raw: RawFile, reading: Reading) -> Table:
    table = read_table(raw, reading)
    if len(table.sheets) > 1 and reading.sheet is None:
        proposed = replace(reading, sheet=table.sheets[0])
        raise ReadingQuestion("The file has several sheets.", "", proposed, table.sheets)
    return table


def _reading(
    header: str | None,
    encoding: str | None,
    separator: str | None,
    sheet: str | None,
    skip: str,
    escape: str | None = None,
    merged: str | None = None,
    rows: str | None = None,
) -> Reading:
    return Reading(
        header={_NAMES: True, _ROW: False}.get(header or ""),
        encoding=encoding or None,
        separator=separator or None,
        escape=escape or None,
        sheet=sheet,
        skip=whole_number("The number of lines above it", skip or "0"),
        fill_merged={_EACH: True, _FIRST: False}.get(merged or ""),
        rows=rows,
    )


def _look_at(raw: RawFile, reading: Reading) -> list[Tree]:
    """The first rows as elements; the first line is shown as a header until the owner chooses what it is."""
    found = format_in(raw)
    if "header" in found.takes and reading.header is None:
        reading = replace(reading, header=True)
    begins = not found.starts and "rows" not in found.takes  # other formats are read whole or not at all
    try:
        return preview_table(read_table(raw.first_lines(_LOOK_BYTES) if begins else raw, reading), whole=False)
    except UsageError as error:
        return notice(str(error))


_NO_USER = "(every row stands for itself)"
_USER = "If one person can have several rows: protects all rows of a person together."
_PROPOSED_USER = (
    "Proposed, because people have several rows here: all rows of a person are then protected together. Without a "
    "column only single rows are."
)


class ColumnsForm:
    """Which columns hold the text, its label, and the user. `inputs` are the dropdowns in this order."""

    def __init__(self) -> None:
        with gr.Row():
            self.text = PrivateDropdown(label="Text", elem_id="text-column", min_width=140)
            self.label = PrivateDropdown(label="Label", elem_id="label-column", min_width=140)
            self.unit = PrivateDropdown(label="User (optional)", elem_id="unit-column", info=_USER, min_width=200)
        self.inputs: list[Any] = [self.text, self.label, self.unit]

    def opened(self, columns: list[str], mapping: ColumnMapping) -> dict[Any, Any]:
        return {
            self.text: gr.Dropdown(choices=columns, value=mapping.text or None),
            self.label: gr.Dropdown(choices=columns, value=mapping.label or None),
            self.unit: gr.Dropdown(
                choices=[_NO_USER, *columns],
                value=mapping.unit or _NO_USER,
                info=_PROPOSED_USER if mapping.unit else _USER,
            ),
        }

    def mapping(self, text: str | None, label: str | None, unit: str, drop_duplicates: bool) -> ColumnMapping:
        return ColumnMapping(text or "", label or "", None if unit == _NO_USER else unit, drop_duplicates)


_SAME = f"These labels are spellings of one another ({SPELLED}):"
_NEW_NAMES = (
    "One line a label: label = Name. From here on the name replaces the label: in prompts, export, figures and test "
    "files."
)
_PROPOSED_NAMES = (
    "Proposed, and already in use: this file's labels are numbers with names, or are written with underscores or "
    "capitals. Change them, or empty the box to keep the file's own, and press 'Use these names'. "
)


class LabelChoice:
    """Which labels take part, and their names. `outputs` change with the columns."""

    def __init__(self) -> None:
        with gr.Accordion("Choose which labels take part", open=False):
            self.labels = PrivateCheckboxGroup(label="Labels", show_select_all=True, elem_id="labels")
        self.alike = panel(elem_id="labels-alike")
        self.merge = gr.Button("Read them as one", size="sm", visible=False, elem_id="merge-labels")
        with gr.Accordion("Give labels other names in prompts", open=False) as self._naming:
            self.names = gr.Textbox(label="Names", info=_NEW_NAMES, lines=4, max_lines=12, elem_id="label-names")
            with gr.Row(elem_classes="actions"):
                self.use = gr.Button("Use these names", size="sm", elem_id="use-names")
            self.problem = panel(elem_id="names-problem")
        self.outputs: list[Any] = [self.labels, self.problem, self.names, self._naming, self.alike, self.merge]

    def offered(self, labels: Iterable[str]) -> tuple[list[str], dict[Any, Any]]:
        """The labels to choose from, at most as many as a task may have, and the components' values: all are chosen."""
        choices = sorted(labels)[:MOST_LABELS]
        return choices, {self.labels: gr.CheckboxGroup(choices=choices, value=choices), self.problem: []}

    def look_alike(self, inspected: InspectedFile) -> dict[Any, Any]:
        """The components' values: labels that are probably spellings of the same label, with an offer to merge them."""
        groups = alike(inspected.inspection.rows.labels)
        lines = [el("li", " = ".join(f"'{label}'" for label in group)) for group in groups]
        shown = [el("div.notice.warn", el("p", _SAME), el("ul.missing", *lines), role="status")] if groups else []
        return {self.alike: shown, self.merge: gr.Button(visible=bool(groups))}

    def named(self, inspected: InspectedFile, before: str | None) -> dict[Any, Any]:
        """The components' values for the names of a column's labels; their box opens if names are proposed.

        If the column is still `before`, the names that were typed for it stay.
        """
        names = inspected.file.label_names
        if inspected.file.labelled_by == before:
            return {}
        lines = (f"{label} = {name}" for label, name in names if "=" not in name and len(label.splitlines()) == 1)
        return {
            self.names: gr.Textbox(value="\n".join(lines), info=(_PROPOSED_NAMES if names else "") + _NEW_NAMES),
            self._naming: gr.Accordion(open=bool(names)),
        }


_ALL_PUBLIC = "All of this is public. Say what anybody may know about your texts, and quote none of them."
_SHOWN = "Exemplars that it sees first: public texts of this kind, written for this program"
_WORDS = "One line a label: label = words. A label without a line is called by its name."
_RELATIONS = ("about", "that is", "that expresses", "in", "from", "for")
_OF_LABELS = {"Sentiment": "that is", "Emotion": "that expresses", "Language": "in"}
"""The words that join a text and its label, for kinds of labels that "about" does not fit."""
_ALIKE = ("kind", "writer", "reader", "relation", "sentence")
"""Fields with the same name in `Wording` and in the form."""


class WordingForm:
    """The form of the wording; `wording` returns what was typed. `inputs` are the fields."""

    def __init__(self) -> None:
        with gr.Row():
            self.kind = control("kind", ["text", *map(str.lower, TEXTS)], min_width=140)
            self.writer = control("writer", placeholder="a patient", min_width=140)
            self.reader = control("reader", placeholder="a clinic", min_width=140)
        self.words = control("label_words", info=_WORDS, lines=3, max_lines=12)
        with gr.Accordion("More: how text and label are joined, a sentence of your own, exemplars", open=False):
            self.relation = control("relation", _RELATIONS)
            self.sentence = control("sentence")
            self.exemplars = control("exemplars")
        self.sentence_panel = panel(elem_id="sentence-said")
        panel(el("p.muted", _ALL_PUBLIC))
        typed = [self.writer, self.reader, self.words, self.sentence]
        chosen = [self.kind, self.relation, self.exemplars]
        self.inputs: list[Any] = [*typed, *chosen]
        self.outputs: list[Any] = [*self.inputs, self.sentence_panel]
        self.typing: list[Any] = [each.input for each in typed]
        self.settled: list[Any] = [each.submit for each in typed] + [each.input for each in chosen]
        self.settled += [each.blur for each in self.inputs if each is not self.exemplars]

    def wording(self, values: Mapping[Any, Any]) -> Wording:
        """The wording as it was typed.

        Raises:
            UsageError: a part is missing or too long, or a line has no equals sign.
        """
        said: dict[str, Any] = {name: " ".join(str(values[getattr(self, name)] or "").split()) for name in _ALIKE}
        words = pairs_in_lines(values[self.words] or "")
        other = {label: its for label, its in words.items() if its != in_words(label)}
        return Wording(**said, words=other, exemplars=int(values[self.exemplars]))

    def filled(self, wording: Wording) -> dict[Any, Any]:
        """The fields' values for another file; `labelled` returns the value for the words of its labels."""
        return {getattr(self, each): getattr(wording, each) for each in (*_ALIKE, "exemplars")}

    def labelled(self, wording: Wording, labels: Iterable[str]) -> dict[Any, Any]:
        lines = (f"{label} = {wording.named(label)}" for label in labels if len(label.splitlines()) == 1)
        return {self.words: "\n".join(line for line in lines if line.count("=") == 1)}

    def sentence_shown(self, wording: Wording, labels: Iterable[str]) -> dict[Any, Any]:
        """The sentence that asks the model for the first label."""
        said = (wording.sentence_for(label) for label in labels)
        told = [el("p", "The model is asked: ", el("strong", f"“{each}”")) for each in islice(said, 1)]
        shown = [el("p.muted", text) for _, text in wording.exemplar_pairs()]
        if told and shown:
            told.append(el("details", el("summary", _SHOWN), *shown))
        return {self.sentence_panel: told}


def first_words(mapping: ColumnMapping, before: Wording | None = None) -> tuple[Wording, str]:
    """The proposed wording for columns, and the word for a label in prompts. Neither is a column's own name."""
    texts, labels = suggested_names(mapping.text, mapping.label)
    before = before or Wording()
    relation = _OF_LABELS.get(labels[0], RunSpec.model_fields["relation"].default)
    return replace(before, kind=texts[0].lower(), relation=relation, words={}), labels[0]
