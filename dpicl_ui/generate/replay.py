"""Replay: a recorded run step by step, and run files to save and load."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import gradio as gr

from dpicl_ui.frame.inputs import sink, text_of
from dpicl_ui.frame.services import Session
from dpicl_ui.frame.tree import drawn, seen
from dpicl_ui.generate.cards import other_releases, score_of_run
from dpicl_ui.generate.charts import (
    live,
    openings_card,
    picture_card,
    stages_card,
    visible,
    vote_card,
    writes,
)
from dpicl_ui.generate.state import GenerateState
from mechanisms.accounting import PrivacyLedger
from mechanisms.errors import UsageError
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
from mechanisms.runs.stages import stages_by_place
from mechanisms.runs.view import RunView, fold, one_by_one

# The view after recorded events, and at every place of a replay.


def replayed(events: Iterable[RunEvent]) -> RunView:
    """The view after recorded events."""
    last = deque(_one_after_the_other(events), maxlen=1)
    return last[0][1] if last else RunView()


def looked_back(events: Iterable[RunEvent]) -> Iterator[tuple[RunEvent, RunView]]:
    """Each place of a replay with its view: every token, every release, the end."""
    moments = TokenReleased | Release | RunCompleted | RunStopped
    yield from ((event, view) for event, view in _one_after_the_other(events) if isinstance(event, moments))


def _one_after_the_other(events: Iterable[RunEvent]) -> Iterator[tuple[RunEvent, RunView]]:
    """Every event and the view after it, one demonstration at a time: a file may begin any number and finish none."""
    view = RunView()
    for event in one_by_one(events):
        if isinstance(event, DemoStarted):  # the one before may have been cut off
            view = replace(view, writing=())
        view = fold(view, event)
        yield event, view


# A recorded run as plain JSON values, drawn by `assets/replay.js` on the screens of step 3, step by step.

MOST_PLACES, MOST_CHARACTERS = 2000, 16 * 2**20
"""Limit of what a browser gets at once; a longer recording is cut there, and complete in its file."""
_SILENT = "■"
"""The clickable mark of a token that adds nothing to the text, such as the end token."""


def screens(view: RunView) -> dict[str, Any]:
    """The value of each of step 3's screens, by its id on the page."""
    return {
        "run-stages": stages_card(view),
        "openings": openings_card(view),
        "live": live(view) if writes(view) else None,
        "votes": vote_card(view),
        "picture": picture_card(view),
        "own-score": [*score_of_run(view), *other_releases(view)],
    }


def replay_screen(recording: Sequence[RunEvent]) -> dict[str, Any] | None:
    """All values that a replay draws; None where there is nothing to replay.

    Returns:
        parts: by screen, its values in the order in which they are shown, each once. Where demonstrations are written
            the live screen's have `tokens`, a position in `texts`.
        frames: one a place: name, stage (its title), and `at`, by screen, a position in its parts.
        texts: each demonstration that is written as pieces of text, with the place of the token that released it (None
            for its opening), what the token is called, and whether it was free.
        cut: whether the recording has more places.
    """
    parts: dict[str, list[Any]] = {}
    frames: list[dict[str, Any]] = []
    openings: list[str] = []
    tokens: dict[tuple[str, int], list[tuple[int, TokenReleased]]] = {}
    left, cut, known = MOST_CHARACTERS, False, stages_by_place()
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
            which = f", number {number}" if view.plan and view.plan.sampling.shots > 1 else ""
            return f"{label}{which}, token {step}"
        case Release():
            return str(stages_by_place()[view.stage].title)
    return "The end"


def _pieces(opening: str, released: Sequence[tuple[int, TokenReleased]]) -> list[dict[str, Any]]:
    """A demonstration's last text, divided where its tokens ended; what it begins with is no token's.

    A token that is a part of a character changes text that was there: what is common with the last text counts.
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


# Looking back: the controls of a replay, and runs as files.

FILE_NAME = "run.dpicl.jsonl"


class Replay:
    """Components: `bar` moves the screens in the browser alone. Nothing is seen of them before there is a run."""

    def __init__(self) -> None:
        self.bar = drawn("replay.js", None, elem_id="replay")
        with gr.Row(elem_classes="actions"):
            self.save = gr.Button("Save this run", size="sm", visible=seen(False), elem_id="save-run")
        self.sink = sink()

    def under_way(self) -> dict[Any, Any]:
        return {self.bar: None, self.save: gr.Button(visible=seen(False))}

    def ended(self, recording: Sequence[RunEvent], savable: bool) -> dict[Any, Any]:
        """The components with a run to replay; `savable` for a finished run of this tab."""
        return {self.bar: replay_screen(recording), self.save: gr.Button(visible=seen(savable))}


def savable(view: RunView) -> bool:
    """Whether a set was kept and is private; one that is not private is for its curator only."""
    made = view.demo_set
    return view.ended and made is not None and bool(made.demonstrations) and made.certificate.private


def own_run(session: Session, ledger: PrivacyLedger) -> str:
    """The tab's last run as the text of a run file, with the marks that are known by now.

    Raises:
        UsageError: there is none, it has not ended, has left nothing, or is not private.
    """
    recording, made = own_recording(session), session.of(GenerateState).made
    if not recording or made is None:
        raise UsageError("No run of this tab has ended with demonstrations: write some in step 3 first.")
    return to_lines(recording, ledger.rows.disclosures(made.of))


def own_recording(session: Session) -> Sequence[RunEvent]:
    """The tab's last run; empty where there is none, or it has not ended or left nothing."""
    state = session.of(GenerateState)
    recording = state.written.recording if state.written else []
    ended, made = recording[-1] if recording else None, state.made
    # A run that was stopped at once leaves the set of the one before, whose rows may be others.
    if not isinstance(ended, ENDS) or made is None or ended.demo_set != made.demo_set:
        return []
    return recording


def loaded(upload: str) -> list[RunEvent]:
    return list(from_lines(text_of(upload, LARGEST, f"a {FORMAT} file")))
