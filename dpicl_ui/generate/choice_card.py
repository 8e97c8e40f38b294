"""The choice: the sets that competed, one rung each, and the one that serves best."""

from __future__ import annotations

from dpicl_ui.frame.tree import Tree, el
from dpicl_ui.generate.recipe_view import RecipeView
from mechanisms.runs.events import CandidateSet
from mechanisms.runs.judging import among_in_words, ways
from mechanisms.runs.sets import NONE, PLAIN, PUBLIC

_NAMES = {NONE: "No demonstrations", PUBLIC: "Public only", f"{NONE}{PLAIN}": f"No demonstrations{PLAIN}"}
_READ = {
    "none": "read as the model answers; exported with the measured prior",
    "contextual": "calibrated by empty queries; exported with the measured prior, fitted from there",
    "prior": "read with the measured prior",
    "shares": "read with the measured prior, fitted to the declared shares of the labels",
}
"""What a correction is called; whichever won, the set that is exported is read with a fitted one, as step 4 says."""
_UNKNOWN = (
    "Only the winner was released. Nothing is known of the others' order, or of how close it was: do not read this "
    "ladder as a ranking."
)
_MEASURED = (
    "Percentages: the probability that the model gives a label, on average over the {unit}s, measured with noise."
)


def choice_card(view: RecipeView) -> list[Tree]:
    """The ladder; nothing before the sets are made."""
    if not view.sets:
        return []
    return [
        el("div.card-head", el("h3", "The choice"), el("span.tag.public", "Releasable")),
        el("p.muted", _how_many(view)),
        el("ul.ladder", *(_rung(view, each) for each in view.sets)),
        el("p.muted", _MEASURED.format(unit=view.unit)) if view.priors else "",
    ]


def no_demonstrations(view: RecipeView) -> str:
    """What it means that the choice was "none"; empty where it was not."""
    if view.choice is None or not view.without:
        return ""
    return (
        "No demonstrations: this model answers best without examples here. The export then carries the measured prior "
        "alone."
    )


def _how_many(view: RecipeView) -> str:
    """As the certificate counts: a set and a correction are one of those that compete."""
    made, sets = view.run.demo_set, len(view.sets)
    if view.choice is not None:
        return f"Chosen among {among_in_words(len(view.choice.among), sets)}. {_UNKNOWN}"
    sizes = made.public_sizes if made else None
    among = among_in_words(sets * ways(sizes, made.weighing), sets) if made and sizes else f"{sets} sets"
    return f"The choice is among {among}. {_waiting(view)}"


def _waiting(view: RecipeView) -> str:
    return f"The {view.unit}s will say which of them serves best." if view.run.phase == "running" else ""


def _rung(view: RecipeView, each: CandidateSet) -> Tree:
    chosen = view.chosen == each
    count = len(each.demonstrations)
    size = f"{count} demonstration{'' if count == 1 else 's'}" if count else "the instruction alone"
    return el(
        "li.rung" + (".chosen" if chosen else ""),
        el("strong", _NAMES.get(each.name, each.name[:1].upper() + each.name[1:])),
        el("span.muted", "; ".join(filter(None, (size, _leaning(view, each.name))))),
        el("span.rung-read", f"Chosen, {_correction(view)}") if chosen else None,
    )


def _correction(view: RecipeView) -> str:
    correction = view.choice.chosen[1] if view.choice else ""
    return _READ.get(correction, correction)


def _leaning(view: RecipeView, name: str) -> str:
    values = view.priors.get(name, ())
    if not values:
        return ""
    most = max(range(len(values)), key=lambda i: values[i])
    return f"leans to {view.labels[most]}, {100 * min(1.0, max(0.0, values[most])):.0f}%"
