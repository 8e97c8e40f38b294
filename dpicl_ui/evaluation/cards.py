"""The cards of step 4: the headline, the set under test, answers, accuracies, and confused labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from dpicl_ui.evaluation.state import SetFigures
from dpicl_ui.frame.tree import MANY_LABELS, Tree, count_row, el, in_words, notice
from dpicl_ui.generate.cards import listed, verdict_of
from mechanisms import confidence
from mechanisms.demos.demo_set import DIRECTIONS, PUBLIC_ONLY, ZERO_SHOT, DemoSet
from mechanisms.evaluation.classifier import Prediction
from mechanisms.evaluation.evaluate import BOTH, PRIVATE, Accuracy, MeanRecall, Scorecard
from mechanisms.evaluation.reader import CONTEXTUAL, PRIOR, RAW, readers_in_words, same_reader
from mechanisms.evaluation.verdict import (
    by_balanced_accuracy,
    common_reading,
    figure,
    headline,
    naming_largest,
    shares_of_gain,
    verdict_of_cards,
)
from mechanisms.inference import LanguageModel
from mechanisms.noise import Floats
from mechanisms.rounding import percent_down, percent_up, rounded_up

ARMS = {
    ZERO_SHOT: ("Zero-shot", "the instruction alone"),
    PUBLIC_ONLY: ("Public only", "demonstrations written without the data, epsilon 0"),
    DIRECTIONS: ("Directions, no language model", "the label whose direction a text lies furthest along"),
    BOTH: ("Both together", "the answer with the set, joined with the directions"),
    PRIVATE: ("Your demonstrations", "the set under test"),
}
PROTOTYPES = ("Class prototypes (no language model)", "the nearest class mean of text embeddings, released with noise")
_UNMEASURED = "How much the demonstrations help is not measured yet: type a text, or bring a labelled file."
_ON_FILE = "On the test file: {}"
_ON_ROWS = "On its own rows, under noise: {}"
_WITH_PRIOR = ", with the measured correction"
_READ_WITH_PRIOR = (
    "With the measured correction, the model's preference for some labels, which the run measured, is removed from its "
    "answers. Prompts without a measured correction are corrected by empty queries."
)
_CALIBRATED = "Empty queries: an answer is divided by the model's answer to an empty text (Zhao et al. 2021)."
_COMMONEST = ("The largest label", "named every time, whatever the text is")
_NO_BETTER = (
    "The set finds no more labels than naming the largest label every time: look at the balanced figures and at each "
    "label before you use it."
)
_WHOSE = "Of the gain over zero-shot, {reading} points come from the correction and {shown} from the demonstrations."
_IN_WORDS = {
    PRIOR: "With the measured correction",
    CONTEXTUAL: "Corrected by empty queries",
    RAW: "Without a correction",
}
_EXPORTED = "As exported: {own} with the correction that the demo set carries, {raw} in a format that cannot carry it."
_KINDS = {PRIOR: "measured", CONTEXTUAL: "empty queries", RAW: "uncorrected"}
_BALANCED, _ALWAYS, _AS_IT_IS = "balanced", "always", "as it is"
_BY_LABEL = "By balanced accuracy, because the largest label has more than twice an even share of the rows: "
_LIKELIEST = 8
"""The number of bars of an answer if there are many labels."""


def headline_of(tested: DemoSet | None, scored: SetFigures | None) -> list[Tree]:
    """How well a set works, in one sentence: on a test file, otherwise by its private score."""
    if tested is None:
        return []
    if scored is not None and scored.complete:
        said = verdict_of_cards(scored.cards)
        if by_balanced_accuracy(scored.cards):
            said = _BY_LABEL + said[:1].lower() + said[1:]
        return [el("p.guarantee", _ON_FILE.format(said), role="status")]
    private = verdict_of(tested)
    return [el("p.guarantee", _ON_ROWS.format(private) if private else _UNMEASURED, role="status")]


def subject(demo_set: DemoSet | None, loaded: bool) -> list[Tree]:
    if demo_set is None:
        return [
            el("div.card-head", el("h3", "Nothing to test yet")),
            el("p.muted", "Write demonstrations in step 3, or load a file that was exported before."),
        ]
    claim, count = demo_set.certificate.claim, len(demo_set.demonstrations)
    head = el(
        "div.card-head",
        el("h3", "Loaded from a file" if loaded else "Written in this session"),
        el("span.tag.public", f"epsilon {rounded_up(claim.epsilon, 4)}"),
    )
    many = f"{count} demonstration{'' if count == 1 else 's'} for {in_words(demo_set.labels)}"
    return [head, el("p.muted", many), listed(demo_set.demonstrations, folded=True)]


def readers(demo_set: DemoSet, model: LanguageModel) -> list[Tree]:
    words = readers_in_words(demo_set, model)
    return [el("p.muted", words)] if same_reader(demo_set, model) else notice(words, "warn")


def answers(labels: Sequence[str], predictions: Sequence[tuple[str, Prediction]]) -> list[Tree]:
    """A query's answer by each arm: the reading of the export as bars, other readings in words."""
    return [el("div.arms", *(_answer(labels, name, each) for name, each in predictions))]


def _answer(labels: Sequence[str], name: str, prediction: Prediction) -> Tree:
    readings = {CONTEXTUAL: prediction.calibrated, RAW: prediction.raw}
    if prediction.corrected is not None:
        readings = {PRIOR: prediction.corrected} | readings
    if name == DIRECTIONS:  # has no other readings
        readings = {RAW: prediction.raw}
    kind, *others = readings
    shares = readings[kind]
    best = int(shares.argmax())
    few = len(labels) <= MANY_LABELS
    shown = range(len(labels)) if few else sorted(shares.argsort(kind="stable")[::-1][:_LIKELIEST].tolist())
    bars = [count_row(labels[i], float(shares[i]), f"{100 * float(shares[i]):.0f}%", best=i == best) for i in shown]
    return named_arm(
        name,
        el("p.answer", labels[best]),
        *bars,
        None if few else el("p.muted", f"The {_LIKELIEST} likeliest of {len(labels)} labels."),
        *(el("p.muted", f"{_IN_WORDS[each]}: {_likeliest(labels, readings[each])}") for each in others),
        corrected=kind == PRIOR,
    )


def _likeliest(labels: Sequence[str], probabilities: Floats) -> str:
    best = int(probabilities.argmax())
    return f"{labels[best]} ({100 * float(probabilities[best]):.0f}%)"


def named_arm(name: str, *answer: Tree | None, corrected: bool = False) -> Tree:
    """A query's answer under an arm's title."""
    title, remark = _arm_in_words(name, corrected)
    return el("div.arm" + (".own" if name == PRIVATE else ""), el("h4", title), el("p.muted", remark), *answer)


def _arm_in_words(name: str, corrected: bool) -> tuple[str, str]:
    title, remark = ARMS[name]
    return title, remark + (_WITH_PRIOR if corrected else "")


def accuracies(
    cards: Sequence[Scorecard], prototypes: Accuracy | None = None, labels: Sequence[str] = ()
) -> list[Tree]:
    """The accuracy of each arm with its interval, of class prototypes if given, and of naming the largest label.

    Args:
        cards: the last one is the tested set's own if prototypes are given.
        labels: of the set, in order.
    """
    if not cards:
        return []
    own = cards[-1]
    _, naming = own.majority
    no_better = figure(own, common_reading(cards)).value <= naming.value and len(own.confusion) > 1
    rows = f"{own.raw.total} test rows, bars with {confidence.percent()} intervals, no noise"
    return [
        el("div.card-head", el("h3", "Accuracy"), el("span.muted", rows)),
        *_whose_gain(cards),
        el(
            "div.scores",
            *(_scores(card, cards) for card in cards),
            _score_box(PROTOTYPES, _accuracy_row("nearest", prototypes)) if prototypes else None,
            _majority(cards, labels),
        ),
        *notice(_NO_BETTER if no_better else "", "warn"),
        *notice(_directions_in_words(cards), "info"),
        *notice(_for_labels_alone("class prototypes", prototypes, cards) if prototypes else "", "info"),
        *(_by_label(own, labels) if labels and own.name != PUBLIC_ONLY else []),
        *([el("p.muted", _READ_WITH_PRIOR)] if any(card.corrected for card in cards) else []),
        *([el("p.muted", _CALIBRATED)] if any(card.calibrated for card in cards) else []),
    ]


def _whose_gain(cards: Sequence[Scorecard]) -> list[Tree]:
    """How much of the gain comes from the correction and from the demonstrations, and what each export keeps."""
    own, found = cards[-1], shares_of_gain(cards)
    if own.name == PUBLIC_ONLY or found is None or own.corrected is None:
        return []
    reading, shown = (f"{100 * each:+.0f}" for each in found)
    kept, raw = (percent_down(each.value) for each in (own.corrected, own.raw))
    words = _WHOSE.format(reading=reading, shown=shown), _EXPORTED.format(own=kept, raw=raw)
    return [el("p.muted", each) for each in words]


def _directions_in_words(cards: Sequence[Scorecard]) -> str:
    return next(
        (_for_labels_alone("the directions", card.own_accuracy, cards) for card in cards if card.name == DIRECTIONS), ""
    )


def _for_labels_alone(what: str, found: Accuracy, cards: Sequence[Scorecard]) -> str:
    """A sentence if a classifier without a language model finds more labels than the demonstrations; else empty."""
    *others, own = (card.own_accuracy for card in cards if card.name not in (DIRECTIONS, BOTH))
    value, (low, _) = found.value, found.interval
    if value <= own.value:
        return ""
    everything = all(value > other.value for other in others)
    whom = "this model" if everything else "these demonstrations"
    if all(low > each.interval[1] for each in ([own, *others] if everything else [own])):
        return f"For labels alone, {what} do better than {whom}."
    return f"For labels alone, {what} look better than {whom}, but the intervals overlap: this may be chance."


def _majority(cards: Sequence[Scorecard], labels: Sequence[str]) -> Tree:
    place, naming = cards[-1].majority
    balanced, found = by_balanced_accuracy(cards), naming_largest(cards)
    exact = _score_row(_ALWAYS, found, (found, found), f"{100 * found:.0f}%")
    return _score_box(
        _COMMONEST,
        exact if balanced else _accuracy_row(_ALWAYS, naming),
        el("p.muted", f"of all rows {_words(naming)}") if balanced else None,
        label=labels[place] if labels else None,
    )


def _scores(card: Scorecard, cards: Sequence[Scorecard]) -> Tree:
    reading = common_reading(cards)
    plain = card.name in (DIRECTIONS, BOTH)  # the correction does not change these
    kind = _BALANCED if by_balanced_accuracy(cards) else _AS_IT_IS if plain else _KINDS[reading]
    figures = {
        _KINDS[PRIOR]: card.corrected,
        _KINDS[CONTEXTUAL]: card.calibrated,
        _KINDS[RAW]: card.raw,
        _BALANCED: card.balanced,
    }
    told = [_BALANCED] if plain else figures
    said = [f"{name} {_words(each)}" for name in told if (each := figures[name]) and name != kind]
    if silent := sum(card.silent):
        said.append(f"{silent} without a label, counted as wrong")
    return _score_box(
        _arm_in_words(card.name, reading == PRIOR and not plain),
        _accuracy_row(kind, headline(card, cards)),
        el("p.muted", " · ".join(said)),
        own=card.name == PRIVATE,
    )


def _words(accuracy: Accuracy | MeanRecall) -> str:
    low, high = accuracy.interval
    return f"{percent_down(accuracy.value)}  ({percent_down(low)} to {percent_up(high)})"


def _accuracy_row(kind: str, accuracy: Accuracy | MeanRecall) -> Tree:
    return _score_row(kind, accuracy.value, accuracy.interval, _words(accuracy))


def _score_box(named: tuple[str, str], *rows: Tree | None, own: bool = False, label: str | None = None) -> Tree:
    title, remark = named
    name = el("strong", label) if label is not None else None
    head = el("div.score-name", el("strong", title), name, el("span.muted", remark))
    return el("div.score" + (".own" if own else ""), head, *rows)


def _score_row(kind: str, value: float, interval: tuple[float, float], words: str) -> Tree:
    low, high = interval
    return el(
        "div.score-row",
        el("span.score-kind", kind),
        el(
            "span.score-track",
            el("span.score-bar", numbers={"share": value}),
            el("span.score-interval", numbers={"low": low, "high": high}),
        ),
        el("span.score-number", words),
    )


# In words: a matrix of many labels is too small, and screen readers cannot read it.
_LISTED = 5


def _by_label(card: Scorecard, labels: Sequence[str]) -> list[Tree]:
    """The share of each label's rows that the set finds, and the pairs of labels that are most often confused."""
    rows = [
        count_row(label, each.value, f"{each.correct:.0f} of {each.total}")
        for label, each in zip(labels, card.recalls, strict=True)
        if each
    ]
    wrong = card.confusion - np.diag(np.diag(card.confusion))
    often = np.argsort(-wrong, axis=None, kind="stable")[:_LISTED]
    lost = [(*divmod(int(place), len(labels)), int(wrong.flat[place])) for place in often if wrong.flat[place]]
    pairs = (
        el(
            "li",
            el("strong", labels[true]),
            " read as ",
            el("strong", labels[said]),
            f": {count} row{'s' if count > 1 else ''}",
        )
        for true, said, count in lost
    )
    most = [el("p.muted", "Most often confused:"), el("ul.confused", *pairs)] if lost else []
    return [el("details", el("summary", "How many rows of each label are found, and which are confused"), *rows, *most)]


_SCALE = [[0.0, "rgba(26,143,133,0.05)"], [1.0, "rgba(26,143,133,0.6)"]]
_FONT = {"family": "system-ui, sans-serif", "color": "#7c8592", "size": 13}
"""The font of the plot's text; `studio.css` gives the text the colours of the light or the dark page."""
_AXIS: dict[str, Any] = {"type": "category", "showgrid": False, "fixedrange": True, "zeroline": False, "ticks": ""}
_LONGEST = 18
_NUMBERED = 12
"""The most labels with which every cell shows its count."""
_ROW, _LEAST_ROW, _AROUND = 44, 16, 140
"""Pixels for a label, for a label if there are many, and around the plot: Plotly drops names that would touch."""


def confusion_figure(card: Scorecard, labels: Sequence[str]) -> go.Figure:
    """Counts of true label (rows) by predicted label (columns), shape (labels, labels)."""
    few = len(labels) <= _NUMBERED
    every = {} if few else {"dtick": 1, "tickfont": {"size": _LEAST_ROW - 6}}
    figure = go.Figure(
        go.Heatmap(
            z=card.confusion.tolist(),
            x=[f"{i + 1}." for i in range(len(labels))],
            y=[f"{i + 1}. {_short(label)}" for i, label in enumerate(labels)],
            colorscale=_SCALE,
            showscale=False,
            customdata=[list(map(_short, labels))] * len(labels),
            xgap=3 if few else 1,
            ygap=3 if few else 1,
            texttemplate="%{z}" if few else None,
            hovertemplate="in truth %{y}<br>predicted %{x} %{customdata}<br>%{z} rows<extra></extra>",
        )
    )
    return figure.update_layout(
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font=_FONT,
        title={"text": "Which labels are confused", "x": 0, "font": {"size": 15}},
        margin={"l": 10, "r": 10, "t": 40, "b": 44},
        height=_AROUND + len(labels) * (_ROW if few else _LEAST_ROW),
        xaxis=_AXIS | every | {"title": {"text": "predicted", "standoff": 8}},
        yaxis=_AXIS | every | {"automargin": True, "autorange": "reversed"},
    )


def _short(label: str) -> str:
    # Plotly interprets some tags in text, so the characters that begin them are replaced by look-alikes.
    return (label if len(label) <= _LONGEST else label[: _LONGEST - 1] + "…").replace("<", "‹").replace("&", "＆")
