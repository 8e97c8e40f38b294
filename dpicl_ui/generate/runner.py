"""The run that step 2 has planned, of either kind, as events for the screen; what it makes is kept in the tab."""

from __future__ import annotations

from collections.abc import Generator

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.embedder_loader import EmbedderLoader
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Session
from dpicl_ui.generate.recipe_view import CuratorScreenEvent, RecipeView, reduce_recipe
from dpicl_ui.generate.state import GenerateState, Made, Run
from dpicl_ui.privacy.form import PrivacyForm
from dpicl_ui.privacy.state import Planned, PrivacyState
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.errors import UsageError
from mechanisms.studio.recipes.events import Drafting, RecipeCompleted, RecipeStopped, SetKept
from mechanisms.studio.recipes.run import run_recipe
from mechanisms.studio.synthesis.events import DemoCompleted, RunCompleted, RunStopped
from mechanisms.studio.synthesis.request import SynthesisRequest
from mechanisms.studio.synthesis.synthesize import synthesize

_KEPT_AFTER = DemoCompleted | SetKept | RecipeCompleted | RunCompleted
"""What the set that may be exported changes with."""


class Runner:
    """Starts runs with the app's models."""

    def __init__(self, loader: ModelLoader, embedder: EmbedderLoader) -> None:
        self._loader, self._embedder = loader, embedder

    def events(
        self, session: Session, ledger: PrivacyLedger, pressed: Run, form: PrivacyForm, curator: bool
    ) -> Generator[CuratorScreenEvent]:
        """The run's events; a stop is one of them. Closing this iterator closes the run and settles the ledger.

        Raises:
            StudioError: the run cannot begin or go on; its message says what to do.
        """
        planned = session.of(PrivacyState).calibrate(form, self._loader.speed)
        run = self._start(planned, ledger, curator)
        if planned.confirmed is not session.of(DataState).confirmed:
            raise UsageError("The data of step 1 has changed: look at step 2, then start again.")
        state, view = session.of(GenerateState), RecipeView()
        state.written = pressed
        of = fingerprint(planned.confirmed.dataset)
        try:
            for event in run:
                view = reduce_recipe(view, event)
                if isinstance(event, _KEPT_AFTER) and (made := view.made) is not None:
                    state.made = Made(made, of)
                yield event
                if not pressed.stop.is_set() or isinstance(event, SetKept):  # what it is kept for is told next
                    continue
                if isinstance(event, Drafting):
                    raise UsageError("Stopped. No row was read, and nothing is spent.")
                if view.run.phase == "running" and view.kept:
                    yield RecipeStopped(view.kept) if view.stages else RunStopped(view.kept)
                    return
        finally:
            run.close()

    def _start(self, planned: Planned, ledger: PrivacyLedger, curator: bool) -> Generator[CuratorScreenEvent]:
        """The run, which reads no row before its first event is asked for; waits for the models it needs."""
        request, dataset, model = planned.request, planned.confirmed.dataset, self._loader.model()
        if isinstance(request, SynthesisRequest):
            return synthesize(dataset, request, model, ledger, curator=curator)
        return run_recipe(dataset, request, model, self._embedder.embedder(), ledger, curator=curator)
