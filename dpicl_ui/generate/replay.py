"""Looking at a run again: its replay, its file, and original rows beside its demonstrations."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.files import sink, text_of
from dpicl_ui.frame.handlers import MODEL, PRIVATE, guarded
from dpicl_ui.frame.services import Services, Session
from dpicl_ui.frame.tree import Tree, drawn, el, panel, private_tag, spinner, visibility
from dpicl_ui.generate.cards import other_releases, score_of_run
from dpicl_ui.generate.charts import (
    live,
    openings_card,
    stages_card,
    visible,
    vote_card,
    words_card,
    writes,
)
from dpicl_ui.generate.state import GenerateState
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.sources import EXAMPLES, read_table
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.own_rows import SHOWN, beside, spread
from mechanisms.records import Dataset
from mechanisms.runs.events import (
    ENDS,
    DemoStarted,
    Release,
    RunCompleted,
    RunEvent,
    RunStopped,
    TokenReleased,
)
from mechanisms.runs.run_file import FORMAT, LARGEST, from_lines, to_lines
from mechanisms.runs.stages import stages_in_order
from mechanisms.runs.view import RunView, fold, one_by_one


def replayed(events: Iterable[RunEvent]) -> RunView:
    return functools.reduce(lambda _, each: each[1], _one_after_the_other(events), RunView())


def looked_back(events: Iterable[RunEvent]) -> Iterator[tuple[RunEvent, RunView]]:
    """Each position of a replay (every token, every release, and the end) with its view."""
    moments = TokenReleased | Release | RunCompleted | RunStopped
    yield from ((event, view) for event, view in _one_after_the_other(events) if isinstance(event, moments))


def _one_after_the_other(events: Iterable[RunEvent]) -> Iterator[tuple[RunEvent, RunView]]:
    """Every event and the view after it, with one demonstration at a time in the view.

    A file may begin any number of demonstrations and end none of them.
    """
    view = RunView()
    for event in one_by_one(events):
        if isinstance(event, DemoStarted):  # the previous one may have been cut off
            view = replace(view, writing=())
        view = fold(view, event)
        yield event, view


MOST_PLACES, MOST_CHARACTERS = 2000, 16 * 2**20
"""The most positions and characters that a browser gets; a longer recording is cut there, but complete in its file."""
_SILENT = "■"
"""The clickable mark of a token that adds no text, such as the end token."""


def screens(view: RunView) -> dict[str, Any]:
    """The value of each of step 3's screens, by its id on the page."""
    return {
        "run-stages": stages_card(view),
        "openings": openings_card(view),
        "words": words_card(view),
        "live": live(view) if writes(view) else None,
        "votes": vote_card(view),
        "own-score": [*score_of_run(view), *other_releases(view)],
    }


def replay_screen(recording: Sequence[RunEvent]) -> dict[str, Any] | None:
    """The value of the replay; None if there is nothing to replay.

    Returns:
        parts: by screen, its values in the order in which they are shown, each once. While demonstrations are written,
            the live screen's values have `tokens`, a position in `texts`.
        frames: one for each position: name, stage (its title), and `at`, by screen, a position in its parts.
        texts: each written demonstration as pieces of text, each with the position of the token that released it (None
            for the opening), the token's name, and whether it was free.
        cut: whether the recording has more positions.
    """
    parts: dict[str, list[Any]] = {}
    frames: list[dict[str, Any]] = []
    openings: list[str] = []
    tokens: dict[tuple[str, int], list[tuple[int, TokenReleased]]] = {}
    left, cut, known = MOST_CHARACTERS, False, stages_in_order()
    for event, view in looked_back(recording):
        values = screens(view)
        left -= sum(len(json.dumps(each)) for screen, each in values.items() if parts.get(screen, [None])[-1] != each)
        if cut := len(frames) == MOST_PLACES or left < 0:
            break
        if isinstance(event, TokenReleased):
            if (event.label, event.number) not in tokens:
                openings.append(view.draft(event.label, event.number).opening)
            tokens.setdefault((event.label, event.number), []).append((len(frames), event))
        if values["live"] and tokens:
            values["live"] |= {"tokens": len(tokens) - 1}
        at = {}
        for screen, value in values.items():
            shown = parts.setdefault(screen, [])
            if not shown or shown[-1] != value:
                shown.append(value)
            at[screen] = len(shown) - 1
        stage = str(known[view.stage].title) if view.stage in known else ""
        frames.append({"name": _name(event, view), "stage": stage, "at": at})
    texts = [_pieces(opening, released) for opening, released in zip(openings, tokens.values(), strict=True)]
    return {"parts": parts, "frames": frames, "texts": texts, "cut": cut} if frames else None


def _name(event: RunEvent, view: RunView) -> str:
    match event:
        case TokenReleased(label, number, step):
            which = f", number {number}" if view.plan and view.plan.sampling.written > 1 else ""
            return f"{label}{which}, token {step}"
        case Release():
            return str(stages_in_order()[view.stage].title)
    return "The end"


def _pieces(opening: str, released: Sequence[tuple[int, TokenReleased]]) -> list[dict[str, Any]]:
    """A demonstration's last text, divided at the ends of its tokens; its opening belongs to no token.

    A token that is only part of a character changes earlier text, so a token ends where the text after it stops
    agreeing with the last text.
    """
    last = released[-1][1].text
    end = _common(opening, last)
    pieces: list[dict[str, Any]] = [{"text": last[:end], "place": None}] if end else []
    for place, event in released:
        upto = max(end, _common(event.text, last))
        token = visible(event.candidates[event.chosen])
        pieces.append({"text": last[end:upto] or _SILENT, "place": place, "token": token, "free": event.free})
        end = upto
    return pieces


def _common(one: str, other: str) -> int:
    differing = (i for i, (mine, its) in enumerate(zip(one, other, strict=False)) if mine != its)
    return next(differing, min(len(one), len(other)))


FILE_NAME = "run.dpicl.jsonl"


class Replay:
    """The controls of a replay: `bar` moves the screens, in the browser alone. All are hidden before there is a run."""

    def __init__(self) -> None:
        self.bar = drawn("replay.js", None, elem_id="replay")
        with gr.Row(elem_classes="actions"):
            self.save = gr.Button("Save this run", size="sm", visible=visibility(False), elem_id="save-run")
        self.sink = sink()

    def under_way(self) -> dict[Any, Any]:
        return {self.bar: None, self.save: gr.Button(visible=visibility(False))}

    def ended(self, recording: Sequence[RunEvent], savable: bool) -> dict[Any, Any]:
        """The components with a run to replay; `savable` is for a finished run of this tab."""
        return {self.bar: replay_screen(recording), self.save: gr.Button(visible=visibility(savable))}


def savable(view: RunView) -> bool:
    """Whether a private set was kept; a set that is not private is for its owner only."""
    made = view.demo_set
    return view.ended and made is not None and bool(made.demonstrations) and made.certificate.private


def own_run(session: Session, ledger: PrivacyLedger) -> str:
    """The tab's last run as the text of a run file, with the disclosures that are known now.

    Raises:
        UsageError: there is no run, or it has not ended, has no demonstrations, or is not private.
    """
    recording, made = own_recording(session), session.of(GenerateState).made
    if not recording or made is None:
        raise UsageError("No run of this tab has ended with demonstrations: write some in step 3 first.")
    return to_lines(recording, ledger.rows.disclosures(made.data))


def own_recording(session: Session) -> Sequence[RunEvent]:
    """The events of the tab's last run; empty if there is none, or it has not ended or left no set."""
    state = session.of(GenerateState)
    recording = state.run_of_set.recording if state.run_of_set else []
    ended, made = recording[-1] if recording else None, state.made
    # A run that was stopped at once leaves the earlier run's set, which may come from other rows.
    if not isinstance(ended, ENDS) or made is None or ended.demo_set != made.demo_set:
        return []
    return recording


def loaded(upload: str) -> list[RunEvent]:
    return list(from_lines(text_of(upload, LARGEST, f"a {FORMAT} file")))


_TITLE = "Your own rows beside these demonstrations: for your eyes only, and the export will be marked"
_WHY = (
    "Three rows of each label, and the row nearest to each demonstration. None of it is stored. Once you have seen it, "
    "your later choices may depend on the data, and every later certificate says so."
)
_FICTIONAL = "These rows are fictional and come with this program: seeing them reveals nothing about anybody."
_LONGEST = 600
"""Characters of a row that are shown."""
_NO_SET = "There is nothing to compare yet: write demonstrations first."
_OTHER = "These demonstrations were written from another data set: choose it in step 1 to compare."


class OwnRows:
    """The card of original rows; `compared` fires when private rows were shown."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with gr.Column(elem_classes="card"):
            self.fictional = panel(elem_id="original-rows")
        with gr.Accordion(_TITLE, open=False, elem_classes="card private", elem_id="own-rows-card") as self.private:
            panel(el("p.muted", _WHY))
            self.show = gr.Button("Show my rows", size="sm", elem_id="own-rows-show")
            self.rows = panel(elem_id="own-rows-shown")
        self.outputs = [self.fictional, self.private, self.rows]
        self.compared = self.show.click(guarded(self.rows)(self._show), None, self.rows, **MODEL, **PRIVATE)

    def before(self, session: Session) -> dict[Any, Any]:
        """The components before a run: fictional rows need no button."""
        confirmed = session.of(DataState).confirmed
        private = confirmed is None or not is_fictional(confirmed.dataset)
        return {self.fictional: [], self.private: gr.Accordion(visible=visibility(private)), self.rows: []}

    def after(self, session: Session) -> dict[Any, Any]:
        """The components after a run: fictional rows are shown beside the demonstrations."""
        compared = _compared(session)
        shown = original_rows(*compared) if compared and is_fictional(compared[1]) else []
        return self.before(session) | {self.fictional: shown}

    def _show(self, request: gr.Request) -> Iterator[dict[Any, Any]]:
        session = self._app.session(request)
        if session.of(GenerateState).made is None:
            raise UsageError(_NO_SET)
        if (compared := _compared(session)) is None:
            raise UsageError(_OTHER)
        yield {self.rows: spinner("Embedding rows …")}
        shown = list[Tree]()
        for each in beside(*compared, self._app.embedder.embedder(), self._app.ledger(request)):
            nearest = (
                el(
                    "div.demo",
                    el("p", pair.text),
                    el("p.muted", f"Nearest row (cosine similarity {pair.similarity:.2f}): {_cut(pair.row)}"),
                )
                for pair in each.nearest
            )
            head = el("div.card-head", el("h3", each.label), private_tag())
            shown += [head, _listed(each.rows), *nearest]
            yield {self.rows: shown}


def _compared(session: Session) -> tuple[DemoSet, Dataset] | None:
    """The tab's set and its data; None if one of them is missing, or the set was written from other data."""
    made, confirmed = session.of(GenerateState).made, session.of(DataState).confirmed
    if made is None or confirmed is None or fingerprint(confirmed.dataset).content != made.data.content:
        return None
    return made.demo_set, confirmed.dataset


@functools.cache
def _bundled() -> frozenset[tuple[str, str]]:
    """Text and label of every row of the examples."""
    tables = ((each.mapping, read_table(each.path).frame) for each in EXAMPLES)
    return frozenset(row for of, frame in tables for row in zip(frame[of.text], frame[of.label], strict=True))


def is_fictional(dataset: Dataset) -> bool:
    """Whether every row of a data set is in a bundled example, with its label."""
    return all((each.text, each.label) in _bundled() for each in dataset.records)


def original_rows(made: DemoSet, dataset: Dataset) -> list[Tree]:
    """Some rows of each label beside its demonstrations; for fictional rows only, because no certificate is marked."""
    shown: list[Tree] = [el("h3", "Original beside synthetic"), el("p.muted", _FICTIONAL)]
    for label in made.labels:
        originals = [each for each in dataset.records if each.label == label]
        written = [each.text for each in made.demonstrations if each.label == label]
        if not originals or not written:
            continue
        sides = (
            ("Original rows (fictional)", [each.text for each in spread(originals, SHOWN)]),
            ("Synthetic", written),
        )
        pair = el("div.sides", *(el("div", el("p.small-head", title), _listed(texts)) for title, texts in sides))
        shown += [el("h4", label), pair]
    return shown


def _listed(texts: Iterable[str]) -> Tree:
    return el("ul.texts", *(el("li", _cut(each)) for each in texts))


def _cut(row: str) -> str:
    return row if len(row) <= _LONGEST else f"{row[:_LONGEST]}…"
