"""Cards of a finished run: its demonstrations, how it ended, and the private score."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dpicl_ui.frame.tree import Tree, el, fact, notice
from dpicl_ui.generate.charts import no_demonstrations
from dpicl_ui.generate.run_view import RecipeView
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import ArmScore, Score
from mechanisms.evaluation.evaluate import verdict_of_score
from mechanisms.evaluation.text_figures import text_figures
from mechanisms.exports.facts_label import TITLE, label_of_facts
from mechanisms.exports.provenance import balanced_in_words
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.rounding import rounded_up
from mechanisms.runs.events import TokenCounts
from mechanisms.runs.recipe import Stage

# A record, or a text with its answer, as a tree: names and values as text nodes, and whose tokens they are.


def record(text: str) -> Tree:
    """A record's text as a list of names and values; as it stands where it is no record."""
    try:
        said = json.loads(text)
        return _value(said) if isinstance(said, dict) else el("p", text)
    except (ValueError, RecursionError):
        return el("p", text)


def answered(each: Demonstration, template: PromptTemplate) -> Tree:
    """A text and its answer, each under its name."""
    return el("dl.record", _field(template.text, each.text), _field(template.output or "", each.output))


def counted(counts: TokenCounts) -> Tree:
    """The token counts of a record, by how the tokens were decided."""
    total = counts.charged + counts.forced + counts.rest
    parts = f"{counts.charged} charged, {counts.forced} forced by the schema, {counts.rest} public"
    return el("p.muted.counts-of", f"{total} tokens: {parts}")


def _value(value: Any) -> Tree:
    if isinstance(value, dict):
        return el("dl.record", *(_field(name, each) for name, each in value.items()))
    if isinstance(value, list):
        return el("ul", *(el("li", el("span.chip", each) if isinstance(each, str) else _value(each)) for each in value))
    return value if isinstance(value, str) else json.dumps(value)


def _field(name: str, value: Any) -> Tree:
    return el("div.record-field", el("dt", name), el("dd", _value(value)))


# What a run leaves on the screen: finished demonstrations, and how it ended.

MANY = 12
"""Number of demonstrations above which they are folded."""

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
    """Examples that unfold on a click; many have a search above them."""
    search = ".searched" if len(shown) > MANY else ""
    return el("details", el("summary", "Show the demonstrations"), el(f"div.demos{search}", *shown))


def facts_label(demo_set: DemoSet) -> list[Tree]:
    """The label of facts, section by section."""
    return [
        each
        for section in label_of_facts(demo_set)
        for each in (el("h3", section.title), el("dl.facts.two", *(fact(*one) for one in section.facts)))
    ]


def finished(view: RecipeView) -> list[Tree]:
    """The demonstrations so far."""
    head = el("div.card-head", el("h3", "Demonstrations"), el("span.tag.public", "Releasable"))
    known = view.demonstrations
    if not known:
        return [head, el("p.muted", no_demonstrations(view) or _NOTHING_YET)]
    marked = view.run.demo_set is not None and bool(view.run.demo_set.certificate.disclosures)
    shown = (demonstration(each, view.run.demo_set, tokens) for each, tokens in zip(known, counts(view), strict=True))
    return [
        head,
        el("p.muted", _how_many(view)),
        el("p.notice.warn", "Marked: clean values of this data set are known.") if marked else "",
        unfolded(*shown) if len(known) > MANY else el("div.demos" if view.ended else "div", *shown),
        *_figures(view),
        *_facts(view),
    ]


_FIGURES = ("Texts", "Words in a text: least, median, most", "Different words", "Near repetitions")


def _figures(view: RecipeView) -> list[Tree]:
    """Figures of the texts beside those of all texts that were voted on, each once; folded."""
    if not view.ended:
        return []
    columns = [("Demonstrations", text_figures((each.label, each.text) for each in view.demonstrations))]
    if drafts := dict.fromkeys((ballot.label, text) for ballot in view.ballots for text in ballot.drafts):
        columns.append(("Voted on", text_figures(drafts)))
    cells = [
        (f"{each.texts}", "{}, {:g}, {}".format(*each.words), f"{each.vocabulary:,}", f"{each.repeated}")
        for _, each in columns
    ]
    head = el("tr", el("td"), *(el("th", title, scope="col") for title, _ in columns))
    rows = (
        el("tr", el("th", name, scope="row"), *(el("td", each[i]) for each in cells)) for i, name in enumerate(_FIGURES)
    )
    table = el("div.scroll", el("table.preview", el("thead", head), el("tbody", *rows)))
    return [el("details", el("summary", "Lengths, words and repetitions"), table)]


def _facts(view: RecipeView) -> list[Tree]:
    """The label of facts of a run that has ended, folded."""
    made = view.run.demo_set
    if not view.ended or made is None:
        return []
    return [el("details", el("summary", TITLE), *facts_label(replace(made, score=view.score or made.score)))]


def counts(view: RecipeView) -> list[TokenCounts | None]:
    """The token counts of each demonstration; None where it is no record."""
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
    """What happened to demonstrations that were being written when the run was interrupted."""
    said = {True: "finished from public text alone", False: "left out"}
    counted = Counter(event.finished for event in view.run.cut_off)
    return [f"Cut off, and {words}: {counted[each]}." for each, words in said.items() if counted[each]]


def outcome_of_loading(view: RecipeView) -> tuple[str, str]:
    """The line above a saved run on the screen, and the line's kind."""
    claim = view.run.demo_set.certificate.claim if view.run.demo_set else None
    promise = f" of epsilon {rounded_up(claim.epsilon, 3)} at delta {claim.delta:g}" if claim else ""
    return (
        f"A saved run{promise}: its certificate was accounted anew and holds. The file is not signed, so whether its "
        "noisy values were drawn as it says is on trust.",
        "info",
    )


# The private score: how often the labels of the data set's own rows are found.

OWN = "demonstrations"
_NAMES = {"zero-shot": "Zero-shot", "public-only": "Public only", OWN: "Demonstrations"}
_TOO_FEW = "too few rows"
_HELD_OUT = "These rows took no part in what was written or chosen."
_LESS_FITTED = (
    "What it is compared with is corrected less finely, out of fewer rows: read with as much care it may do better."
)
_NO_BETTER = (
    "This score does not show that the set is better than naming the largest label every time, by the public sizes."
)
_USERS = "Every user counts the same."
NOT_HELD_OUT = "These rows may have taken part in the choice: the chosen set's figure may be a little optimistic."
_DUST = 1e-9
"""Tolerance for floats: .71 times 100 is slightly more than 71."""


def own_releases_card(view: RecipeView) -> list[Tree]:
    """The releases of stages with events of their own, in their words."""
    return [
        each
        for released in view.own
        for each in (
            el("div.card-head", el("h3", released.title), el("span.tag.public", "Releasable")),
            *(el("p", line) for line in released.lines()),
        )
    ]


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
        *notice("" if score.held_out else NOT_HELD_OUT, "warn"),
    ]


def _remarks(view: RecipeView, score: Score) -> Iterator[str]:
    yield f"{score.percent} intervals, of the noise and of which rows happened to be asked."
    if OWN in score.arms:
        yield _LESS_FITTED
    if score.held_out:
        yield _HELD_OUT
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
    """The weighing of a set's score, and its relation to balanced accuracy."""
    words = balanced_in_words(demo_set)
    return [el("p.muted", words)] if words else []


def _majority(view: RecipeView) -> int | None:
    """Rows of 100 that have the largest label, by the public sizes."""
    majority = view.run.demo_set.majority if view.run.demo_set else None
    return None if majority is None else math.ceil(100 * majority[1])


def _no_better(view: RecipeView) -> str:
    """The sentence where the score does not show that the set is better than naming the largest label every time."""
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
