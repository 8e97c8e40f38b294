"""Finished runs side by side: this tab's, and those of run files; each column says no more than a run file holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr
import plotly.graph_objects as go

from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.inputs import taken
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session, State
from dpicl_ui.frame.theme import BLUE, ORANGE, TEAL, axis, chart, laid_out
from dpicl_ui.frame.tree import Tree, el, fact, notice, panel, spinner
from dpicl_ui.generate.cards import NOT_HELD_OUT, demonstration, of_hundred
from dpicl_ui.generate.replay import own_run, text_in
from mechanisms import confidence
from mechanisms.accounting import cost_in_words
from mechanisms.accounting.account import in_words
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import ZERO_SHOT, ArmScore
from mechanisms.errors import StudioError, UsageError
from mechanisms.exports.provenance import mechanism_in_words
from mechanisms.records import unit_in_words
from mechanisms.rounding import rounded_up
from mechanisms.runs.run_file import Summary, from_lines, summarised

# What epsilon has bought: the private scores of several runs over their epsilons.

_COLOURS = (TEAL, ORANGE, BLUE, "#a05fb4")
_HOVER = "%{text}: epsilon %{x:.3g}, %{y:.0%}<extra></extra>"


def score_figure(runs: Mapping[str, Summary]) -> go.Figure | None:
    """Each run's score with its interval; None where fewer than two have one to speak of.

    Args:
        runs: by the letter of their column; nothing that a file says stands in the figure but its numbers.
    """
    scored = [
        (letter, run.made.certificate.claim.epsilon, run.score)
        for letter, run in runs.items()
        if run.score is not None and not run.score.wide
    ]
    if len(scored) < 2:
        return None
    figure = go.Figure([_trace(*each, place) for place, each in enumerate(scored)])
    title = f"private score, {confidence.percent()} interval"
    x, y = axis("epsilon", rangemode="tozero"), axis(title, range=[-0.02, 1.02], tickformat=".0%")
    return laid_out(figure, 320, x, y)


def _trace(letter: str, epsilon: float, score: ArmScore, place: int) -> go.Scatter:
    """One run; at the same epsilon two intervals are told apart by their colours and by the width of their ends."""
    low, high = score.interval
    return go.Scatter(
        x=[epsilon],
        y=[score.accuracy],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [high - score.accuracy],
            "arrayminus": [score.accuracy - low],
            "thickness": 2,
            "width": 5 * (place + 1),
        },
        text=[letter],
        textposition="middle right" if place % 2 == 0 else "middle left",
        mode="markers+text",
        marker={"color": _COLOURS[place % len(_COLOURS)], "size": 11},
        hovertemplate=_HOVER,
    )


# A run as one of several columns: the same lines in the same order, so that an eye can go across.

SHOWN = 50
"""Demonstrations of a column; a replay in step 3 has them all."""
_TIME = 16
"""Characters of a time, to the minute."""
_CHARGED, _CHARGED_AT_MOST = "What was charged", "What was charged at most"
"""A stopped run's certificate claims all of it; the ledger may have counted less."""
_MARKED = "Marked: more is known of its rows than is counted here ({marks})."


@dataclass(frozen=True)
class Named:
    """A run, and what its column is called: a file's name, which anybody may have chosen."""

    name: str
    run: Summary


def column(letter: str, named: Named) -> list[Tree]:
    """Everything that a column says, under the letter that the figure knows it by."""
    run, held = named.run, named.run.made.certificate
    score = run.made.score
    return [
        el("h3", f"{letter}. ", el("span", named.name)),
        el("p.muted", f"{run.made.created[:_TIME].replace('T', ' ')} UTC{'; stopped' if run.stopped else ''}"),
        *notice(_MARKED.format(marks="; ".join(held.disclosures)) if held.disclosures else "", "warn"),
        el(
            "dl.facts",
            fact("Epsilon", rounded_up(held.claim.epsilon, 4), f"at delta {rounded_up(held.claim.delta, 2)}"),
            fact("Protects", unit_in_words(held.unit)),
            fact("Made by", mechanism_in_words(held), ", ".join(each.name for each in run.made.stages)),
            fact("Model", run.made.model_id),
            *_noise(run),
            fact("Private score", *_score(run)),
            fact("Spent before it", cost_in_words(*held.spent_before) if held.spent_before[0] else "nothing"),
        ),
        el(
            "details",
            el("summary", _CHARGED_AT_MOST if run.stopped else _CHARGED),
            el("p.remark", in_words(held.event)),
        ),
        *notice(NOT_HELD_OUT if score is not None and not score.held_out else "", "warn"),
        *_demonstrations(run.made),
    ]


def _noise(run: Summary) -> list[Tree]:
    signal = "no token asks the rows" if run.signal_to_noise is None else f"{run.signal_to_noise:.3g}"
    facts = [fact("Signal-to-noise of a token", signal)]
    if run.votes_noise is not None:
        facts.append(fact("Noise on a draft's votes", f"± {run.votes_noise:.2g}"))
    return facts


def _score(run: Summary) -> tuple[str, str]:
    """The score of what is exported, and beside it that of no demonstrations."""
    if run.score is None or run.made.score is None:
        return "not measured", ""
    if run.score.wide:
        return "too few rows", ""
    plain = run.made.score.arms.get(ZERO_SHOT)
    beside = plain is not None and plain is not run.score and not plain.wide
    return f"{of_hundred(run.score)} of 100", f"zero-shot: {of_hundred(plain)}" if plain is not None and beside else ""


def _demonstrations(made: DemoSet) -> list[Tree]:
    count = len(made.demonstrations)
    if not count:
        return [el("p.muted", "No demonstrations.")]
    more = [el("p.muted", f"{count - SHOWN} more are in the file.")] if count > SHOWN else []
    return [el("div.demos", *(demonstration(each, made) for each in made.demonstrations[:SHOWN])), *more]


# The comparison on the page.

LETTERS = "ABCD"
"""Of the columns, as many as there are."""
_OWN = "This tab's run"
_WHAT = (
    "Up to four runs, as they were released: this tab's last one, and run files (“Save this run” in step 3). Each "
    "epsilon is the run's own; runs on the same rows add up, and scores compare only on the same rows. Files are not "
    "signed: what they say of noisy values is on trust."
)
_FULL = f"{len(LETTERS)} runs stand here: remove one first."


class CompareState(State):
    """The runs that stand side by side in a tab."""

    def __init__(self, session: Session) -> None:
        self.runs: tuple[Named, ...] = ()

    def room(self) -> None:
        """There is a column left.

        Raises:
            UsageError: there is none.
        """
        if len(self.runs) >= len(LETTERS):
            raise UsageError(_FULL)

    def add(self, name: str, text: str) -> None:
        """One more run, out of the text of a run file.

        Raises:
            UsageError: it is none, it stands here already, or there is no room.
        """
        run = summarised(from_lines(text))
        self.room()
        if run in [each.run for each in self.runs]:
            raise UsageError("This run stands here already.")
        self.runs = (*self.runs, Named(name, run))

    def remove(self, place: int) -> None:
        """One less; those behind it move up."""
        self.runs = self.runs[:place] + self.runs[place + 1 :]


class Comparison:
    """Components and handlers of "Compare runs", a fold."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with gr.Accordion("Compare runs", open=False, elem_classes="card", elem_id="compare"):
            panel(el("p.muted", _WHAT))
            with gr.Row(elem_classes="actions"):
                self.load = gr.UploadButton("Load run files", file_count="multiple", size="sm", elem_id="compare-load")
                self.own = gr.Button("Add this tab's run", size="sm", elem_id="compare-own")
            self.notice = panel(elem_id="compare-notice")
            with gr.Row(elem_classes="side-by-side"):
                self._build_columns()
            self.plot = chart("compare-scores")
        self._wire()

    def _build_columns(self) -> None:
        self._places, self._panels, self._removers = list[gr.Column](), list[gr.HTML](), list[gr.Button]()
        for letter in LETTERS:
            with gr.Column(visible=False, min_width=0, elem_classes="arm", elem_id=f"compare-{letter}") as place:
                self._places.append(place)
                self._panels.append(panel())
                self._removers.append(gr.Button(f"Remove {letter}", size="sm"))

    def _wire(self) -> None:
        shown = [*self._places, *self._panels, self.plot, self.notice]
        guard = guarded(self.notice)
        self.load.upload(guard(self._load), self.load, [*shown, self.load], **PRIVATE)
        self.own.click(guard(self._add_own), None, shown, **PRIVATE)
        for place, button in enumerate(self._removers):
            button.click(guard(self._remover(place)), None, shown, **PRIVATE)

    def _state(self, request: gr.Request) -> CompareState:
        return self._app.session(request).of(CompareState)

    def _load(self, uploads: list[str] | None, request: gr.Request) -> Iterator[dict[Any, Any]]:
        """Each file that holds a run gets a column, each other one a line that says why not."""
        yield {self.load: None, self.notice: spinner("Reading the runs …")}
        state, refused = self._state(request), list[Tree]()
        for upload in uploads or []:
            try:
                _add(state, upload)
            except StudioError as error:
                refused += notice(f"{Path(upload).name}: {error}")
        yield self._shown(state) | {self.notice: refused}

    def _add_own(self, request: gr.Request) -> dict[Any, Any]:
        state = self._state(request)
        state.add(_OWN, own_run(self._app.session(request), self._app.ledger(request)))
        return self._shown(state)

    def _remover(self, place: int) -> Any:
        def remove(request: gr.Request) -> dict[Any, Any]:
            state = self._state(request)
            state.remove(place)
            return self._shown(state)

        return remove

    def _shown(self, state: CompareState) -> dict[Any, Any]:
        found = dict(zip(LETTERS, state.runs, strict=False))
        shown: dict[Any, Any] = {self.notice: []}
        for letter, place, words in zip(LETTERS, self._places, self._panels, strict=True):
            shown[place] = gr.Column(visible=letter in found)
            shown[words] = column(letter, found[letter]) if letter in found else []
        return shown | {self.plot: score_figure({letter: each.run for letter, each in found.items()})}


def _add(state: CompareState, upload: str) -> None:
    with taken(upload) as path:
        state.room()  # before a file is read for nothing
        state.add(path.name, text_in(path))
