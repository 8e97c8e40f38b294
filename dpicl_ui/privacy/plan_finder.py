"""Step 2's search for the sampling with the most signal for a privacy target and a run's duration."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr
import plotly.graph_objects as go

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.job import Passing, Updates, paced
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.theme import BLUE, GREY, axis, chart, laid_out
from dpicl_ui.frame.tree import Tree, el, notice, panel, spinner
from dpicl_ui.privacy.cards import duration
from dpicl_ui.privacy.form import PrivacyForm
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import PrivacyTarget
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.records import Dataset
from mechanisms.runs.forecast import ModelSpeed, positions
from mechanisms.runs.planner import Option, Task, cost, options, ranked
from mechanisms.runs.recipe_forecast import predicted_seconds
from mechanisms.sampling import SamplingPlan, Scheme

# What the planner has found: the curve of signal against cost, and the options in words.

_COLOURS = {Scheme.PER_DEMONSTRATION: BLUE, Scheme.PER_TOKEN: "#b56fc4", Scheme.DISJOINT: GREY}
_WORDS = {
    Scheme.PER_DEMONSTRATION: "one sample a demonstration",
    Scheme.PER_TOKEN: "a new sample every token",
    Scheme.DISJOINT: "batches without overlap",
}
_HOVER = "%{text}<br>signal-to-noise %{y:.3g}<br>%{x:.3s} prompt tokens<extra></extra>"
_LOGARITHMIC = {"type": "log", "dtick": "D2", "exponentformat": "SI"}


def plan_in_words(plan: SamplingPlan) -> str:
    """A plan's sampling in a few words, without M."""
    rows = "one record a row" if plan.unit_rows else f"subsets of {plan.per_subset}"
    return f"{_WORDS[plan.scheme]}, {rows}"


def option_in_words(option: Option, time: str) -> str:
    """An option in one line, with its predicted duration."""
    signal, plan = option.signal_to_noise, option.plan
    return f"Signal-to-noise {signal:.3g}: M = {plan.subsets}, {plan_in_words(plan)} ({time})"


def plan_figure(found: Sequence[Option], now: tuple[float, float] | None) -> go.Figure:
    """Signal-to-noise by cost of every option, the efficient ones joined.

    Args:
        found: options, marked by `ranked`.
        now: cost and signal-to-noise of the current settings, where they are known.
    """
    figure = go.Figure()
    curve = sorted((each for each in found if each.efficient), key=lambda each: each.cost)
    line = {"color": GREY, "width": 1.5}
    _add(figure, _places(curve), "most signal for its cost", mode="lines", line=line, hoverinfo="skip")
    for scheme in (Scheme.PER_DEMONSTRATION, Scheme.PER_TOKEN):
        for unit_rows in (True, False):
            kind = [each for each in found if (each.plan.scheme, each.plan.unit_rows) == (scheme, unit_rows)]
            if kind:
                shape = "circle" if unit_rows else "square"
                symbols = [shape if each.efficient else f"{shape}-open" for each in kind]
                marker = {"color": _COLOURS[scheme], "symbol": symbols, "size": 11, "line": {"width": 1.5}}
                names = [f"M = {each.plan.subsets}" for each in kind]
                _add(
                    figure,
                    _places(kind),
                    plan_in_words(kind[0].plan),
                    mode="markers",
                    marker=marker,
                    text=names,
                    hovertemplate=_HOVER,
                )
    if now is not None:
        marker = {"color": GREY, "symbol": "x", "size": 11}
        _add(figure, [now], "the settings now", mode="markers", marker=marker, text=["now"], hovertemplate=_HOVER)
    x, y = axis("prompt tokens a demonstration", **_LOGARITHMIC), axis("signal-to-noise", **_LOGARITHMIC)
    return laid_out(figure, 400, x, y, legend=-0.25)


def _places(found: Sequence[Option]) -> list[tuple[float, float]]:
    return [(float(f"{each.cost:.4g}"), float(f"{each.signal_to_noise:.4g}")) for each in found]


def _add(figure: go.Figure, places: Sequence[tuple[float, float]], name: str, **look: Any) -> None:
    costs, signals = [each[0] for each in places], [each[1] for each in places]
    figure.add_trace(go.Scatter(x=costs, y=signals, name=name, **look))


# The search.

_POINTS = 3
"""How many M are tried for each scheme."""
_MOST = 6
"""Options to choose from; the curve shows all."""


@dataclass(frozen=True)
class Search:
    """What is looked for; public.

    Attributes:
        form: the settings as they were; scheme, rows and M are what is looked for.
        task: the run in the planner's words.
        budget: prompt tokens through the model for one demonstration.
        measured: the sizes, where they were measured.
    """

    form: PrivacyForm
    task: Task
    budget: float
    measured: MeasuredSizes | None = None

    @property
    def target(self) -> PrivacyTarget:
        """What the run may cost, less what measuring the sizes has cost."""
        return PrivacyTarget(self.form.epsilon_left(self.measured), self.form.delta)

    def options(self) -> Iterator[Option]:
        """Options as they are calibrated, a second or two each."""
        return options(self.form.chosen_mechanism(), self.task, self.target, self.budget, _POINTS)

    def seconds(self, option: Option, dataset: Dataset, speed: ModelSpeed) -> float:
        """Predicted duration of the whole run."""
        return predicted_seconds(with_plan(self.form, option).spec(dataset, self.measured).writing(dataset), speed)


def search(
    form: PrivacyForm, dataset: Dataset, speed: ModelSpeed, seconds: float, measured: MeasuredSizes | None = None
) -> Search:
    """The search that fits the settings and the data set, for a duration of the whole run.

    All labels are taken to be as small as the smallest. A user may have rows of every label, which then compose as if
    they were more demonstrations of one.

    Raises:
        UsageError: a value is out of range, or the duration is too short for any plan.
    """
    per_subset = 1 if form.unit_rows else form.per_subset
    # The prompt's length is what one row of the run takes; every mechanism has the same, but not all take subsets.
    one_row = replace(
        form,
        mechanism="gaussian",
        scheme=Scheme.PER_DEMONSTRATION.value,
        unit_rows=False,
        per_subset=per_subset,
        subsets=1,
        shots=1,
        best_of=1,
    ).spec(dataset, measured)
    asked = one_row.writing(dataset)
    length = positions(asked)[0] // len(dataset.labels)
    written = form.shots * form.best_of
    shots = written * (len(dataset.labels) if dataset.by_user else 1)
    task = Task(min(asked.sizes.values()), form.tokens, length, per_subset, shots)
    demonstrations = len(dataset.labels) * written
    without_rows = 2 * form.tokens * speed.step
    if seconds <= demonstrations * without_rows:
        least = duration(demonstrations * without_rows)
        raise UsageError(f"Without any private row the model already takes {least}: allow more time.")
    # A decoded token may take longer than a prompt's; the planner counts both alike, so the slower mean is taken.
    mean = (length * speed.position + form.tokens * speed.row) / (length + form.tokens)
    return Search(form, task, (seconds / demonstrations - without_rows) / max(speed.position, mean), measured)


def with_plan(form: PrivacyForm, option: Option) -> PrivacyForm:
    """The settings with an option's sampling."""
    plan = option.plan
    return replace(form, scheme=plan.scheme.value, unit_rows=plan.unit_rows, subsets=plan.subsets)


class PlanFinder:
    """Components and handlers of the search. `chosen` fires when the form has taken over a plan."""

    def __init__(self, app: Services, scheme: gr.Radio, unit_rows: gr.Radio, subsets: gr.Slider) -> None:
        self._app = app
        self._scheme, self._unit_rows, self._subsets = scheme, unit_rows, subsets
        panel(
            el(
                "p.muted",
                "Tries ways to sample records, and how many, for the mechanism and the epsilon chosen here, and shows "
                "which give the clearest tokens within the time. Nothing private is used and nothing is spent.",
            )
        )
        self.seconds = gr.Slider(
            10, 1800, 120, step=10, label="Time for the whole run, at most (seconds)", elem_id="plan-seconds"
        )
        self.find = gr.Button("Find the best plan", elem_id="find-plan")
        self.notice = panel(elem_id="plan-notice")
        self.plot = chart("plan-curve")
        self.choice = gr.Radio([], label="The most signal for its cost, best first", visible=False, elem_id="plans")
        self.use = gr.Button("Use this plan", variant="primary", visible=False, elem_id="use-plan")

    def wire(self, form: list[Any]) -> None:
        """Connect to all inputs of the form."""
        taken_over = [self.notice, self._scheme, self._unit_rows, self._subsets]
        self.find.click(
            guarded(self.notice, self._ready)(self._find),
            [self.seconds, *form],
            [self.find, self.notice, self.plot, self.choice, self.use],
            concurrency_limit=1,
            concurrency_id="plan",
            **PRIVATE,
        )
        self.chosen = self.use.click(guarded(self.notice)(self._use), self.choice, taken_over, **PRIVATE)

    def forgotten(self) -> dict[Any, Any]:
        """The components without anything found."""
        hidden = {each: type(each)(visible=False) for each in (self.choice, self.use)}
        return {self.notice: [], self.plot: None, **hidden}

    def _ready(self) -> dict[Any, Any]:
        return {self.find: gr.Button(interactive=True)}

    def _find(self, request: gr.Request, seconds: float, *form: Any) -> Iterator[dict[Any, Any]]:
        session = self._app.session(request)
        confirmed, state = session.of(DataState).confirmed, session.of(PrivacyState)
        if confirmed is None:
            raise UsageError("Choose a data set in step 1 first.")
        dataset, speed = confirmed.dataset, self._speed()
        looked = search(PrivacyForm.read(*form), dataset, speed, float(seconds), confirmed.measured)
        state.offer(confirmed, ())
        now = _now(state, looked)
        yield self.forgotten() | {self.notice: _trying(0), self.find: gr.Button(interactive=False)}
        found: list[Option] = []
        yield from paced(self._trials(looked, found, now))
        if not found:
            raise UsageError("No plan fits: allow more time, a larger epsilon or fewer tokens.")
        plans = tuple(each for each in ranked(found) if each.efficient)[:_MOST]
        if not state.offer(confirmed, plans):
            return
        times = (duration(looked.seconds(each, dataset, speed)) for each in plans)
        lines = [option_in_words(each, time) for each, time in zip(plans, times, strict=True)]
        choices = [(line, number) for number, line in enumerate(lines)]
        yield {
            self.notice: notice(_found(looked), "info"),
            self.plot: plan_figure(ranked(found), now),
            self.choice: gr.Radio(choices=choices, value=0, visible=True),
            self.use: gr.Button(visible=True),
        }

    def _trials(
        self, looked: Search, found: list[Option], now: tuple[float, float] | None
    ) -> Generator[Updates | Passing]:
        """Add to `found` what the search finds, and show it so far."""
        for option in looked.options():
            found.append(option)
            yield Passing(lambda: {self.notice: _trying(len(found)), self.plot: plan_figure(ranked(found), now)})

    def _speed(self) -> ModelSpeed:
        if self._app.loader.speed is not None:
            return self._app.loader.speed
        if self._app.loader.settled:
            raise ModelUnavailable(self._app.loader.problem or "The model is not available, so its speed is unknown.")
        raise ModelUnavailable("The model's speed is not known yet: wait until it is loaded (top of the page).")

    def _use(self, number: int | None, request: gr.Request) -> dict[Any, Any]:
        plans = self._app.session(request).of(PrivacyState).found
        if number is None or not 0 <= number < len(plans):
            raise UsageError("Find a plan first.")
        plan = plans[number].plan
        lowest, highest = min(4, plan.subsets), max(400, plan.subsets)
        return {
            self.notice: notice("The plan is in the settings.", "good"),
            self._scheme: plan.scheme.value,
            self._unit_rows: plan.unit_rows,
            self._subsets: gr.Slider(minimum=lowest, maximum=highest, value=plan.subsets),
        }


def _trying(count: int) -> list[Tree]:
    tried = f" {count} tried." if count else ""
    return spinner(f"Calibrating one plan after another …{tried}")


def _found(looked: Search) -> str:
    form = looked.form
    written = form.shots * form.best_of
    many = f", {written} demonstrations for each label" if written > 1 else ""
    return f"Found for epsilon {form.epsilon:g}, delta {form.delta:.2g} and {form.tokens} tokens{many}."


def _now(state: PrivacyState, looked: Search) -> tuple[float, float] | None:
    """Cost and signal-to-noise of the current settings, where they are calibrated."""
    planned = state.planned
    if planned is None or planned.form != looked.form:
        return None
    if planned.request.stages or (written := planned.request.written) is None:
        return None
    return cost(written.plan, looked.task, looked.form.delta), written.signal_to_noise
