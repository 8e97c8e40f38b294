"""The private score: how often the labels of the data set's own rows are found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from dpicl_ui.frame.tree import Tree, el, notice
from dpicl_ui.generate.recipe_view import RecipeView
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import ArmScore, Score
from mechanisms.evaluation.evaluate import verdict_of_score
from mechanisms.exports.provenance import balanced_in_words

OWN = "demonstrations"
_NAMES = {"zero-shot": "Zero-shot", "public-only": "Public only", OWN: "Demonstrations"}
_TOO_FEW = "too few rows"
_UNTOUCHED = "These rows took no part in what was written or chosen."
_LESS_FITTED = (
    "What it is compared with is corrected less finely, out of fewer rows: read with as much care it may do better."
)
_NO_BETTER = (
    "This score does not show that the set is better than naming the largest label every time, by the public sizes."
)
_USERS = "Every user counts the same."
TOUCHED = "These rows may have taken part in the choice: the chosen set's figure may be a little optimistic."
_DUST = 1e-9
"""Of float: .71 times 100 is no more than 71."""


def score_card(view: RecipeView) -> list[Tree]:
    """Intervals of all arms on one axis; nothing where there is no score."""
    score = view.score
    if score is None:
        return []
    arms = sorted(score.arms, key=lambda name: list(_NAMES).index(name) if name in _NAMES else len(_NAMES))
    return [
        el("div.card-head", el("h3", "On your own rows"), el("span.tag.public", "Releasable")),
        el("p.guarantee", _verdict(view) or _sentence(view)),
        *([el("p.muted", _sentence(view))] if _verdict(view) else []),
        *(weighed(replace(view.run.demo_set, score=score)) if view.run.demo_set else []),
        el(
            "div.ranges",
            *(_range(_name(view, arm), score.arms[arm], arm == OWN) for arm in arms),
            el("div.range-row.range-ends", el("span.range-axis", el("span", "0"), el("span", "50"), el("span", "100"))),
        ),
        el("p.muted", " ".join(_remarks(view, score))),
        *notice(_no_better(view), "warn"),
        *notice("" if score.untouched else TOUCHED, "warn"),
    ]


def _remarks(view: RecipeView, score: Score) -> Iterator[str]:
    yield f"{score.percent} intervals, of the noise and of which rows happened to be asked."
    if OWN in score.arms:
        yield _LESS_FITTED
    if score.untouched:
        yield _UNTOUCHED
    if view.unit != "row":
        yield _USERS


def of_hundred(arm: ArmScore) -> str:
    """An interval in whole rows of 100, rounded outwards: "71 to 78"."""
    low, high = arm.interval
    return f"{math.floor(100 * low + _DUST)} to {math.ceil(100 * high - _DUST)}"


def _name(view: RecipeView, arm: str) -> str:
    return "As exported" if arm == OWN and view.without else _NAMES.get(arm, arm)


def _sentence(view: RecipeView) -> str:
    assert view.score is not None
    arms = view.score.arms
    found, plain = arms.get(view.score.exported(view.without)), arms.get("zero-shot")
    if found is None or found.wide:
        return "Too few rows took part to say how often labels are found."
    words = f"The exported set finds the label of {of_hundred(found)} of 100 of your own rows"
    if plain is not None and plain is not found and not plain.wide:
        words += f"; zero-shot, {of_hundred(plain)}"
    majority = _majority(view)
    return f"{words}; the largest label, named every time, {majority}." if majority is not None else f"{words}."


def _verdict(view: RecipeView) -> str:
    """What the exported set is better than, worse than, or not shown to differ from."""
    made = view.run.demo_set
    majority = made.majority[1] if made and made.majority else None
    return verdict_of_score(view.score, view.without, majority) if view.score else ""


def weighed(demo_set: DemoSet) -> list[Tree]:
    """What counts the same in a set's score, and what that says of balanced accuracy."""
    words = balanced_in_words(demo_set)
    return [el("p.muted", words)] if words else []


def _majority(view: RecipeView) -> int | None:
    """Of 100 rows, those that have the largest label, by the public sizes."""
    majority = view.run.demo_set.majority if view.run.demo_set else None
    return None if majority is None else round(100 * majority[1])


def _no_better(view: RecipeView) -> str:
    """What is said where the score does not tell the exported set from naming the largest label every time."""
    assert view.score is not None
    found, majority = view.score.arms.get(view.score.exported(view.without)), _majority(view)
    if found is None or found.wide or majority is None or 100 * found.interval[0] > majority:
        return ""
    return _NO_BETTER


def _range(name: str, arm: ArmScore, own: bool) -> Tree:
    low, high = arm.interval
    few = arm.wide
    return el(
        "div.range-row" + (".own" if own else "") + (".few-rows" if few else ""),
        el("span.range-name", name, title=name),
        el(
            "span.range-track",
            el("span.range", numbers={"low": round(low, 4), "high": round(high, 4)}),
            el("span.range-point", numbers={"at": round(arm.accuracy, 4)}) if not few else None,
            role="img",
            aria_label=f"{of_hundred(arm)} of 100",
        ),
        el("span.range-number", _TOO_FEW if few else of_hundred(arm)),
    )
