"""What a run leaves on the screen: finished demonstrations, and how it ended."""

from __future__ import annotations

from dpicl_ui.frame.tree import Tree, el
from dpicl_ui.generate.run_view import RunView
from mechanisms.records import Demonstration


def demonstration(each: Demonstration) -> Tree:
    """One synthetic example."""
    return el("div.demo", el("span.chip", each.label), el("p", each.text or "(empty)"))


def finished(view: RunView) -> list[Tree]:
    """The demonstrations written so far."""
    head = el("div.card-head", el("h3", "Demonstrations"), el("span.tag.public", "Releasable"))
    if not view.finished:
        return [head, el("p.muted", "Whole demonstrations are collected here. They are synthetic and may be shared.")]
    counted = f"{len(view.finished)} of {view.planned}"
    marked = view.demo_set is not None and bool(view.demo_set.certificate.shown)
    return [
        head,
        el("p.muted", counted),
        el("p.notice.warn", "Marked: clean values of this data set are known.") if marked else "",
        *(demonstration(each) for each in view.finished),
    ]


def outcome_of_run(view: RunView) -> tuple[str, str]:
    """How a run ended, in one line, and the line's kind."""
    kept = len(view.finished)
    match view.phase:
        case "completed":
            return "Done. The demonstrations may be shared with the certificate of step 5.", "good"
        case "stopped":
            what = "1 whole demonstration is kept" if kept == 1 else f"{kept} whole demonstrations are kept"
            return f"Stopped. {what}; what was spent stays spent, because what was shown cannot be taken back.", "warn"
        case "failed":
            return view.message, "bad"
    return "", "info"
