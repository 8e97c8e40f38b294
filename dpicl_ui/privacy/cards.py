"""What step 2 shows: the guarantee, the noise and the time."""

from __future__ import annotations

from typing import Any

from dpicl_ui.frame.cards import fact
from dpicl_ui.frame.tree import Tree, el, notice
from dpicl_ui.privacy.duration import duration
from dpicl_ui.privacy.recipe_cards import stage_facts, why_so_long
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.discovery import parameters
from mechanisms.runs.preview import Preview
from mechanisms.runs.request import SynthesisRequest

CALIBRATING: list[Tree] = [
    el(
        "div.outcome.busy",
        el("div.card-head", el("h3", "What this run promises")),
        el("p.spinner", "Calibrating the noise with two accountants …", role="status"),
    )
]


def clarity(signal_to_noise: float) -> str:
    """Signal-to-noise of a token in words."""
    if signal_to_noise >= 10:
        return "clear: the noise rarely changes a token that the records agree on"
    if signal_to_noise >= 4:
        return "fair: only tokens that most records agree on stand out"
    return "poor: tokens will be close to random. Raise epsilon or M, or write fewer tokens"


def outcome(preview: Preview[Any]) -> list[Tree]:
    """The consequences of the settings."""
    claim, others, remark = preview.claim, list[Tree](), ""
    if preview.request.stages:
        facts, remark = stage_facts(preview.request), why_so_long(preview)
    else:
        solved, others = calibrated_values(preview.request.mechanism)
        signal = preview.request.signal_to_noise
        facts = [*solved, fact("Signal-to-noise of a token", f"{signal:.3g}", clarity(signal)), *_kept(preview.request)]
    seconds = duration(preview.seconds) if preview.seconds is not None else "known when the model is loaded"
    return [
        el(
            "div.outcome",
            el("div.card-head", el("h3", "What this run promises"), el("span.tag.public", "Part of the certificate")),
            el("p.guarantee", preview.guarantee),
            *(tree for warning in preview.warnings for tree in notice(warning, "warn")),
            el(
                "dl.facts",
                *facts,
                fact("Time on this machine", seconds, remark),
                fact(
                    "Epsilon by two accountants",
                    f"{claim.epsilon:.4g} ({claim.accountant})",
                    f"checked by {claim.check_accountant}: {claim.check:.4g}",
                ),
                *_measured(preview.request.measured),
            ),
            el("details", el("summary", "The mechanism's other values"), el("dl.facts", *others)) if others else None,
        )
    ]


def _kept(request: SynthesisRequest) -> list[Tree]:
    if request.kept is None:
        return []
    return [fact("Demonstrations for each label", f"{request.plan.shots} paid for, {request.kept} kept")]


def _measured(measured: MeasuredSizes | None) -> list[Tree]:
    if measured is None:
        return []
    sizes = ", ".join(f"{label}: {size:,}" for label, size in measured.sizes.items())
    remark = f"Upper bounds with noise. Counting has cost {measured.epsilon:g} of the epsilon above."
    return [fact("Label sizes as measured", sizes, remark)]


def refused(reason: str) -> list[Tree]:
    """Why the settings allow no run, in one line."""
    return [el("div.outcome", el("div.card-head", el("h3", "No run with these settings")), *notice(reason))]


def calibrated_values(mechanism: Any) -> tuple[list[Tree], list[Tree]]:
    """A mechanism's parameters as calibrated, read-only: the one that was solved for, and the others."""
    solved, others = list[Tree](), list[Tree]()
    for each in parameters(mechanism):
        shown = fact(each.label, f"{getattr(mechanism, each.name):.4g}", each.help)
        (solved if each.name == mechanism.calibrated else others).append(shown)
    return solved, others
