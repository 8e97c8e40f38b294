"""A recipe's stages in a row, and what is being asked of the data now."""

from __future__ import annotations

from dpicl_ui.frame.tree import Tree, el
from dpicl_ui.generate.recipe_view import RecipeView
from mechanisms.runs.recipe import Stage

_NAMES = {
    Stage.WRITE: "Write",
    Stage.VOTE: "Vote",
    Stage.CALIBRATE: "Calibrate",
    Stage.CHOOSE: "Choose",
    Stage.SCORE: "Score",
}
_ASKED = {
    Stage.WRITE: "Token by token: what would the {unit}s write next?",
    Stage.VOTE: "The {unit}s vote: which draft is most like me?",
    Stage.CALIBRATE: "Measuring how much the model prefers each label.",
    Stage.CHOOSE: "The {unit}s judge whole sets: which one finds my label best?",
    Stage.SCORE: "Counting how often the {unit}s' labels are found.",
}


def stages_card(view: RecipeView) -> list[Tree]:
    """The stages, marked as done, under way or to come; nothing for a run without stages."""
    if not view.stages:
        return []
    running = view.run.phase == "running"
    at = view.stages.index(view.stage) if view.stage in view.stages else -1
    past = len(view.stages) if view.run.phase == "completed" else at
    marks = ("done" if i < past else "current" if i == at and running else "later" for i in range(len(view.stages)))
    return [
        el("ul.stages", *(el(f"li.stage.{mark}", _NAMES[each]) for each, mark in zip(view.stages, marks, strict=True))),
        *(_under_way(view) if running else []),
    ]


def _under_way(view: RecipeView) -> list[Tree]:
    words = view.drafting or (_ASKED[view.stage].format(unit=view.unit) if view.stage else "Starting …")
    meter = el("div.meter.private", el("div.meter-fill.by-share", numbers={"share": round(view.done or 0.0, 3)}))
    return [el("p.muted", words, role="status"), meter if view.done is not None else ""]
