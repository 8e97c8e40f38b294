"""The page: the header, the five steps, the budget panel beside them, and the events that connect them."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui import export as export_step
from dpicl_ui.budget import BudgetPanel
from dpicl_ui.data import state as data_state
from dpicl_ui.data.step import DataStep
from dpicl_ui.evaluation import state as evaluation_state
from dpicl_ui.evaluation.step import EvaluationStep
from dpicl_ui.export import ExportStep
from dpicl_ui.frame.handlers import PRIVATE
from dpicl_ui.frame.internals import forget_shown, progress_on
from dpicl_ui.frame.model_loader import EmbedderLoader, ModelLoader
from dpicl_ui.frame.services import BarItem, Ledgers, Services, Sessions, StepBar
from dpicl_ui.frame.tree import Tree, el, notice, panel
from dpicl_ui.generate import state as generate_state
from dpicl_ui.generate.step import GenerateStep
from dpicl_ui.privacy import state as privacy_state
from dpicl_ui.privacy.step import PrivacyStep
from dpicl_ui.welcome import Welcome

TITLE = "DP-ICL Studio"
BAR = (
    BarItem("Data", data_state.status, opened="focus", left="blur"),
    BarItem("Privacy", privacy_state.status),
    BarItem("Generate", generate_state.status),
    BarItem("Test", evaluation_state.status),
    BarItem("Export", export_step.status),
    BarItem("Budget", sign="ε", opened="select"),
)
"""The steps in order, and the budget panel beside them."""
_OFTEN, _SELDOM = 1.0, 5.0
"""Seconds between two polls of the model: while it is loading, and afterwards."""
_CACHE_AGE = 600
"""Seconds after which Gradio deletes temporary files that a handler could not remove."""


def build(ledgers: Ledgers, loader: ModelLoader) -> gr.Blocks:
    """The whole page; `loader` may still be loading the model."""
    page = gr.Blocks(title=TITLE, analytics_enabled=False, delete_cache=(_CACHE_AGE, _CACHE_AGE))

    def forget(request: gr.Request) -> None:
        app.sessions.drop(request)
        ledgers.drop(request)
        forget_shown(page, request.session_hash or "")

    with page:
        status = _head(ledgers, loader)
        app = Services(Sessions(), ledgers, loader, EmbedderLoader(loader), StepBar(BAR))
        with app.bar.panel(1):
            left = panel(elem_id="left-runs")
            welcome, data = Welcome(app), DataStep(app)
        example = welcome.wire(data)
        privacy = PrivacyStep(app)
        generate = GenerateStep(app, privacy)
        test = EvaluationStep(app)
        if not loader.locked:
            privacy.expected(test.reader.loaded.then)
        export = ExportStep(app)
        budget = BudgetPanel(app)
        _foot(ledgers)
        privacy.follow(data.confirmed)
        privacy.follow(example, go_on=True)
        generate.cut_off.follow(data.confirmed, example)
        generate.cut_off.announce(left, page.load, data.confirmed, example, *generate.ended)
        for ended in generate.ended:
            test.follow(ended)
            export.follow(ended)
            budget.follow(ended)
        export.follow(generate.own_rows.compared)
        _tick(loader, status, privacy)
        generate.loads(data.source.load_run, data.source.notice)
        data.source.load_instead.click(app.bar_after(4), None, app.bar.html, **PRIVATE)
        page.unload(forget)
    progress_on(page, status)
    page.queue(api_open=False, max_size=32)
    return page


def _head(ledgers: Ledgers, loader: ModelLoader) -> gr.HTML:
    with gr.Row(elem_classes="masthead"):
        panel(
            el(
                "div.brand",
                el("h1", TITLE),
                el("span", "Examples for a language model, with a privacy certificate"),
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
    """Poll the model: every second while one is loading; afterwards every five seconds, unless the model is locked."""
    clock, last = gr.Timer(_OFTEN), gr.State(None)

    def tick(request: gr.Request, seen: Any) -> Any:
        now = [model_status(loader), loader.status()]
        shown = [gr.skip(), gr.skip()] if now == seen else now
        then = gr.Timer(_SELDOM if loader.settled else _OFTEN, active=not (loader.settled and loader.locked))
        return *shown, then, privacy.timed(request), now

    clock.tick(tick, last, [status, privacy.models.there, clock, privacy.outcome, last], queue=False, **PRIVATE)


def model_status(loader: ModelLoader) -> list[Tree]:
    if loader.problem:
        return [el("p.status.bad", loader.problem, role="status")]
    if loader.ready:
        return [el("p.status.good", "Model ready", el("span", loader.title), role="status")]
    return [el("p.status.busy", "Model loading …", role="status")]
