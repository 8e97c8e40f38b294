"""Step 2: how much privacy, how the tokens are released, and what follows from it before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from dpicl_ui.data.state import Confirmed, DataState, Rows
from dpicl_ui.frame.guard import ACCOUNTING, PRIVATE, guarded
from dpicl_ui.frame.inputs import epsilon_slider, number, whole
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.sessions import Session
from dpicl_ui.frame.tree import Tree, budget, el, notice, panel
from dpicl_ui.privacy.cards import CALIBRATING, outcome, refused
from dpicl_ui.privacy.form import BY_TOKEN, ROW_SETTINGS, PrivacyForm
from dpicl_ui.privacy.model_choice import ModelChoice
from dpicl_ui.privacy.settings import NO_RUN, AnswerSettings, ExpertSettings, Odds, RecipeSettings, SettingsFile
from dpicl_ui.privacy.state import PrivacyState, suggested
from mechanisms.accounting import Cap, PrivacyLedger
from mechanisms.errors import StudioError, UsageError
from mechanisms.runs.advice import proposed
from mechanisms.runs.defaults import FEWEST_SUBSETS, lengths_of_texts, usual_recipe, usual_subsets
from mechanisms.runs.preview import suggested_delta
from mechanisms.runs.recipe import Division, Kind
from mechanisms.runs.recipe_request import MOST_SHOTS
from mechanisms.sampling import SamplingPlan

_BEST_OF = "Keep the best of so many"
_DEARER = (
    "So many are written for each demonstration that is kept, and all of them are paid for, with more noise. Kept are "
    "those whose label the model finds most surely; no row is asked."
)
_FORCED = "What the schema forces is free. Behind the last of them a record is finished from public text, free as well."
_DELTA = "Probability that the guarantee fails; well under 1 / number of rows."


class PrivacyStep:
    """Components and handlers of step 2. `form` are the inputs that `PrivacyForm.read` reads, in its order."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with app.bar.panel(2), gr.Row(elem_classes="split"):
            with gr.Column(scale=6, min_width=300):
                self._build_settings()
            with gr.Column(scale=5, min_width=300, elem_classes="aside"):
                with gr.Column(elem_classes="card public"):
                    self.outcome = panel(*CALIBRATING, elem_id="outcome")
                    self.start = gr.Button("Go on to generate", variant="primary", elem_id="accept-privacy")
                    self.settings = SettingsFile(app)
                with gr.Column(elem_classes="card"):
                    self.budget = panel(elem_id="budget")
                    self._build_cap()
        expert = self.expert
        self.form = [
            self.epsilon, self.delta, expert.mechanism, expert.scheme, expert.unit_rows, self.subsets,
            expert.per_subset, self.tokens, self.shots, self.best_of, expert.candidates, self.length,
            self.instruction, self.text_name, self.label_name, *self.answers.inputs, expert.transform,
            *expert.own, *self.recipe.inputs,
        ]  # fmt: skip
        self._wire()

    def _build_settings(self) -> None:
        with gr.Column(elem_classes="card"):
            panel(
                el("h2", "How much privacy?"),
                el("p.lead", "Epsilon bounds how much one row or user can change what is released. Smaller is safer."),
            )
            self.epsilon = epsilon_slider()
            self.odds = Odds(self._app)
        self.recipe = RecipeSettings()
        self._build_writing()
        self.models = ModelChoice(self._app)
        with gr.Accordion("The task's prompt", open=False, elem_classes="card"):
            self.instruction = gr.Textbox(label="Instruction", lines=2, elem_id="instruction")
            with gr.Row():
                self.text_name = gr.Textbox(label="Name of the text field", elem_id="text-name")
                self.label_name = gr.Textbox(label=ROW_SETTINGS[Rows.TEXTS].label_name, elem_id="label-name")
            panel(el("p.muted", "All of this is public: it stands in the export."))
        with gr.Accordion("Delta, and how much of a row is read", open=False, elem_classes="card"):
            self.delta = gr.Number(1e-5, label="Delta", info=_DELTA, elem_id="delta")
            self.length = gr.Slider(
                8,
                256,
                ROW_SETTINGS[Rows.TEXTS].lengths.max_record_tokens,
                step=1,
                label="Longest record (tokens)",
                info="Longer records are cut.",
                elem_id="length",
            )
        with gr.Accordion("Mechanism and sampling", open=False, elem_classes="card") as self._mechanism:
            self.expert = ExpertSettings()

    def _build_writing(self) -> None:
        with gr.Column(elem_classes="card"):
            panel(el("h3", "What to write"))
            self.shots = gr.Slider(
                1, MOST_SHOTS, SamplingPlan.shots, step=1, label=ROW_SETTINGS[Rows.TEXTS].shots, elem_id="shots"
            )
            with gr.Column() as self._by_token:
                length, title = ROW_SETTINGS[Rows.TEXTS].lengths.tokens, ROW_SETTINGS[Rows.TEXTS].tokens
                self.tokens = gr.Slider(4, 100, length, step=1, label=title, elem_id="tokens")
                self.answers = AnswerSettings()
                self.subsets = gr.Slider(
                    FEWEST_SUBSETS,
                    400,
                    SamplingPlan.subsets,
                    step=1,
                    label="Records that speak at each step (M)",
                    info="More records drown the noise better, and take longer.",
                    elem_id="subsets",
                )
            self.best_of = gr.Slider(1, 8, 1, step=1, label=_BEST_OF, info=_DEARER, visible=False, elem_id="best-of")

    def _build_cap(self) -> None:
        with gr.Accordion("Change the cap", open=False):
            panel(
                el(
                    "p.muted",
                    "The cap is the most that all runs on this data set may ever cost together. Raising it is for "
                    "whoever answers for the people in the data.",
                )
            )
            with gr.Row():
                self.cap_epsilon = gr.Number(10.0, label="Cap on epsilon", elem_id="cap-epsilon")
                self.cap_delta = gr.Number(1e-4, label="Cap on delta", elem_id="cap-delta")
            self.cap_notice = panel(elem_id="cap-notice")
            self.set_cap = gr.Button("Set the cap", size="sm", elem_id="set-cap")

    @property
    def _sliders(self) -> list[Any]:
        return [self.epsilon, self.shots, self.tokens, self.subsets, self.best_of, self.length]

    def _wire(self) -> None:
        self._calibration: dict[str, Any] = {
            "fn": guarded(self.outcome)(self._recalculate),
            "inputs": self.form,
            "outputs": [self.outcome, self.budget, self.recipe.words, self._app.bar.html],
            **ACCOUNTING,
            **PRIVATE,
        }
        # One calibration at a time; changes made meanwhile are calibrated once, with the last values.
        gr.on(
            [
                *(each.release for each in self._sliders),
                *(each.blur for each in (self.instruction, self.text_name, self.label_name, self.delta)),
                self.delta.submit,
                *self.recipe.settled,
                *self.expert.settled,
                *self.answers.settled,
            ],
            **self._calibration,
            trigger_mode="always_last",
        )
        self.odds.wire(self.epsilon, self.delta)
        self._wire_recipe()
        if not self._app.loader.locked:
            self.models.loaded.then(self.timed, None, self.outcome, **PRIVATE)
        self.set_cap.click(
            guarded(self.cap_notice)(self._set_cap),
            [self.cap_epsilon, self.cap_delta],
            [self.cap_notice, self.budget],
            **PRIVATE,
        )
        self.start.click(guarded(self.outcome)(self._accept), None, [self.outcome, self._app.bar.html], **PRIVATE)

    def _wire_recipe(self) -> None:
        recipe = self.recipe
        recipe.wire(tokens_only=[self.best_of], writing=[self._by_token, self._mechanism])
        asked = [recipe.kind, recipe.no_score, recipe.by_hand, self.epsilon, self.shots]
        for events, inputs in (
            ([recipe.kind.input, recipe.no_score.input, recipe.by_hand.input], asked),
            ([recipe.division.input], [*asked, recipe.division]),
        ):
            filled = gr.on(events, guarded(self.outcome)(self._propose), inputs, recipe.filled_in, **PRIVATE)
            filled.then(**self._calibration)

    def follow(self, confirmed: gr.events.Dependency) -> None:
        """Fill in suggestions after step 1, then calibrate them."""
        filled_in = [
            self.delta, self.subsets, self.instruction, self.text_name, self.label_name,
            self.cap_epsilon, self.cap_delta, self.cap_notice, *self.recipe.forgotten(),
            self.shots, self.tokens, self.length, self.answers.body, *self.recipe.fixed,
        ]  # fmt: skip
        names = [self.text_name, self.label_name]
        filled = confirmed.then(self._suggest, names, filled_in, **PRIVATE)
        filled.then(**self._calibration)
        self.odds.follow(filled)

    def _suggest(self, request: gr.Request, text_name: str = "", label_name: str = "") -> dict[Any, Any]:
        session = self._app.session(request)
        confirmed = session.of(DataState).confirmed
        state = session.of(PrivacyState)
        if confirmed is None or state.planned is not None:
            return {self.cap_notice: []}
        dataset, sizes, rows = confirmed.dataset, confirmed.sizes, confirmed.columns.rows
        template, (text, label) = suggested(confirmed, state, text_name, label_name)
        suits = rows, usual_recipe(len(sizes), plain=rows is Rows.TEXTS)
        before, state.suggested = state.suggested, suits
        cap = self._app.ledger(request).snapshot(dataset.name, dataset.unit).cap
        return {
            self.delta: suggested_delta(sum(sizes.values())),
            self.subsets: usual_subsets(sizes),
            self.instruction: template.instruction,
            self.text_name: text,
            self.label_name: gr.Textbox(value=label, label=ROW_SETTINGS[rows].label_name),
            self.cap_epsilon: cap.epsilon,
            self.cap_delta: cap.delta,
            self.cap_notice: [],
            **self.recipe.forgotten(),
            **(self._for_rows(*suits) if rows in BY_TOKEN or before != suits else {}),
            **self._of_length(state, confirmed),
        }

    def _of_length(self, state: PrivacyState, confirmed: Confirmed) -> dict[Any, Any]:
        """The lengths that follow from how many words a text has, where that was declared, or no longer is."""
        before, state.words = state.words, confirmed.columns.file.words
        usual = ROW_SETTINGS[confirmed.columns.rows].lengths
        if state.words is None and before is None:
            return {}
        lengths = lengths_of_texts(state.words, usual)
        return {self.tokens: gr.Slider(value=lengths.tokens), self.length: lengths.max_record_tokens}

    def _for_rows(self, rows: Rows, kind: Kind) -> dict[Any, Any]:
        asked, by_token = ROW_SETTINGS[rows], rows in BY_TOKEN
        tokens, forced = asked.lengths.tokens, _FORCED if rows == Rows.RECORDS else ""
        return {
            **(self.recipe.by_token(BY_TOKEN[rows]) if by_token else self.recipe.for_texts(kind)),
            self.shots: gr.Slider(label=asked.shots),
            self.tokens: gr.Slider(value=tokens, label=asked.tokens, info=forced),
            self.length: asked.lengths.max_record_tokens,
            self.answers.body: gr.Column(visible=rows == Rows.ANSWERED),
            **({self.best_of: gr.Slider(value=1, visible=False)} if by_token else {}),
        }

    def _propose(
        self,
        request: gr.Request,
        kind: str,
        no_score: bool,
        by_hand: bool,
        epsilon: Any,
        shots: Any,
        division: str | None = None,
    ) -> dict[Any, Any]:
        """Fill in the stages where they are set by hand: other presets, and other divisions, want other shares."""
        confirmed = self._app.session(request).of(DataState).confirmed
        if not by_hand or kind == Kind.TOKENS or confirmed is None:
            return {self.recipe.own: gr.Column(visible=by_hand)}
        chosen = Division(division) if division else None
        left = number("Epsilon", epsilon) - (confirmed.measured.epsilon if confirmed.measured else 0.0)
        many = whole("The number of demonstrations", shots)
        return self.recipe.filled(proposed(Kind(kind), confirmed.sizes, left, not no_score, chosen, many))

    def _recalculate(self, request: gr.Request, *values: Any) -> Iterator[dict[Any, Any]]:
        """Calibrate the settings and show what follows."""
        session = self._app.session(request)
        yield {self.outcome: CALIBRATING}
        if session.of(DataState).confirmed is None:
            return
        state = session.of(PrivacyState)
        try:
            planned = state.look(_read(state, values), self._app.loader.speed)
        except StudioError as error:
            shown, told = refused(str(error)), self.recipe.told(None)
        else:
            if planned is None:  # overtaken: what overtook it says more
                return
            shown, told = outcome(planned.preview), self.recipe.told(planned.request)
        yield {
            self.outcome: shown,
            **told,
            self.budget: budget_of(session, self._app.ledger(request)),
            **self._app.steps(session),
        }

    def _set_cap(self, epsilon: float, delta: float, request: gr.Request) -> dict[Any, Any]:
        session, ledger = self._app.session(request), self._app.ledger(request)
        confirmed = session.of(DataState).confirmed
        if confirmed is None:
            raise UsageError("Choose a data set in step 1 first.")
        cap = Cap(float(epsilon or 0), float(delta or 0))
        ledger.set_cap(confirmed.dataset.name, confirmed.dataset.unit, cap)
        return {self.cap_notice: notice("The cap is set.", "good"), self.budget: budget_of(session, ledger)}

    def _accept(self, request: gr.Request) -> dict[Any, Any]:
        session = self._app.session(request)
        if session.of(PrivacyState).planned is None:
            raise UsageError(NO_RUN)
        return self._app.steps(session, 3)

    def timed(self, request: gr.Request) -> Any:
        """The card of a run that was calibrated with another model, or before any was there, now with its duration."""
        planned = self._app.session(request).of(PrivacyState).time(self._app.loader.speed)
        return outcome(planned.preview) if planned else gr.skip()


def _read(state: PrivacyState, values: tuple[Any, ...]) -> PrivacyForm:
    try:
        return PrivacyForm.read(*values)
    except UsageError:
        state.forget()
        raise


def budget_of(session: Session, ledger: PrivacyLedger) -> list[Tree]:
    """The ledger's state of the confirmed data set, with what the planned run would add."""
    confirmed, planned = session.of(DataState).confirmed, session.of(PrivacyState).planned
    if confirmed is None:
        return []
    name, unit = confirmed.dataset.name, confirmed.dataset.unit
    snapshot = ledger.snapshot(name, unit)
    if planned is None:
        return budget(snapshot, None, confirmed.warnings)
    repeats = ledger.repeats(name, unit, planned.request.event, planned.request.release_claim())
    return budget(snapshot, planned.charge, confirmed.warnings, repeats)
