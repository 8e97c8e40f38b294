"""The facts of a certificate for people: one list for the screen and for paper."""

from __future__ import annotations

from typing import Any, NamedTuple

from mechanisms.accounting import cost_in_words
from mechanisms.demos.demo_set import Certificate, DemoSet, finite
from mechanisms.errors import printable
from mechanisms.exports.export_format import Released
from mechanisms.records import person, unit_in_words
from mechanisms.rounding import percent_down, percent_up
from mechanisms.steps import mechanism_class, mechanism_names
from mechanisms.tallies import Weighing

BALANCED = "Private balanced accuracy"


class Fact(NamedTuple):
    """A named value with a remark."""

    name: str
    value: str
    remark: str = ""


def mechanism_in_words(held: Certificate) -> str:
    """The title of a certificate's mechanism, or its recipe."""
    return mechanism_class(held.mechanism).title if held.mechanism in mechanism_names() else held.mechanism


def writing_in_words(held: Certificate) -> str:
    """The mechanism with which a recipe writes token by token; empty where it writes none, or is none."""
    written = held.parameters.get("written")
    name = written.get("mechanism") if isinstance(written, dict) else None
    return f"token by token: {mechanism_class(name).title}" if name in mechanism_names() else ""


def scored_facts(demo_set: DemoSet) -> list[Fact]:
    """The private accuracies with their intervals, beside the accuracy of always naming the largest label."""
    score, majority = demo_set.score, demo_set.majority
    if score is None:
        return [Fact("Private score", "not measured")]
    largest = "Naming the largest label every time"
    naming = [Fact(largest, percent_up(majority[1], 1), "by the public label sizes")] if majority else []
    by_rows = score.weighing is Weighing.ROWS
    what = "Private score" if by_rows else f"{BALANCED} (labels count the same)"
    same = "the same" if _equal_sizes(demo_set) else "not measured"
    other = [Fact(BALANCED, same, balanced_in_words(demo_set))] if by_rows else []
    rows = "took part in nothing that was chosen" if score.held_out else "may have taken part in what was chosen"
    return [
        Fact(
            f"{what}, {name}",
            percent_down(each.accuracy, 1),
            f"{score.percent} interval {percent_down(each.interval[0], 1)} to {percent_up(each.interval[1], 1)}, of "
            f"sampling and noise; its rows {rows}",
        )
        for name, each in score.arms.items()
    ] + [*naming, *other]


def balanced_in_words(demo_set: DemoSet) -> str:
    """How a set's private score relates to balanced accuracy; empty if there is no score."""
    if demo_set.score is None:
        return ""
    if demo_set.score.weighing is Weighing.LABELS:
        return (
            "Each label counts the same here, however many rows it has: these are balanced accuracies, and always "
            "naming one label is no better than chance."
        )
    unit = person(demo_set.certificate.unit)
    if _equal_sizes(demo_set):
        return f"By the public sizes all labels have equally many {unit}s: these are balanced accuracies too."
    return (
        f"Each {unit} counts the same here. Private balanced accuracy, in which each label counts the same, was not "
        "measured: it would have cost further epsilon."
    )


def _equal_sizes(demo_set: DemoSet) -> bool:
    sizes = demo_set.public_sizes
    return sizes is not None and len(set(sizes.values())) == 1


def provenance(released: Released) -> dict[str, Any]:
    """Source and promise as plain JSON: the claim, the marks, and the digest of the demo-set file.

    `prior` is the measured correction, to add to each label's log-probability under the named model.
    """
    made, held = released.demo_set, released.demo_set.certificate
    return {
        "synthetic": True,
        "private": held.private,
        **({"reason": held.reason} if held.reason else {}),
        "epsilon": finite(held.claim.epsilon),
        "delta": held.claim.delta,
        "unit": held.unit,
        "mechanism": held.mechanism,
        "curator_diagnostics_shown": bool(held.disclosures),
        **({"shown": list(held.disclosures)} if held.disclosures else {}),
        "model": made.model_id,
        **({"prior": dict(made.prior)} if made.prior else {}),
        "demo_set_digest": released.digest,
    }


def in_a_line(released: Released) -> str:
    """The provenance in one line."""
    held = released.demo_set.certificate
    claim = f"{cost_in_words(held.claim.epsilon, held.claim.delta)} for {unit_in_words(held.unit)}"
    said = [
        f"synthetic; {claim}" if held.private else f"synthetic; not private: {held.reason or 'nothing is promised'}",
        *([f"known to the curator: {', '.join(held.disclosures)}"] if held.disclosures else []),
        f"demo set {released.digest}",
    ]
    return printable("; ".join(said))
