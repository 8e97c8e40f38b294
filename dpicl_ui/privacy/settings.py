"""The panels of step 2's settings: what epsilon means, who answers, which stages, what experts set, and their file."""

from __future__ import annotations

import math
from typing import Any

import gradio as gr

from dpicl_ui.data.state import DataState
from dpicl_ui.frame import parameters
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.inputs import File, download, number, sink
from dpicl_ui.frame.services import Services
from dpicl_ui.frame.tree import Tree, el, notice, panel
from dpicl_ui.privacy.cards import stages_in_words
from dpicl_ui.privacy.form import described, hidden_stages, private_mechanisms, transforms
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.accounting import PrivacyTarget, best_guess_in_percent
from mechanisms.demos.demo_set import Answers, Outputs
from mechanisms.errors import UsageError
from mechanisms.inference.models.listing import available_models
from mechanisms.runs.defaults import MECHANISM, MOST_WRITTEN_LABELS, RECIPE
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage
from mechanisms.runs.recipe_request import RecipeRequest, RunRequest, has_stages
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.settings import settings
from mechanisms.runs.stage import stage_class
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class

# What epsilon means to somebody who guesses, in one sentence below its slider.


class Odds:
    """The sentence's component and its handler."""

    def __init__(self, app: Services) -> None:
        self._app = app
        self.sentence = panel(elem_id="odds")

    def wire(self, epsilon: gr.HTML, delta: gr.Number) -> None:
        """Follow epsilon and delta; the sentence does not wait for a calibration."""
        self._shown: dict[str, Any] = {
            "fn": guarded(self.sentence)(self._show),
            "inputs": [epsilon, delta],
            "outputs": self.sentence,
            **PRIVATE,
        }
        gr.on([epsilon.release, delta.blur, delta.submit], queue=False, trigger_mode="always_last", **self._shown)

    def follow(self, filled: gr.events.Dependency) -> None:
        """Show the sentence for the confirmed data set."""
        filled.then(**self._shown)

    def _show(self, epsilon: Any, delta: Any, request: gr.Request) -> dict[Any, Any]:
        confirmed = self._app.session(request).of(DataState).confirmed
        if confirmed is None:
            return {self.sentence: []}
        target = PrivacyTarget(number("Epsilon", epsilon), number("Delta", delta))
        return {self.sentence: odds(target, confirmed.dataset.by_user, confirmed.measured is None)}


def odds(target: PrivacyTarget, by_user: bool, declared: bool) -> list[Tree]:
    """How often a guess whether a unit is in the data can be right; rounded up, so that it stays a bound.

    Counts that were `declared` public are excluded: with them, whoever knows all other rows can infer the unit.
    """
    share = best_guess_in_percent(target.epsilon, target.delta)
    who = "all rows of one user are" if by_user else "one row is"
    apart = " (but for the counts that you declared public)" if declared else ""
    return [
        el(
            "p.odds",
            f"If a coin decides whether {who} in your data, somebody who knows everything else and sees what this run "
            f"releases{apart} guesses the coin right at most ",
            el("strong", f"{share}%"),
            " of the time, instead of 50%.",
        )
    ]


# Step 2's question who writes the answers, where rows are texts with answers.

_WHO = [
    ("Your rows, like the texts and within the same epsilon", Answers.PRIVATE.value),
    ("The model itself, from each released text: free, and your answers are not read", Answers.MODEL.value),
]
_SHORT = "A text that ends early leaves its answer more."


class AnswerSettings:
    """Components; `inputs` are what `PrivacyForm.read` reads."""

    def __init__(self) -> None:
        usual = Outputs()
        with gr.Column(visible=False) as self.body:
            self.answers = gr.Radio(_WHO, value=usual.answers.value, label="Who writes the answers?", elem_id="answers")
            self.tokens = gr.Slider(
                1,
                usual.max_tokens,
                usual.tokens,
                step=1,
                label="Of these tokens, kept for the answer",
                info=_SHORT,
                elem_id="answer-tokens",
            )
        self.answers.input(self._shown, self.answers, self.tokens, **PRIVATE)

    @property
    def inputs(self) -> list[Any]:
        """Who writes them, and their tokens."""
        return [self.answers, self.tokens]

    @property
    def settled(self) -> list[Any]:
        """Events after which there are new values."""
        return [self.answers.input, self.tokens.release]

    def _shown(self, answers: str) -> Any:
        return gr.Slider(visible=answers == Answers.PRIVATE)


# Step 2's choice of stages: three presets, what the planner proposes for them, and an expert's own.

PRESETS = {
    Kind.BOTH: (
        "Both\nYour rows speak, with noise, at every single token, and you watch the noisy distributions; they vote on "
        "drafts too, choose, with noise, which serves best, and score it."
    ),
    Kind.VOTE: (
        "Vote on drafts\nThe model writes drafts without seeing your rows; your rows vote, with noise, for those that "
        "are like them, choose the best set and score it. There are no tokens to watch, and it takes less time."
    ),
    Kind.TOKENS: (
        "Token by token\nYour rows speak, with noise, at every single token, and you watch the noisy distributions. "
        "The text is rougher, and nothing is chosen or scored."
    ),
}
"""Each preset's title, and what happens and what it gives."""
_DIVISIONS = [
    ("Rows: each has one task, and every task the whole epsilon", Division.ROLES.value),
    ("Epsilon: all rows take part in all tasks", Division.EPSILON.value),
]
_MANY_LABELS = (
    f"With more than {MOST_WRITTEN_LABELS} labels, voting on drafts is proposed: writing token by token takes longer "
    "with every label."
)
_BY_HAND = "Set the stages by hand, instead of what is proposed for your sizes and epsilon"


class RecipeSettings:
    """Components; the preset, its plan in words, and the stages. `inputs` are what `RecipeForm.read` reads."""

    def __init__(self) -> None:
        with gr.Column(elem_classes="card"):
            panel(el("h3", "How demonstrations are made"))
            self.kind = gr.Radio(
                [(words, kind.value) for kind, words in PRESETS.items()],
                value=RECIPE.value,
                show_label=False,
                elem_id="recipe",
                elem_classes="presets",
            )
            self.closed = panel(elem_id="recipe-closed")
            with gr.Column() as self.of_stages:
                self.words = panel(elem_id="stages")
                self.no_score = gr.Checkbox(
                    label="Leave out the private score",
                    info="How often the set is right then stays unknown. The run is shorter if each row has one task.",
                    elem_id="no-score",
                )
                self._build_stages()

    def _build_stages(self) -> None:
        with gr.Accordion("The stages in detail", open=False):
            self.by_hand = gr.Checkbox(label=_BY_HAND, elem_id="by-hand")
            with gr.Column(visible=False, elem_classes="own-parameters") as self.own:
                self.division = gr.Radio(_DIVISIONS, value=Division.ROLES.value, label="What the tasks share")
                self.drafts = gr.Slider(
                    1, 256, Recipe.drafts, step=1, label="Drafts of each label in a vote", elem_id="drafts"
                )
                self.rounds = gr.Slider(
                    1,
                    4,
                    Recipe.rounds,
                    step=1,
                    label="Rounds",
                    info="Later drafts are written with the winners before in view.",
                )
                self.sets = gr.Slider(1, 6, Recipe.sets, step=1, label="Sets of winners to choose from")
                self.tokens = gr.Slider(
                    5, 256, RecipeRequest.tokens, step=1, label="Longest draft (tokens)", elem_id="longest"
                )
                with gr.Row():
                    self.shares = [
                        gr.Number(
                            0,
                            label=f"{stage_class(stage).task_title} (%)",
                            min_width=120,
                            visible=stage not in hidden_stages(RECIPE, True),
                            elem_id=f"share-{stage}",
                        )
                        for stage in Stage
                    ]

    @property
    def inputs(self) -> list[Any]:
        """What `RecipeForm.read` reads, in its order."""
        return [
            self.kind, self.no_score, self.by_hand, self.division, self.drafts, self.rounds, self.sets, self.tokens,
            *self.shares,
        ]  # fmt: skip

    @property
    def settled(self) -> list[Any]:
        """Events after which a stage has new values; the others ask for a new proposal first."""
        return [
            *(each.release for each in (self.drafts, self.rounds, self.sets, self.tokens)),
            *(event for each in self.shares for event in (each.blur, each.submit)),
        ]

    def wire(self, tokens_only: list[Any], writing: list[Any]) -> None:
        """Connect the preset to what it shows or hides.

        Args:
            tokens_only: what a run without stages has.
            writing: what every run has that writes token by token.
        """
        self._tokens_only, self._writing = tokens_only, writing
        shown = [self.of_stages, *self.shares, *tokens_only, *writing]
        for each in (self.kind, self.no_score):
            each.input(self._shown, [self.kind, self.no_score], shown, **PRIVATE)

    def _shown(self, kind: str, no_score: bool) -> dict[Any, Any]:
        hidden = hidden_stages(Kind(kind), not no_score)
        return {
            self.of_stages: gr.Column(visible=kind != Kind.TOKENS),
            **{each: gr.Number(visible=stage not in hidden) for stage, each in zip(Stage, self.shares, strict=True)},
            **{each: type(each)(visible=kind == Kind.TOKENS) for each in self._tokens_only},
            **{each: type(each)(visible=kind != Kind.VOTE) for each in self._writing},
        }

    @property
    def fixed(self) -> list[Any]:
        """The components of `by_token` and `for_texts`."""
        return [
            self.kind, self.closed, self.of_stages, *self.shares, *self._tokens_only, *self._writing,
        ]  # fmt: skip

    def by_token(self, why: str) -> dict[Any, Any]:
        """The components without a choice, and the reason."""
        return {
            **self._shown(Kind.TOKENS, True),
            self.kind: gr.Radio(value=Kind.TOKENS.value, interactive=False),
            self.closed: notice(why, "info"),
        }

    def for_texts(self, kind: Kind) -> dict[Any, Any]:
        """The components with a choice, and the recipe that suits the labels."""
        return {
            **self._shown(kind, False),
            self.kind: gr.Radio(value=kind.value, interactive=True),
            self.closed: notice(_MANY_LABELS, "info") if kind is Kind.VOTE else [],
        }

    @property
    def filled_in(self) -> list[Any]:
        """The components of `filled`."""
        return [self.own, self.division, self.drafts, self.rounds, self.sets, *self.shares]

    def filled(self, recipe: Recipe) -> dict[Any, Any]:
        """The proposed stages, to be changed by hand."""
        return {
            self.own: gr.Column(visible=True),
            self.division: recipe.division.value,
            self.drafts: recipe.drafts,
            self.rounds: recipe.rounds,
            self.sets: recipe.sets,
            **{
                component: _percent(recipe.shares.get(stage, 0.0))
                for stage, component in zip(Stage, self.shares, strict=True)
            },
        }

    def forgotten(self) -> dict[Any, Any]:
        """The components with nothing set by hand."""
        return {self.by_hand: False, self.own: gr.Column(visible=False)}

    def told(self, request: RunRequest | None) -> dict[Any, list[Tree]]:
        """The plan in words; empty without stages or without a plan."""
        return {self.words: stages_in_words(request) if request and has_stages(request) else []}


def _percent(share: float) -> float:
    """A share in percent, cut and not rounded, so that shares of 1 in sum stay so."""
    return math.floor(share * 1e4 + 1e-6) / 100


# Step 2's settings for experts: mechanism, transform, sampling; each parameter described by its owner.

SCHEMES = {
    Scheme.PER_DEMONSTRATION: "One sample of records for each demonstration (fast)",
    Scheme.PER_TOKEN: "A new sample for every token (slow; amplifies privacy token by token)",
    Scheme.DISJOINT: "Batches without overlap: no record serves twice (fast; good for several demonstrations)",
}
"""What each scheme is called here."""
_ROWS = [("One record a row (less noise)", True), ("Subsets of N records a row, as in Tang et al. 2024", False)]
_DISJOINT = (
    "Batches without overlap: a secret key sends every record to one batch for good, and each demonstration reads one "
    "batch. Nobody is drawn by chance, so sampling hides nobody; but a record pays for one demonstration only: more "
    "demonstrations for a label need no more noise."
)


class ExpertSettings:
    """The components inside the accordion; those that do not apply to the present choice are hidden."""

    def __init__(self) -> None:
        self.own: list[gr.Number | gr.Checkbox] = []
        self._build_mechanisms()
        self._build_transforms()
        self._build_sampling()
        self._wire()

    def _build_mechanisms(self) -> None:
        mechanisms = private_mechanisms()
        self.mechanism = gr.Radio(
            [(each.title, each.name) for each in mechanisms], value=MECHANISM, label="Mechanism", elem_id="mechanism"
        )
        self._mechanisms: list[gr.Column] = []
        for mechanism in mechanisms:
            with gr.Column(visible=mechanism.name == MECHANISM, elem_classes="own-parameters") as group:
                panel(el("p.muted", f"{mechanism.citation}. Its noise is solved for and shown among the results."))
                self.own += parameters.components(mechanism, described())
            self._mechanisms.append(group)

    def _build_transforms(self) -> None:
        with gr.Column(visible=mechanism_class(str(self.mechanism.value)).takes_transform) as self._transform:
            self.transform = gr.Radio(
                [(each.title, each.name) for each in transforms()],
                value="none",
                label="Transform of each row before the noise",
                elem_id="transform",
            )
            self._transforms: list[gr.Column] = []
            for transform in transforms():
                with gr.Column(visible=False, elem_classes="own-parameters") as group:
                    panel(el("p.muted", f"{transform.citation}. It costs no privacy."))
                    self.own += parameters.components(transform, described())
                self._transforms.append(group)

    def _build_sampling(self) -> None:
        self.scheme = gr.Radio(
            [(title, scheme.value) for scheme, title in SCHEMES.items()],
            value=SamplingPlan.scheme.value,
            label="Sampling",
            elem_id="scheme",
        )
        self._disjoint = panel(el("p.muted", _DISJOINT), visible=False)
        self.unit_rows = gr.Radio(_ROWS, value=SamplingPlan.unit_rows, label="Rows", elem_id="unit-rows")
        self.per_subset = gr.Number(
            2, label="Records in a subset (N)", precision=0, minimum=1, visible=False, elem_id="per-subset"
        )
        self.candidates = gr.Slider(
            4,
            200,
            SynthesisRequest.candidates,
            step=1,
            label="Candidate tokens (K)",
            info="The likeliest of public text alone. Fewer give noise less to choose from.",
            elem_id="candidates",
        )

    @property
    def settled(self) -> list[Any]:
        """Events after which the settings have new values."""
        typed = (self.per_subset, *(each for each in self.own if isinstance(each, gr.Number)))
        switches = (each for each in self.own if isinstance(each, gr.Checkbox))
        return [
            self.candidates.release,
            *(each.input for each in (self.mechanism, self.transform, self.scheme, self.unit_rows)),
            *(each.input for each in switches),
            *(each.blur for each in typed),
            *(each.submit for each in typed),
        ]

    def _showing(self, mechanism: str, transform: str) -> dict[Any, Any]:
        """Which components the present choice shows and hides."""
        names = [each.name for each in private_mechanisms()], [each.name for each in transforms()]
        return {
            self._transform: gr.Column(visible=mechanism_class(mechanism).takes_transform),
            **{
                group: gr.Column(visible=name == mechanism)
                for name, group in zip(names[0], self._mechanisms, strict=True)
            },
            **{
                group: gr.Column(visible=name == transform != "none")
                for name, group in zip(names[1], self._transforms, strict=True)
            },
        }

    def _wire(self) -> None:
        shown = [self._transform, *self._mechanisms, *self._transforms]
        for each in (self.mechanism, self.transform):
            each.input(self._showing, [self.mechanism, self.transform], shown, **PRIVATE)
        self.scheme.input(
            lambda chosen: gr.HTML(visible=chosen == Scheme.DISJOINT.value), self.scheme, self._disjoint, **PRIVATE
        )
        self.unit_rows.input(lambda each: gr.Number(visible=not each), self.unit_rows, self.per_subset, **PRIVATE)


# The planned run's settings as a file, for the same run from the command line.

FILE_NAME = "settings.yaml"
NO_RUN = "No run with these settings yet: change them, or wait until they are calibrated."
"""Why nothing of the plan can be written down."""
_SAVED = (
    f"Saved by your browser. synthesize FILE --config {FILE_NAME} asks for the same run, which is charged as one of "
    "its own. The file names your columns and labels, and holds no row."
)


class SettingsFile:
    """A button, and what it says below it."""

    def __init__(self, app: Services) -> None:
        self._app = app
        with gr.Row(elem_classes="actions"):
            save = gr.Button("Settings for the command line", size="sm", elem_id="save-settings")
        self.notice = panel(elem_id="settings-notice")
        self.sink = sink()
        save.click(guarded(self.notice)(self.saved), None, [self.sink, self.notice], **PRIVATE)

    def saved(self, request: gr.Request) -> dict[Any, Any]:
        """The file of the run that is planned now.

        Raises:
            UsageError: no run is planned, or the command line cannot name one of its labels.
        """
        session = self._app.session(request)
        planned = session.of(PrivacyState).planned
        if planned is None:
            raise UsageError(NO_RUN)
        confirmed, name = planned.confirmed, self._app.loader.name
        named = name if name in [each.name for each in available_models()] else None
        columns = confirmed.columns
        text = settings(planned.request, columns.mapping, confirmed.dataset.name, named, columns.file.table.reading)
        return {
            self.sink: download(session, File(FILE_NAME, "application/yaml", text.encode())),
            self.notice: notice(_SAVED, "good"),
        }
