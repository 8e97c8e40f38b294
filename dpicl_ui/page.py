"""The page: header, the five steps with the budget beside them, what passes between them, and what programs may ask."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gradio as gr
from gradio.events import api

from dpicl_ui import export as export_step
from dpicl_ui.budget import step as budget_step
from dpicl_ui.budget.step import BudgetStep
from dpicl_ui.data import state as data_state
from dpicl_ui.data.step import DataStep
from dpicl_ui.export import ExportStep
from dpicl_ui.frame.guard import ACCOUNTING, MODEL, PRIVATE, Line, in_one_line
from dpicl_ui.frame.inputs import number, whole
from dpicl_ui.frame.model_loader import Choosable, EmbedderLoader, ModelLoader
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Ledgers, Sessions, forget_shown
from dpicl_ui.frame.step_bar import Place, StepBar
from dpicl_ui.frame.tree import Tree, el, notice, panel
from dpicl_ui.generate import state as generate_state
from dpicl_ui.generate.step import GenerateStep
from dpicl_ui.privacy import state as privacy_state
from dpicl_ui.privacy.model_choice import there
from dpicl_ui.privacy.step import PrivacyStep
from dpicl_ui.test import state as test_state
from dpicl_ui.test.step import EvaluationStep
from dpicl_ui.welcome import Welcome
from mechanisms import api as studio
from mechanisms.accounting import PrivacyTarget
from mechanisms.demos.demo_set import loads
from mechanisms.errors import UsageError
from mechanisms.evaluation.remote_reader import RemoteReader
from mechanisms.runs.defaults import MECHANISM
from mechanisms.sampling import SamplingPlan

# What programs may ask the server for: public text and public numbers in, what is releasable out.
#
# No row, ledger or page is behind these, and no file is read or written. A set is given as the text of its file.

LARGEST_SET = 2**20
"""Characters of a set."""


def add_endpoints(loader: ModelLoader) -> None:
    """Register them in the `gr.Blocks` that is being built; each takes its turn in the app's queue."""

    def classify(demos: str, texts: list[str]) -> list[dict[str, Any]]:
        """Labels of texts behind a demo set, each with its probabilities."""
        return studio.probabilities(loads(_set(demos)), loader.model(), studio.checked_texts(texts))

    api(_answering(classify), api_name="classify", **MODEL)
    api(_answering(check_certificate), api_name="check_certificate", **ACCOUNTING)
    api(_answering(calibrate), api_name="calibrate", **ACCOUNTING)


def check_certificate(demos: str) -> dict[str, Any]:
    """What the certificate of a demo set states, recomputed; `problems` names what does not fit."""
    return studio.certificate_check(_set(demos))


def calibrate(
    epsilon: float,
    delta: float,
    size: int,
    mechanism: str = MECHANISM,
    subsets: int = SamplingPlan.subsets,
    tokens: int = SamplingPlan.tokens,
    shots: int = SamplingPlan.shots,
) -> dict[str, Any]:
    """The least noise for a privacy target, for labels of a public size, with a row for each sampled record."""
    plan = SamplingPlan(subsets=whole("subsets", subsets), tokens=whole("tokens", tokens), shots=whole("shots", shots))
    target = PrivacyTarget(number("epsilon", epsilon), number("delta", delta))
    return studio.calibrate(target, whole("The size", size), str(mechanism), plan)


def _answering(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def answer(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            # Gradio would log the traceback, which may quote the request, and tell the program nothing.
            raise gr.Error(in_one_line(error), print_exception=False) from None

    return answer


def _set(demos: object) -> str:
    if not isinstance(demos, str) or len(demos) > LARGEST_SET:
        raise UsageError(f"Give the demo set as the text of its file, at most {LARGEST_SET} characters.")
    return demos


# The page: header, the five steps with the budget beside them, and what passes between them.

TITLE = "DP-ICL Studio"
PLACES = (
    Place("Data", data_state.gate),
    Place("Privacy", privacy_state.gate),
    Place("Generate", generate_state.gate),
    Place("Test", test_state.gate),
    Place("Export", export_step.gate),
    Place("Budget", budget_step.gate, sign="ε", opened="select"),
)
"""The steps in their order, and beside them the place that needs nothing."""
_OFTEN, _SELDOM = 1.0, 5.0
"""Seconds between two looks at the model."""
_CACHE_AGE = 600
"""Seconds after which Gradio's temporary folder is emptied of anything that a handler could not remove."""


def build(ledgers: Ledgers, loader: ModelLoader, elsewhere: RemoteReader | None = None) -> gr.Blocks:
    """The whole app; `loader` may still be at work. A reader `elsewhere` is offered in step 4, and nowhere else."""
    page = gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(_CACHE_AGE, _CACHE_AGE))

    def to_test(request: gr.Request) -> dict[str, Any]:
        return app.bar.value(app.session(request), 4)

    def forget(request: gr.Request) -> None:
        app.sessions.drop(request)
        ledgers.drop(request)
        forget_shown(page, request.session_hash or "")

    with page:
        status = _head(ledgers, loader)
        line, bar, embedder = Line(page), StepBar(PLACES), EmbedderLoader(loader)
        app = Services(Sessions(), ledgers, loader, embedder, bar)
        loader.free = line.free
        data = _first_step(app)
        privacy = PrivacyStep(app)
        generate = GenerateStep(app, privacy, line)
        test = EvaluationStep(app, elsewhere)
        export = ExportStep(app)
        BudgetStep(app)
        _foot(ledgers)
        privacy.follow(data.confirmed)
        generate.follow(data.confirmed)
        for ended in generate.ended:
            test.follow(ended)
            export.follow(ended)
        export.follow(generate.own_rows.compared)
        _tick(loader, status, privacy)
        generate.loads(data.source.load_run, data.source.notice)
        data.source.load_instead.click(to_test, None, bar.html, **PRIVATE)
        if ledgers.serves_programs:
            add_endpoints(loader)
        page.unload(forget)
    return _queued(page, status)


def _queued(page: gr.Blocks, target: gr.HTML) -> gr.Blocks:
    """The page with its queue, which reports the progress of every handler to one component.

    Nothing shows it. Otherwise Gradio writes it, with each update of any handler, into all components that handlers
    ever changed, and for each of them searches the tree of the whole page. `target` is found first.
    """
    for handler in page.fns.values():
        handler.show_progress_on = [target]
    page.queue(api_open=False, max_size=32)
    return page


def _first_step(app: Services) -> DataStep:
    with app.bar.panel(1):
        welcome = Welcome(app)
        data = DataStep(app)
    welcome.wire(data)
    return data


def _head(ledgers: Ledgers, loader: ModelLoader) -> gr.HTML:
    with gr.Row(elem_classes="masthead"):
        panel(
            el(
                "div.brand",
                el("h1", TITLE),
                el("span", "Examples for a language model, without the people in them"),
            ),
        )
        status = panel(*model_status(loader), elem_id="model-status")
    if ledgers.warning:
        panel(*notice(ledgers.warning, "warn"), elem_id="whose-ledger")
    return status


def _foot(ledgers: Ledgers) -> None:
    panel(
        el(
            "div.footing",
            el("span.meaning", el("span.tag.private", "Only on your screen"), " is private and goes nowhere else."),
            el("span.meaning", el("span.tag.public", "Releasable"), " may be shown to anyone."),
            el("span.whose", ledgers.footing),
        ),
        elem_id="footing",
    )
    if ledgers.signed_in:
        gr.Button("Sign out", link="/logout", link_target="_self", size="sm", elem_id="sign-out")


def _tick(loader: ModelLoader, status: gr.HTML, privacy: PrivacyStep) -> None:
    """Look how far the model is: every second while one is loading, and seldom where another may take its place."""
    clock, last = gr.Timer(_OFTEN), gr.State(None)

    def tick(request: gr.Request, seen: Any) -> Any:
        now = [model_status(loader), there(loader)]
        shown = [gr.skip(), gr.skip()] if now == seen else now
        settled, locked = loader.settled, loader.choosable is Choosable.NONE
        then = gr.Timer(_SELDOM if settled else _OFTEN, active=not (settled and locked))
        return *shown, then, privacy.timed(request), now

    clock.tick(tick, last, [status, privacy.models.there, clock, privacy.outcome, last], queue=False, **PRIVATE)


def model_status(loader: ModelLoader) -> list[Tree]:
    """One line on the model."""
    if loader.problem:
        return [el("p.status.bad", loader.problem, role="status")]
    if loader.ready:
        return [el("p.status.good", "Model ready", el("span", loader.title), role="status")]
    return [el("p.status.busy", "Model loading …", role="status")]
