"""The question how an uploaded file is read, where that is not clear: its choices, and a look at the first rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gradio as gr

from dpicl_ui.data.facts import preview_table
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.inputs import PrivateDropdown, whole
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session, State
from dpicl_ui.frame.tree import Tree, el, notice, panel
from mechanisms.data.sources import RawFile, format_in, read_table
from mechanisms.data.table import USUAL, Reading, ReadingAsked, Table
from mechanisms.data.text_lines import ENCODINGS
from mechanisms.errors import UsageError

_NAMES, _ROW = "names", "row"
_FIRST_LINE = [("It names the columns", _NAMES), ("It is a row; columns are called 1, 2, ...", _ROW)]
_UNSAID = ""
_ENCODINGS = [("As the file's mark says, or UTF-8", _UNSAID), *((name, name) for name in ENCODINGS)]
_SEPARATORS = [("As usual", _UNSAID), ("comma", ","), ("semicolon", ";"), ("tab", "tab"), ("bar", "|")]
_LOOK_BYTES = 2**18
"""The beginning of a text file, which is all that is read for a look at it."""
_HOW = "Choose, look at the first rows, and read it so. The choice is said of the whole file, and is public."
_LOST = "The file is no longer in memory: upload it again."
STAYS = "The file that was open before stays open."
"""What is said where another file was refused, or waits for an answer."""


class Waiting(State):
    """A file that waits for its owner's word on how it is read, and what is proposed as its name; private."""

    raw: RawFile | None = None
    name = ""


class ReadingCard:
    """Components; `inputs` are the last arguments of `again`.

    Args:
        waiting: where a file is kept meanwhile.
        prefix: of the element ids.
    """

    def __init__(self, app: Services, waiting: type[Waiting], prefix: str) -> None:
        self._app, self._waiting = app, waiting
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
                self.sheet = PrivateDropdown(label="Sheet", elem_id=f"{prefix}-sheet")
            self.look = panel(elem_id=f"{prefix}-look")
            self.use = gr.Button("Read it so", variant="primary", elem_id=f"{prefix}-read-so")
        chosen = [self.header.input, self.encoding.input, self.separator.input, self.sheet.input, self.skip.blur]
        for event in chosen:
            event(guarded(self.look)(self._look), self.inputs, self.look, **PRIVATE)

    @property
    def inputs(self) -> list[Any]:
        """What its owner may say."""
        return [self.header, self.encoding, self.separator, self.sheet, self.skip]

    @property
    def outputs(self) -> list[Any]:
        """What changes with a question."""
        return [self.card, self.question, self.look, *self.inputs]

    def opened(self, session: Session, raw: RawFile, name: str) -> tuple[Table | None, dict[Any, Any]]:
        """The table of a new file, or None where it has to be asked about; and the components.

        Raises:
            DataError: the file cannot be read.
        """
        try:
            return _table(raw, USUAL), self.closed(session)
        except ReadingAsked as asked:
            waiting = session.of(self._waiting)
            waiting.raw, waiting.name = raw.in_memory(), name
            return None, self._asked(asked, waiting.raw, USUAL)

    def again(self, session: Session, *said: Any) -> tuple[Table | None, str, dict[Any, Any]]:
        """The table of the file that waits, as its owner says, or None where more has to be asked; its name; and the
        components.

        Raises:
            UsageError: none waits, or what was said is unusable.
            DataError: it cannot be read so.
        """
        waiting = session.of(self._waiting)
        raw, name, reading = _kept(waiting), waiting.name, _reading(*said)
        try:
            return _table(raw, reading), name, self.closed(session)
        except ReadingAsked as asked:
            return None, name, self._asked(asked, raw, reading)

    def closed(self, session: Session) -> dict[Any, Any]:
        """The components without a question; the file that waited is forgotten."""
        session.of(self._waiting).raw = None
        return {self.card: gr.Column(visible=False), self.look: []}

    def _asked(self, asked: ReadingAsked, raw: RawFile, said: Reading) -> dict[Any, Any]:
        proposed = replace(said, **{name: getattr(asked.proposed, name) for name in asked.proposed.said})
        takes = format_in(raw).takes
        header = None if proposed.header is None else _NAMES if proposed.header else _ROW
        return {
            self.card: gr.Column(visible=True),
            self.question: [el("h3", "How is this file to be read?"), *notice(asked.question, "warn"), el("p", _HOW)],
            self.header: gr.Radio(value=header, visible="header" in takes),
            self.skip: gr.Textbox(value=str(proposed.skip), visible="skip" in takes),
            self.encoding: gr.Dropdown(
                choices=_ENCODINGS, value=proposed.encoding or _UNSAID, visible="encoding" in takes
            ),
            self.separator: gr.Dropdown(
                choices=_SEPARATORS, value=proposed.separator or _UNSAID, visible="separator" in takes
            ),
            self.sheet: gr.Dropdown(choices=list(asked.sheets), value=proposed.sheet, visible="sheet" in takes),
            self.look: _look_at(raw, proposed),
        }

    def _look(self, request: gr.Request, *said: Any) -> list[Tree]:
        waiting = self._app.session(request).of(self._waiting)
        return _look_at(_kept(waiting), _reading(*said))


def _table(raw: RawFile, reading: Reading) -> Table:
    table = read_table(raw, reading)
    if len(table.sheets) > 1 and reading.sheet is None:
        proposed = replace(reading, sheet=table.sheets[0])
        raise ReadingAsked("The file has several sheets.", "", proposed, table.sheets)
    return table


def _kept(waiting: Waiting) -> RawFile:
    if waiting.raw is None:
        raise UsageError(_LOST)
    return waiting.raw


def _reading(header: str | None, encoding: str | None, separator: str | None, sheet: str | None, skip: str) -> Reading:
    lines = whole("The number of lines above it", skip or "0")
    return Reading({_NAMES: True, _ROW: False}.get(header or ""), encoding or None, separator or None, sheet, lines)


def _look_at(raw: RawFile, reading: Reading) -> list[Tree]:
    """The first rows; where the first line is in question, below it as a header."""
    found = format_in(raw)
    if "header" in found.takes and reading.header is None:
        reading = replace(reading, header=True)
    try:
        return preview_table(read_table(raw if found.starts else raw.first_lines(_LOOK_BYTES), reading), whole=False)
    except UsageError as error:
        return notice(str(error))
