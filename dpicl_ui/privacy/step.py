"""Step 2: the privacy target, its noise, and its price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame.controls import control, described, fields_from, in_field
from dpicl_ui.frame.files import Download, download, sink
from dpicl_ui.frame.handlers import ACCOUNTING, FETCH, MODEL, PRIVATE, UNTIL_FREE, on
from dpicl_ui.frame.inputs import epsilon_slider, number
from dpicl_ui.frame.model_loader import AT_START
from dpicl_ui.frame.services import Services, Session
from dpicl_ui.frame.tree import Tree, Updates, budget, drawn, el, notice, panel, spinner, visibility
from dpicl_ui.privacy.cards import (
    CALIBRATING,
    ExpectationState,
    odds,
    outcome,
    picture,
    refused,
    stages_in_words,
    to_consider,
)
from dpicl_ui.privacy.state import PlannedRun, PrivacyState
from mechanisms.accounting import Cap, PrivacyTarget
from mechanisms.data.headers import field_name
from mechanisms.discovery import Parameter, parameters
from mechanisms.errors import StudioError, UsageError
from mechanisms.inference.models.listed import available_models
from mechanisms.runs.checks import Findings, check_plan, check_with_model
from mechanisms.runs.plan import Plan
from mechanisms.runs.settings_file import settings
from mechanisms.runs.spec import FLAGGED, Group, Recipe, RunSpec, Split
from mechanisms.sampling import Scheme
from mechanisms.steps import (
    TokenMechanism,
    Transform,
    mechanism_class,
    mechanism_names,
    transform_class,
    transform_names,
)

_ELSEWHERE = {
    "epsilon", "sizes", "count_epsilon", "kind", "writer", "reader", "relation", "label_words", "sentence", "exemplars",
    "shots", "mechanism", "transform", "parameters",
}  # fmt: skip
"""Settings whose components are in step 1 or in another part of step 2."""
_NAMES = ("text_field", "label_field")
_TITLES = {
    Group.PRIVACY: "Delta",
    Group.TASK: "The prompt that classifies",
    Group.STAGES: "Stages",
    Group.TOKENS: "Token by token",
    Group.CAPS: "How much is read",
}
CHOICES: dict[str, list[tuple[str, str]]] = {
    "recipe": [
        ("Both: rows write with noise, token by token, and vote on drafts", Recipe.BOTH.value),
        ("Drafts: rows vote, with noise, on texts that the model wrote without seeing them", Recipe.VOTE.value),
        ("Token by token only: no vote, no score", Recipe.TOKENS.value),
    ],
    "split": [
        ("Rows: each takes part in one stage, and every stage has the whole epsilon", Split.ROLES.value),
        ("Epsilon: all rows take part in all stages", Split.EPSILON.value),
    ],
    "scheme": [
        ("One sample of rows for each demonstration (fast)", Scheme.PER_DEMONSTRATION.value),
        ("A new sample for every token (slow; amplifies privacy token by token)", Scheme.PER_TOKEN.value),
    ],
}
"""The titles of each setting's values."""


def private_mechanisms() -> list[type[TokenMechanism]]:
    """The mechanisms that an owner may choose from: those that read rows and protect them."""
    every = [mechanism_class(name) for name in mechanism_names()]
    return [each for each in every if each.uses_private_rows and not each.not_private]


def transforms() -> list[type[Transform]]:
    """The transforms that an owner may choose from, with "none" first."""
    return [transform_class(name) for name in transform_names()]


def asked_parameters(owner: Any) -> list[Parameter]:
    """The parameters that an owner can set: all except the calibrated one, which is shown among the results."""
    return [each for each in parameters(owner) if each.name != getattr(owner, "calibrated", None)]


class ExpertSettings:
    """The components inside the accordion. `fields` are the components of settings, by the settings' names."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self._own: dict[str, dict[str, Any]] = {}
        self._groups: dict[str, gr.Column] = {}
        for group in (Group.STAGES, Group.TOKENS, Group.TASK, Group.CAPS, Group.PRIVACY):
            panel(el("p.small-head", _TITLES[group]))
            if group is Group.TOKENS:
                self._build_mechanisms()
            names = [each.name for each in FLAGGED if each.group is group and each.name not in _ELSEWHERE]
            with gr.Row(elem_classes="settings"):
                for name in names:
                    self.fields[name] = control(name, CHOICES.get(name, ()))
        shown = [self._of_transform, *self._groups.values()]
        for each in (self.mechanism, self.transform):
            each.input(self._showing, [self.mechanism, self.transform], shown, queue=False, **PRIVATE)

    def _build_mechanisms(self) -> None:
        usual = RunSpec.model_fields["mechanism"].default
        self.mechanism = self._choice("mechanism", private_mechanisms())
        for mechanism in private_mechanisms():
            cited = f"{mechanism.citation}. Its noise is solved for and shown among the results."
            self._own_parameters(mechanism, cited, mechanism.name == usual)
        with gr.Column(visible=mechanism_class(usual).takes_transform) as self._of_transform:
            self.transform = self._choice("transform", transforms())
            for transform in transforms():
                self._own_parameters(transform, f"{transform.citation}. It costs no privacy.", False)

    def _choice(self, name: str, every: list[Any]) -> gr.Radio:
        usual = RunSpec.model_fields[name].default
        self.fields[name] = made = gr.Radio([(each.title, each.name) for each in every], value=usual, **described(name))
        return made

    def _own_parameters(self, owner: Any, cited: str, visible: bool) -> None:
        with gr.Column(visible=visible, elem_classes="own-parameters") as self._groups[owner.name]:
            panel(el("p.muted", cited))
            self._own[owner.name] = {each.flag: _component(each) for each in asked_parameters(owner)}

    def _showing(self, mechanism: str, transform: str) -> dict[Any, Any]:
        """The visibility of the components under the present choice."""
        takes = mechanism_class(mechanism).takes_transform
        shown = {mechanism, transform if takes and transform != "none" else mechanism}
        groups = {group: gr.Column(visible=name in shown) for name, group in self._groups.items()}
        return {self._of_transform: gr.Column(visible=takes), **groups}

    @property
    def inputs(self) -> list[Any]:
        return [*self.fields.values(), *(each for own in self._own.values() for each in own.values())]

    @property
    def outputs(self) -> list[Any]:
        """The components that `fresh` sets."""
        return [*self.inputs, self._of_transform, *self._groups.values()]

    @property
    def settled(self) -> list[Any]:
        return [event for each in self.inputs for event in settled(each)]

    def fresh(self) -> dict[Any, Any]:
        """Every setting at its first value, for another data set."""
        return {each: each.value for each in self.inputs} | self._showing(self.mechanism.value, self.transform.value)

    def fields_of(self, values: Mapping[Any, Any]) -> dict[str, Any]:
        """The components' values as fields for `RunSpec.of`, without those that are empty or hidden.

        Raises:
            UsageError: a parameter is not a number, the shares are not pairs, or a name in prompts is too long.
        """
        chosen = {name: values[each] for name, each in self.fields.items()}
        chosen |= {name: field_name(chosen[name]) for name in _NAMES if str(chosen[name] or "").strip()}
        mechanism = mechanism_class(chosen["mechanism"])
        if not mechanism.takes_transform:
            chosen["transform"] = "none"
        own = {}
        for owner in (mechanism, transform_class(chosen["transform"])):
            for each in asked_parameters(owner):
                value = values[self._own[owner.name][each.flag]]
                if value not in ("", None) and value != each.default:
                    own[each.flag] = each.typed(number(each.label, value))
        return fields_from(chosen) | ({"parameters": own} if own else {})

    def left_open(self, plan: Plan) -> dict[Any, Any]:
        """The empty fields, each with the plan's value as its placeholder."""
        values = {name: getattr(plan.spec, name) for name in self.fields} | {"instruction": plan.template.instruction}
        typed = ((name, each) for name, each in self.fields.items() if isinstance(each, gr.Textbox))
        return {each: gr.Textbox(placeholder=in_field(values[name])) for name, each in typed}


def settled(component: Any) -> list[Any]:
    if isinstance(component, gr.Textbox):
        return [component.blur, component.submit]
    return [component.release if isinstance(component, gr.Slider) else component.input]


def _component(parameter: Parameter) -> Any:
    words: dict[str, Any] = {"label": parameter.label, "info": f"{parameter.help} ({parameter.citation})"}
    if isinstance(parameter.default, bool):
        return gr.Checkbox(parameter.default, **words)
    return gr.Textbox("", placeholder=f"{parameter.default:g}", **words)


_LOCKED = "The operator of this server has locked the model."
_OWN = "Safetensors or GGUF; pickles and code that comes with a model are never read. A hub id is fetched once."


class ModelChoice:
    """The card that chooses a model. `loaded` fires when that model is loaded, or the old one is loaded again."""

    loaded: gr.events.Dependency

    def __init__(self, app: Services) -> None:
        self._loader = app.loader
        with gr.Column(elem_classes="card"):
            panel(el("h3", "Model"), el("p.lead", "It writes and reads on this machine."))
            self.there = panel(*self._loader.status(), elem_id="model-there")
            if self._loader.locked:
                panel(el("p.muted", _LOCKED))
                return
            with gr.Accordion("Use another model", open=False, elem_id="other-model"):
                self._build()

    def _build(self) -> None:
        names = [(str(each), each.name) for each in available_models()]
        if not self._loader.listed_at_start:
            names.insert(0, ("The model that this server started with", AT_START))
        at_start = self._loader.name if self._loader.listed_at_start else AT_START
        self.name = gr.Dropdown(names, value=at_start, label="Model", elem_id="model-name")
        self.own = gr.Textbox(label="Or a folder, a GGUF file or a hub id", info=_OWN, elem_id="model-own")
        self.notice = panel(elem_id="model-notice")
        self.load = gr.Button("Load", size="sm", elem_id="load-model")
        self.stop = gr.Button("Stop fetching", size="sm", visible=visibility(False), elem_id="stop-model")
        self.stop.click(self._loader.stop_fetching, None, None, queue=False, **PRIVATE)
        self.name.input(lambda: "", None, self.own, **PRIVATE)
        self.fetched = gr.State()
        shown, chosen = [self.notice, self.load, self.stop], [self.name, self.own]
        fetching = on(self.load.click, self._fetch, chosen, [*shown, self.fetched], self.notice, **FETCH)
        shown.append(self.there)
        free = {self.load: gr.Button(interactive=True), self.stop: gr.Button(visible=visibility(False))}
        self.loaded = on(fetching.then, self._load, self.fetched, shown, self.notice, lambda: free, **MODEL)

    def _fetch(self, listed: str, own: str) -> Iterator[Updates]:
        """Fetch a model's files if they are missing; on success, `fetched` gets the model's name."""
        name = (own or "").strip() or listed or ""
        yield {self.load: gr.Button(interactive=False), self.fetched: None}
        for told in self._loader.fetched(name):
            yield {self.notice: told, self.stop: gr.Button(visible=visibility(self._loader.fetching))}
        yield {self.notice: spinner(UNTIL_FREE), self.stop: gr.Button(visible=visibility(False)), self.fetched: name}

    def _load(self, name: str | None) -> Iterator[Updates]:
        if name is None:
            return
        for told in self._loader.changed(name):
            yield {self.there: told, self.notice: []}
        missed = self._loader.refusal or self._loader.problem
        yield {self.notice: [] if missed else notice("The model is loaded.", "good")}


NO_RUN = "There is no run with these settings yet: wait until the noise is calibrated, or correct the settings."
"""The refusal of anything that needs a plan."""
_LEAD = "Epsilon bounds how much one row or user can change what is released. Smaller is safer."
_PUBLIC = "From the model's expectation of such texts alone: no row was read, and nothing was spent."
_CAP = (
    "The cap is the most that all runs under this data set's name may cost together in this ledger. Only whoever is "
    "responsible for the people in the data should raise it."
)
_FILE = "settings.yaml"
_SAVED = (
    f"Saved by your browser. synthesize FILE --config {_FILE} starts the same run, which is charged separately. The "
    "file names your columns and labels, and contains no row."
)


class PrivacyStep:
    """Components and handlers of step 2. `form` are the inputs that `spec` reads."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with app.bar.panel(2):
            with gr.Row(elem_classes="split"):
                with gr.Column(scale=6, min_width=300, elem_classes="card"):
                    panel(el("h2", "How much privacy?"), el("p.lead", _LEAD))
                    self.epsilon = epsilon_slider()
                    self.odds = panel(elem_id="odds")
                    self.shots = control("shots")
                with gr.Column(scale=5, min_width=300, elem_classes="card public"):
                    panel(el("h3", "How noisy it would be"), el("p.muted", _PUBLIC))
                    self.noise = drawn("noise.js", None, elem_id="noise")
            with gr.Row(elem_classes="split"):
                with gr.Column(scale=6, min_width=300, elem_classes="card public"):
                    self.outcome = panel(*CALIBRATING, elem_id="outcome")
                    self.checks = panel(elem_id="checks")
                    self.start = gr.Button("Go on to generate", variant="primary", elem_id="accept-privacy")
                with gr.Column(scale=5, min_width=300, elem_classes="card"):
                    self.budget = panel(elem_id="budget")
                    self._build_cap()
            self.models = ModelChoice(app)
            with gr.Accordion("For experts", open=False, elem_classes="card", elem_id="experts"):
                self.stages = panel(elem_id="stages")
                self.expert = ExpertSettings()
                with gr.Row(elem_classes="actions"):
                    self.save = gr.Button("Settings for the command line", size="sm", elem_id="save-settings")
                self.saved = panel(elem_id="settings-notice")
                self.sink = sink()
        self.form = [self.epsilon, self.shots, *self.expert.inputs]
        self._wire()

    def _build_cap(self) -> None:
        with gr.Accordion("Change the cap", open=False):
            panel(el("p.muted", _CAP))
            with gr.Row():
                self.cap_epsilon = gr.Number(10.0, label="Cap on epsilon", elem_id="cap-epsilon", min_width=100)
                self.cap_delta = gr.Number(1e-4, label="Cap on delta", elem_id="cap-delta", min_width=100)
            self.cap_notice = panel(elem_id="cap-notice")
            self.set_cap = gr.Button("Set the cap", size="sm", elem_id="set-cap")

    def _wire(self) -> None:
        # Step 3 closes at once; only then are the last settings calibrated, once. If both handlers listened to the same
        # event, they would run one after the other, and a late closing would drop the calibrated plan.
        settled = [self.epsilon.release, self.shots.release, *self.expert.settled]
        last: dict[str, Any] = {"trigger_mode": "always_last"}
        shown = [self._app.bar.html, self.odds, self.outcome]
        closed = on(partial(gr.on, settled), self._touched, {*self.form}, shown, self.outcome, queue=False, **last)
        self._calibrated(closed.then, **last)
        if not self._app.loader.locked:
            self.expected(self.models.loaded.then(self.timed, None, self.outcome, **PRIVATE).then)
            self.check_after(self.models.loaded.then)
        cap = [self.cap_epsilon, self.cap_delta]
        self.check_after(
            on(self.set_cap.click, self._set_cap, cap, [self.cap_notice, self.budget], self.cap_notice).then
        )
        on(self.save.click, self._save, None, [self.sink, self.saved], self.saved)
        self._accepted(self.start.click)

    def _accepted(self, event: Any) -> None:
        on(event, self._accept, None, [self.outcome, self._app.bar.html], self.outcome)

    def expected(self, event: Any) -> None:
        on(event, self._expect, None, [self.noise, self.outcome], self.outcome, **MODEL)

    def _calibrated(self, event: Any, **more: Any) -> gr.events.Dependency:
        app, expert = self._app, self.expert
        shown = [self.outcome, self.checks, self.budget, self.stages, self.noise, app.bar.html, *expert.inputs]
        calibrated = on(event, self._recalculate, {*self.form}, shown, self.outcome, **ACCOUNTING, **more)
        self.check_after(calibrated.then)
        return calibrated

    def check_after(self, event: Any) -> None:
        """Run all checks after an event, as soon as the model is free."""
        on(event, self._look, None, self.checks, self.checks, **MODEL)

    def follow(self, confirmed: gr.events.Dependency, go_on: bool = False) -> None:
        """Show the settings of a confirmed data set, calibrate them and, with `go_on`, move to step 3."""
        filled_in = [self.cap_epsilon, self.cap_delta, self.cap_notice, self.odds, *self.expert.outputs]
        filled = confirmed.then(self._fill_in, {*self.form}, filled_in, **PRIVATE)
        calibrated = self._calibrated(filled.then)
        if go_on:
            self._accepted(calibrated.then)
        self.expected(calibrated.then)

    def _fill_in(self, values: Mapping[Any, Any], request: gr.Request) -> Updates:
        session = self._app.session(request)
        confirmed, state = session.of(DataState).confirmed, session.of(PrivacyState)
        if confirmed is None or state.planned is not None:
            return {self.cap_notice: []}
        dataset = confirmed.dataset
        cap = self._app.ledger(request).snapshot(dataset.name, dataset.unit).cap
        of = dataset.name, dataset.unit, dataset.labels
        before, state.set_for = state.set_for, of
        fresh = {} if before in (None, of) else self.expert.fresh()
        shown = {self.cap_epsilon: cap.epsilon, self.cap_delta: cap.delta, self.cap_notice: []}
        return shown | fresh | self._odds(session, {**values, **{each: each.value for each in fresh if each in values}})

    def spec(self, session: Session, values: Mapping[Any, Any]) -> RunSpec:
        """The spec that the form gives for the confirmed data set.

        Raises:
            UsageError: no data set is confirmed, or a value is missing, not a number or out of range.
        """
        confirmed = session.of(DataState).needed
        fields = fields_from({"shots": values[self.shots]}) | self.expert.fields_of(values)
        usual = {"epsilon": number("Epsilon", values[self.epsilon]), "delta": confirmed.usual_delta}
        return RunSpec.of(**confirmed.spec_fields | usual | fields)

    def _odds(self, session: Session, values: Mapping[Any, Any]) -> Updates:
        """The sentence on what epsilon means. It does not wait for the calibration, which is what reports errors."""
        confirmed = session.of(DataState).confirmed
        try:
            spec = self.spec(session, values)
        except StudioError:
            return {self.odds: []}
        assert confirmed is not None
        target = PrivacyTarget(spec.epsilon, spec.delta)
        return {self.odds: odds(target, confirmed.dataset.by_user, confirmed.measured is None)}

    def _touched(self, values: Mapping[Any, Any], request: gr.Request) -> Updates:
        """Close step 3 until the new settings are calibrated."""
        session = self._app.session(request)
        state = session.of(PrivacyState)
        try:
            state.outdate(self.spec(session, values))
        except StudioError:  # reported by the calibration
            state.forget()
        return self._app.steps(session) | self._odds(session, values)

    def _recalculate(self, values: Mapping[Any, Any], request: gr.Request) -> Iterator[Updates]:
        session = self._app.session(request)
        yield {self.outcome: CALIBRATING, self.checks: []}
        state = session.of(PrivacyState)
        if session.of(DataState).confirmed is None:
            return
        spec: RunSpec | None = None
        try:
            spec = self.spec(session, values)
            planned = state.calibrate_for_screen(spec, self._app.loader.speed)
        except StudioError as error:
            if spec is None:
                state.forget()
            yield {self.outcome: refused(error), self.stages: [], self.noise: None, **self._spent(request)}
            return
        if planned is None:  # newer settings report their own result
            return
        yield {
            self.outcome: outcome(planned),
            self.checks: to_consider(self._found(planned, request)),
            self.stages: stages_in_words(planned.plan),
            self.noise: self._picture(session),
            **self.expert.left_open(planned.plan),
            **self._spent(request),
        }

    def _found(self, planned: PlannedRun, request: gr.Request) -> Findings:
        """The checks that need no model."""
        return check_plan(planned.plan, planned.confirmed.dataset, self._app.ledger(request))

    def _look(self, request: gr.Request) -> Updates:
        """All checks of the run; waits for the models."""
        planned = self._app.session(request).of(PrivacyState).planned
        if planned is None:
            return {self.checks: []}
        found, plan = self._found(planned, request), planned.plan
        model = found.attempt("model", self._app.loader.model)
        embedder = found.attempt("model", self._app.embedder.embedder) if plan.embeds else None
        if model is not None and (embedder is not None or not plan.embeds):
            found.add(check_with_model(plan, planned.confirmed.dataset, model, embedder))
        return {self.checks: to_consider(found)}

    def _spent(self, request: gr.Request) -> Updates:
        return {self.budget: budget_of(self._app, request), **self._app.steps(self._app.session(request))}

    def _picture(self, session: Session) -> dict[str, Any] | None:
        plan, expected = session.of(PrivacyState).plan, session.of(ExpectationState).found
        return picture(plan, expected) if plan and expected and expected.label in plan.labels else None

    def _expect(self, request: gr.Request) -> Updates:
        """Ask the model for its expectation of such texts, for the picture."""
        session = self._app.session(request)
        if (confirmed := session.of(DataState).confirmed) is None:
            return {self.noise: None}
        session.of(ExpectationState).ask(self._app.loader.model(), confirmed.wording, confirmed.dataset.labels[0])
        return {self.noise: self._picture(session)}

    def _set_cap(self, epsilon: float, delta: float, request: gr.Request) -> Updates:
        dataset = self._app.session(request).of(DataState).needed.dataset
        cap = Cap(float(epsilon or 0), float(delta or 0))
        self._app.ledger(request).set_cap(dataset.name, dataset.unit, cap)
        return {self.cap_notice: notice("The cap is set.", "good"), self.budget: budget_of(self._app, request)}

    def _save(self, request: gr.Request) -> Updates:
        session = self._app.session(request)
        if (planned := session.of(PrivacyState).planned) is None:
            raise UsageError(NO_RUN)
        confirmed, name = planned.confirmed, self._app.loader.name
        named = name if name in [each.name for each in available_models()] else None
        columns = confirmed.inspected
        text = settings(planned.plan, columns.mapping, confirmed.dataset.name, named, columns.file.table.reading)
        file = Download(_FILE, "application/yaml", text.encode())
        return {self.sink: download(file), self.saved: notice(_SAVED, "good")}

    def _accept(self, request: gr.Request) -> Updates:
        session = self._app.session(request)
        if session.of(PrivacyState).planned is None:
            raise UsageError(NO_RUN)
        return self._app.steps(session, 3)

    def timed(self, request: gr.Request) -> Any:
        """The result card with a new duration, if the run was calibrated with another model or with none."""
        planned = self._app.session(request).of(PrivacyState).time(self._app.loader.speed)
        return outcome(planned) if planned else gr.skip()


def budget_of(app: Services, request: gr.Request) -> list[Tree]:
    """The budget of the confirmed data set, with the cost of the planned run."""
    session, ledger = app.session(request), app.ledger(request)
    confirmed, planned = session.of(DataState).confirmed, session.of(PrivacyState).planned
    if confirmed is None:
        return []
    name, unit = confirmed.dataset.name, confirmed.dataset.unit
    snapshot = ledger.snapshot(name, unit)
    if planned is None:
        return budget(snapshot, None, confirmed.warnings)
    repeats = ledger.repeats(name, unit, planned.plan.event, planned.plan.release_claim())
    return budget(snapshot, planned.charge, confirmed.warnings, repeats)
