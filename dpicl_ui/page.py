"""The page: header, the five steps with the places beside them, and what passes between them."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.ask import state as ask_state
from dpicl_ui.ask.step import AskStep
from dpicl_ui.budget import step as budget_step
from dpicl_ui.budget.step import BudgetStep
from dpicl_ui.data import state as data_state
from dpicl_ui.data.step import DataStep
from dpicl_ui.export import step as export_step
from dpicl_ui.export.step import ExportStep
from dpicl_ui.frame.choosable import Choosable
from dpicl_ui.frame.embedder_loader import EmbedderLoader
from dpicl_ui.frame.endpoints import add_endpoints
from dpicl_ui.frame.guard import PRIVATE
from dpicl_ui.frame.ledgers import Ledgers
from dpicl_ui.frame.line import Line
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Sessions
from dpicl_ui.frame.shown import forget_shown
from dpicl_ui.frame.step_bar import Place, StepBar
from dpicl_ui.frame.tree import Tree, el, notice, panel
from dpicl_ui.generate import state as generate_state
from dpicl_ui.generate.step import GenerateStep
from dpicl_ui.privacy import state as privacy_state
from dpicl_ui.privacy.model_cards import there
from dpicl_ui.privacy.step import PrivacyStep
from dpicl_ui.test import state as test_state
from dpicl_ui.test.step import EvaluationStep
from mechanisms.evaluation.remote_reader import RemoteReader

TITLE = "DP-ICL Studio"
PLACES = (
    Place("Data", data_state.gate),
    Place("Privacy", privacy_state.gate),
    Place("Generate", generate_state.gate),
    Place("Test", test_state.gate),
    Place("Export", export_step.gate),
    Place("Ask privately", ask_state.gate, sign="?", opened="expand"),
    Place("Budget", budget_step.gate, sign="ε", opened="select"),
)
"""The steps in their order, and beside them a place that needs the data of step 1 alone, and one that needs nothing."""
_OFTEN, _SELDOM = 1.0, 5.0
"""Seconds between two looks at the model."""
_CACHE_AGE = 600
"""Seconds after which Gradio's temporary folder is emptied of anything that a handler could not remove."""


def build(ledgers: Ledgers, loader: ModelLoader, elsewhere: RemoteReader | None = None) -> gr.Blocks:
    """The whole app; `loader` may still be at work. A reader `elsewhere` is offered in step 4, and nowhere else."""
    sessions, embedder = Sessions(), EmbedderLoader(loader)
    page = gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(_CACHE_AGE, _CACHE_AGE))

    def to_test(request: gr.Request) -> dict[str, Any]:
        return bar.value(sessions.of(request), 4)

    def forget(request: gr.Request) -> None:
        sessions.drop(request)
        ledgers.drop(request)
        forget_shown(page, request.session_hash or "")

    with page:
        status = _head(ledgers, loader)
        bar, line = StepBar(PLACES), Line(page)
        loader.free = line.free
        data = DataStep(sessions, ledgers, loader, bar)
        privacy = PrivacyStep(sessions, ledgers, loader, bar)
        generate = GenerateStep(sessions, ledgers, loader, embedder, bar, privacy, line)
        test = EvaluationStep(sessions, ledgers, loader, embedder, bar, elsewhere)
        export = ExportStep(sessions, ledgers, bar)
        AskStep(sessions, ledgers, loader, embedder, bar, data)
        BudgetStep(sessions, ledgers, bar)
        _foot(ledgers)
        privacy.follow(data.confirmed)
        generate.follow(data.confirmed)
        for ended in generate.ended:
            test.follow(ended)
            export.follow(ended)
        export.follow(test.attacked)
        _tick(loader, status, privacy)
        generate.loads(data.source.load_run, data.source.notice)
        data.source.load_instead.click(to_test, None, bar.html, **PRIVATE)
        if ledgers.serves_programs:
            add_endpoints(loader)
        page.unload(forget)
    page.queue(api_open=False, max_size=32)
    return page


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
