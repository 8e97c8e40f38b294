"""What a run leaves on the screen: finished demonstrations, and how it ended."""

from __future__ import annotations

from collections import Counter

from dpicl_ui.frame.tree import Tree, el
from dpicl_ui.generate.choice_card import no_demonstrations
from dpicl_ui.generate.recipe_view import RecipeView
from dpicl_ui.generate.record_card import answered, counted, record
from mechanisms.demos.demo_set import DemoSet
from mechanisms.records import Demonstration
from mechanisms.runs.events import TokenCounts
from mechanisms.runs.recipe import Stage

MANY = 12
"""Demonstrations beyond which they are folded up."""

_NOTHING_YET = "Whole demonstrations are collected here. They are synthetic and may be shared."
_SHARE = "The demonstrations may be shared with the certificate of step 5."


def demonstration(each: Demonstration, demo_set: DemoSet | None = None, tokens: TokenCounts | None = None) -> Tree:
    """One synthetic example; a record, or a text with its answer, name by name.

    Args:
        demo_set: says how it is to be read; without one it is a text.
        tokens: who decided those of a record, where that is known.
    """
    if demo_set and each.output is not None:
        shown = answered(each, demo_set.template)
    else:
        shown = record(each.text) if demo_set and demo_set.schema else el("p", each.text or "(empty)")
    return el("div.demo", el("span.chip", each.label), shown, counted(tokens) if tokens else None)


def demonstrations(demo_set: DemoSet) -> list[Tree]:
    """All examples of a set."""
    return [demonstration(each, demo_set) for each in demo_set.demonstrations]


def unfolded(*shown: Tree) -> Tree:
    """Examples that are shown on demand."""
    return el("details", el("summary", "Show the demonstrations"), el("div.demos", *shown))


def finished(view: RecipeView) -> list[Tree]:
    """The demonstrations as far as they are known."""
    head = el("div.card-head", el("h3", "Demonstrations"), el("span.tag.public", "Releasable"))
    known = view.demonstrations
    if not known:
        return [head, el("p.muted", no_demonstrations(view) or _NOTHING_YET)]
    marked = view.run.demo_set is not None and bool(view.run.demo_set.certificate.shown)
    shown = (demonstration(each, view.run.demo_set, tokens) for each, tokens in zip(known, counts(view), strict=True))
    return [
        head,
        el("p.muted", _how_many(view)),
        el("p.notice.warn", "Marked: clean values of this data set are known.") if marked else "",
        unfolded(*shown) if len(known) > MANY else el("div.demos" if view.ended else "div", *shown),
    ]


def counts(view: RecipeView) -> list[TokenCounts | None]:
    """Who decided the tokens of each known demonstration: None where it is no record."""
    completed = list(view.run.completed)
    found: list[TokenCounts | None] = []
    for each in view.demonstrations:
        own = next((event for event in completed if event.demonstration == each), None)
        if own is not None:
            completed.remove(own)  # another one of the same text has counts of its own
        found.append(own.tokens if own is not None else None)
    return found


def _how_many(view: RecipeView) -> str:
    known = len(view.demonstrations)
    if view.ended and view.run.kept is not None:
        which = "the surest for their label" if view.run.phase == "completed" else "the first ones: nothing was chosen"
        return f"{known} kept of {len(view.run.finished)} that were written and paid for: {which}"
    if not view.stages:
        return f"{known} of {view.run.planned}"
    if Stage.CHOOSE in view.stages and view.choice is None and not view.ended:
        return f"{known} so far: the best until the choice is made"
    return f"{known} of {view.shots * len(view.labels)}"


def outcome_of_run(view: RecipeView) -> tuple[str, str]:
    """How a run ended, in one line, and the line's kind."""
    kept = len(view.demonstrations)
    match view.run.phase:
        case "completed":
            return " ".join(["Done.", *_cut_off(view), no_demonstrations(view) or _SHARE]), "good"
        case "stopped":
            what = "1 whole demonstration is kept" if kept == 1 else f"{kept} whole demonstrations are kept"
            return f"Stopped. {what}; what was spent stays spent, because what was shown cannot be taken back.", "warn"
        case "failed":
            return view.run.message, "bad"
    return "", "info"


def _cut_off(view: RecipeView) -> list[str]:
    """What became of demonstrations that were being written when the run was cut off."""
    said = {True: "finished from public text alone", False: "left out"}
    counted = Counter(event.finished for event in view.run.cut_off)
    return [f"Cut off, and {words}: {counted[each]}." for each, words in said.items() if counted[each]]


def outcome_of_loading(view: RecipeView) -> tuple[str, str]:
    """What to say of a saved run that is on the screen, and the line's kind."""
    claim = view.run.demo_set.certificate.claim if view.run.demo_set else None
    promise = f" of epsilon {claim.epsilon:.3g} at delta {claim.delta:g}" if claim else ""
    return (
        f"A saved run{promise}: its certificate was accounted anew and holds. The file is not signed, so whether its "
        "noisy values were drawn as it says is on trust.",
        "info",
    )
