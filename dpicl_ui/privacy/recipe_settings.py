"""Step 2's choice of stages: three presets, what the planner proposes for them, and an expert's own."""

from __future__ import annotations

import math
from typing import Any

import gradio as gr

from dpicl_ui.frame.guard import PRIVATE
from dpicl_ui.frame.tree import Tree, el, notice, panel
from dpicl_ui.privacy.recipe_cards import stages_in_words
from dpicl_ui.privacy.recipe_form import hidden_stages
from mechanisms.runs.defaults import RECIPE
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage
from mechanisms.runs.recipe_request import RecipeRequest

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
_TITLES = {
    Stage.WRITE: "Writing",
    Stage.VOTE: "Voting",
    Stage.CALIBRATE: "Measuring the habit",
    Stage.CHOOSE: "Choosing",
    Stage.SCORE: "Scoring",
}
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
                    info="Nobody knows then what the result is worth. Where each row has one task, the run is shorter.",
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
                            label=f"{title} (%)",
                            min_width=120,
                            visible=stage not in hidden_stages(RECIPE, True),
                            elem_id=f"share-{stage}",
                        )
                        for stage, title in _TITLES.items()
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
        """No choice, and why."""
        return {
            **self._shown(Kind.TOKENS, True),
            self.kind: gr.Radio(value=Kind.TOKENS.value, interactive=False),
            self.closed: notice(why, "info"),
        }

    def for_texts(self) -> dict[Any, Any]:
        """The choice as it is at first, after there was none."""
        return {
            **self._shown(RECIPE, False),
            self.kind: gr.Radio(value=RECIPE.value, interactive=True),
            self.closed: [],
        }

    @property
    def filled_in(self) -> list[Any]:
        """The components of `filled`."""
        return [self.own, self.division, self.drafts, self.rounds, self.sets, *self.shares]

    def filled(self, recipe: Recipe) -> dict[Any, Any]:
        """The stages as they are proposed, to be changed by hand."""
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
        """Nothing is set by hand any more."""
        return {self.by_hand: False, self.own: gr.Column(visible=False)}

    def told(self, request: object) -> dict[Any, list[Tree]]:
        """The plan in words; nothing where a run has no stages."""
        return {self.words: stages_in_words(request) if isinstance(request, RecipeRequest) else []}


def _percent(share: float) -> float:
    """Cut, not rounded: shares that are 1 together stay so."""
    return math.floor(share * 1e4 + 1e-6) / 100
