"""Links to plans in the page: a button that copies one, and the line that says that the page was opened with one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.downloads import Downloads
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Sessions
from dpicl_ui.frame.tree import drawn, notice, panel
from dpicl_ui.privacy.expert_settings import ExpertSettings
from dpicl_ui.privacy.form import PrivacyForm
from dpicl_ui.privacy.plan_link import names, read, written
from dpicl_ui.privacy.recipe_form import BY_TOKEN
from dpicl_ui.privacy.recipe_settings import RecipeSettings
from dpicl_ui.privacy.settings_file import NO_RUN, SettingsFile
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.errors import UsageError

_OPENED = (
    "This page was opened with a plan: {said}. It fills in step 2 once a data set is confirmed; nothing runs, and "
    "nothing is spent, until you press Generate."
)
_FILLED = "The link's plan is in step 2: {said}. Look at it before you go on; nothing was spent."


class OpenedLink:
    """What came behind the page's address, and the line about it; on top of the page."""

    def __init__(self) -> None:
        self.plan = drawn("opened_link.js", None, elem_id="opened-link", elem_classes="sink")
        self.notice = panel(elem_id="link-notice")


class PlanLink:
    """The buttons that take a plan elsewhere, and the handlers of both directions.

    Attributes:
        settings: the same plan as a file.
        notice: the line on top of the page.
    """

    def __init__(self, sessions: Sessions, loader: ModelLoader, opened: OpenedLink) -> None:
        self._sessions, self._opened, self.notice = sessions, opened, opened.notice
        with gr.Row(elem_classes="actions"):
            self.settings = SettingsFile(sessions, loader)
            self._copy = gr.Button("Copy link", size="sm", elem_id="copy-link")
        self.settings.build_notice()
        self._made = drawn("copy_link.js", None, elem_id="plan-link")
        self._problem = panel(elem_id="plan-link-problem")

    def wire(
        self, form: Sequence[Any], recipe: RecipeSettings, expert: ExpertSettings, calibration: dict[str, Any]
    ) -> None:
        """Connect to step 2's form; `calibration` is what follows new settings."""
        self._form, self._recipe, self._expert = form, recipe, expert
        made = [self._made, self._problem]
        self._copy.click(guarded(self._problem)(self._written), list(form), made, **PRIVATE)
        plan = self._opened.plan
        taken = plan.input(guarded(self.notice)(self._take), plan, self.notice, **PRIVATE)
        self.fill_after(taken).then(**calibration)

    def fill_after(self, event: gr.events.Dependency) -> gr.events.Dependency:
        """Fill in a plan that waits for its data set."""
        filled = list(dict.fromkeys([self.notice, *self._form, *self._recipe.shown_by, *self._expert.shown_by]))
        then: gr.events.Dependency = event.then(guarded(self.notice)(self._fill), None, filled, **PRIVATE)
        return then

    def _written(self, request: gr.Request, *values: Any) -> dict[Any, Any]:
        session = self._sessions.of(request)
        planned = session.of(PrivacyState).planned
        if planned is None or planned.form != PrivacyForm.read(*values):
            raise UsageError(NO_RUN)
        downloads = session.of(Downloads)
        downloads.count += 1
        return {self._made: {"ticket": downloads.count, "plan": written(values)}, self._problem: []}

    def _take(self, plan: object, request: gr.Request) -> dict[Any, Any]:
        state = self._sessions.of(request).of(PrivacyState)
        state.linked = {}
        state.linked = read(plan, self._form)
        return {self.notice: notice(_OPENED.format(said=self._said(state.linked)), "info")}

    def _fill(self, request: gr.Request) -> dict[Any, Any]:
        session = self._sessions.of(request)
        state, confirmed = session.of(PrivacyState), session.of(DataState).confirmed
        values = state.linked
        if confirmed is None or not values:
            return {self.notice: gr.skip()}
        state.linked = {}
        shown = {self.notice: notice(_FILLED.format(said=self._said(values)), "info")}
        if confirmed.columns.rows in BY_TOKEN:
            values = {name: value for name, value in values.items() if name not in ("recipe", "no-score", "by-hand")}
        components = dict(zip(names(), self._form, strict=True))
        shown |= self._shown(values)
        return shown | {
            each: _update(name, values[name], shown.get(each)) for name, each in components.items() if name in values
        }

    def _shown(self, values: dict[str, Any]) -> dict[Any, Any]:
        """What such settings show and hide."""
        usual = {name: each.value for name, each in zip(names(), self._form, strict=True)} | values
        of_recipe = self._recipe.showing(usual["recipe"], usual["no-score"], usual["by-hand"])
        return (of_recipe if "recipe" in values else {}) | self._expert.showing(usual["mechanism"], usual["transform"])

    def _said(self, values: dict[str, Any]) -> str:
        """The settings that promise something."""
        promised = [f"{name} {values[name]:g}" for name in ("epsilon", "delta") if name in values]
        return ", ".join([*promised, f"{len(values)} settings in all"])


def _update(name: str, value: Any, shown: Any) -> Any:
    if name == "subsets":
        return gr.Slider(minimum=min(4, value), maximum=max(400, value), value=value)
    # While an event is handled, components are nothing but the arguments that they were made with.
    return value if shown is None else type(shown)(**shown.constructor_args, value=value)
