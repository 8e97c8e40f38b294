"""The label of facts: what a set promises, what was read for it and what it is worth, like the label on food."""

from __future__ import annotations

import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

from mechanisms.accounting import best_guess_in_percent, cost_in_words
from mechanisms.asking import LABEL
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import printable
from mechanisms.exports.export_format import ExportFormat, Released
from mechanisms.records import person, unit_in_words
from mechanisms.rounding import percent_down, percent_up, rounded_up
from mechanisms.steps import mechanism_class, mechanism_names
from mechanisms.tallies import Weighing

TITLE = "Privacy facts"
VERIFY = "python -m mechanisms account --from demos.json"
_NO_PROMISE = "none: the demonstrations may repeat the rows they were written from"
_SCHEMES = {
    "per-token": "each {unit} joins each token of its label with probability {rate} at most",
    "per-demonstration": "each {unit} joins each demonstration of its label with probability {rate} at most",
}
_SHARED = {"roles": "each {unit} is read by one of these for good", "epsilon": "each {unit} may take part in all"}


class Fact(NamedTuple):
    """A named value with a remark."""

    name: str
    value: str
    remark: str = ""


class Section(NamedTuple):
    """A part of the label between two rules."""

    title: str
    facts: tuple[Fact, ...]


def label_of_facts(demo_set: DemoSet) -> tuple[Section, ...]:
    """The label's sections, from what the set's file states; figures of the claim are rounded up."""
    return (
        Section("The promise", tuple(_promise(demo_set))),
        Section("What was read", tuple(_read(demo_set))),
        Section("On the data set's own rows", tuple(_worth(demo_set))),
        Section("Where it comes from", tuple(_origin(demo_set))),
    )


def _titles() -> dict[str, str]:
    return {name: mechanism_class(name).title for name in mechanism_names()}


def _promise(made: DemoSet) -> Iterator[Fact]:
    held = made.certificate
    yield Fact("Protects", unit_in_words(held.unit), "neighbouring data sets differ by adding or removing it")
    if not held.private:
        yield Fact("Promise", _NO_PROMISE, held.reason or "")
        return
    claim = held.claim
    second = f"second accountant, {claim.check_accountant}: {rounded_up(claim.check, 4)}"
    yield Fact("Epsilon", rounded_up(claim.epsilon, 4), f"claimed by {claim.accountant}; {second}")
    yield Fact("Delta", rounded_up(claim.delta, 2))
    guess = best_guess_in_percent(claim.epsilon, claim.delta)
    yield Fact(
        "A guess is right",
        f"at most {guess}%",
        "of the time whether the unit took part, for somebody who knows everything else and sees what is released, "
        "apart from what is taken as public; 50% is chance",
    )
    spent = cost_in_words(*held.spent_before) if held.spent_before[0] else "nothing"
    yield Fact("Spent before", spent, "on the same data set, in addition" if held.spent_before[0] else "")
    if held.disclosures:
        yield Fact("Known without noise", "yes", f"{'; '.join(held.disclosures)}: later choices may depend on the data")


def _read(made: DemoSet) -> Iterator[Fact]:
    held = made.certificate
    unit = person(held.unit)
    written = held.parameters.get("written")
    name = written.get("mechanism") if isinstance(written, dict) else None
    title = _titles().get(held.mechanism, held.mechanism)
    yield Fact("Mechanism", title, f"token by token: {_titles()[name]}" if name in _titles() else "")
    if made.stages:
        for each in made.stages:
            yield Fact(each.name.capitalize(), f"{percent_up(each.role)} of the {unit}s")
        yield Fact("Split", held.scheme, _SHARED.get(held.scheme, "").format(unit=unit))
    else:
        rate = held.parameters.get("rate")
        stated = rounded_up(rate, 2) if isinstance(rate, float | int) else "as its parameters state"
        yield Fact("Sampling", held.scheme, _SCHEMES.get(held.scheme, "").format(unit=unit, rate=stated))
        if held.transform != "none":
            yield Fact("Transform", held.transform)
    yield Fact("Taken as public", ", ".join(held.public_inputs), "besides the parameters and the prompt")


def _worth(made: DemoSet) -> Iterator[Fact]:
    score, majority = made.score, made.majority
    if score is None:
        yield Fact("Private score", "not measured")
        return
    rows = "took part in nothing that was chosen" if score.held_out else "may have taken part in what was chosen"
    for name, each in score.arms.items():
        interval = f"{percent_down(each.interval[0], 1)} to {percent_up(each.interval[1], 1)}"
        remark = f"{score.percent} interval {interval}, of sampling and noise; its rows {rows}"
        yield Fact(name.capitalize(), percent_down(each.accuracy, 1), remark)
    if majority:
        yield Fact("Naming the largest label every time", percent_up(majority[1], 1), "by the public label sizes")
    alike = "labels" if score.weighing is Weighing.LABELS else f"{person(made.certificate.unit)}s"
    yield Fact("Counted alike", alike, balanced_in_words(made))


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
    sizes = demo_set.public_sizes
    if sizes is not None and len(set(sizes.values())) == 1:
        return f"By the public sizes all labels have equally many {unit}s: these are balanced accuracies too."
    return (
        f"Each {unit} counts the same here. Private balanced accuracy, in which each label counts the same, was not "
        "measured: it would have cost further epsilon."
    )


def _origin(made: DemoSet) -> Iterator[Fact]:
    yield Fact("Written by", made.model_id, f"sha256 {made.model_sha256[:16]}…")
    if made.asked is not None:
        asked = made.asked
        named = ", ".join(f"{label}: {words}" for label, words in asked.words.items())
        plain = f"a model without a chat template: {asked.of(LABEL).rstrip('.')}" if asked.addressed else ""
        called = f"labels in the sentence: {named}" if named else ""
        yield Fact("Asked", asked.of(LABEL, sent=asked.addressed), "; ".join(filter(None, (plain, called))))
    if made.refused:
        reasons = Counter(each.reason for each in made.refused).most_common()
        counted = "; ".join(f"{reason}: {count}" for reason, count in reasons)
        yield Fact("Refused", f"{len(made.refused)} written texts", f"no texts by public rules ({counted})")
    yield Fact("Date", made.created)
    yield Fact("Verify", VERIFY, "builds the accounting anew from the file")


# The label as an image: text only, so that values of the file stay values.

_WIDTH, _MARGIN = 420, 14
_VALUE_AT = 150
_LINE, _SMALL_LINE = 17, 14
_SVG = "http://www.w3.org/2000/svg"


class _Drawing:
    """An SVG that grows downwards."""

    def __init__(self, read_aloud: str) -> None:
        self._root = ElementTree.Element("svg", {"xmlns": _SVG, "width": str(_WIDTH), "role": "img"})
        ElementTree.SubElement(self._root, "title").text = TITLE
        ElementTree.SubElement(self._root, "desc").text = printable(read_aloud)
        box = {"x": "1", "y": "1", "width": str(_WIDTH - 2), "rx": "6", "fill": "#fff", "stroke": "#1b1f24"}
        self._box = ElementTree.SubElement(self._root, "rect", {**box, "stroke-width": "2"})
        self._y = _MARGIN

    def text(self, line: str, x: int, size: int, colour: str = "#1b1f24", weight: str = "400", step: int = 0) -> None:
        place = {"x": str(x), "y": str(self._y + size), "font-size": str(size), "fill": colour, "font-weight": weight}
        found = ElementTree.SubElement(self._root, "text", {**place, "font-family": "system-ui, sans-serif"})
        found.text = line
        self._y += step

    def rule(self, thick: float) -> None:
        ends = {"x1": str(_MARGIN), "x2": str(_WIDTH - _MARGIN), "y1": str(self._y), "y2": str(self._y)}
        ElementTree.SubElement(self._root, "line", {**ends, "stroke": "#1b1f24", "stroke-width": str(thick)})
        self._y += 6

    def fact(self, fact: Fact) -> None:
        top = self._y
        for line in _wrapped(fact.name, 17):
            self.text(line, _MARGIN, 13, weight="600", step=_LINE)
        below, self._y = self._y, top
        for line in _wrapped(fact.value, 36):
            self.text(line, _VALUE_AT, 13, step=_LINE)
        for line in _wrapped(fact.remark, 44):
            self.text(line, _VALUE_AT, 11, "#57606a", step=_SMALL_LINE)
        self._y = max(below, self._y) + 3

    def finished(self) -> str:
        height = self._y + _MARGIN
        self._root.set("height", str(height))
        self._root.set("viewBox", f"0 0 {_WIDTH} {height}")
        self._box.set("height", str(height - 2))
        return ElementTree.tostring(self._root, encoding="unicode") + "\n"


def _wrapped(text: str, width: int) -> list[str]:
    shown = printable(text)
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in shown)
    return textwrap.wrap(shown, max(8, width // 2 if wide else width))


def _drawn(sections: tuple[Section, ...]) -> str:
    drawing = _Drawing(". ".join(" ".join(fact) for section in sections for fact in section.facts))
    drawing.text(TITLE, _MARGIN, 24, weight="800", step=32)
    for section in sections:
        drawing.rule(3 if section is sections[0] else 1)
        drawing.text(section.title, _MARGIN, 12, "#57606a", "700", 19)
        for fact in section.facts:
            drawing.fact(fact)
    return drawing.finished()


def label_as_svg(released: Released) -> str:
    """The label of a set's file, with the file's digest, as an SVG document 420 pixels wide."""
    digest = Fact("Digest of the file", released.digest)
    *first, last = label_of_facts(released.demo_set)
    return _drawn((*first, Section(last.title, (*last.facts, digest))))


FORMAT = ExportFormat(
    name="facts",
    title="Label of facts (SVG)",
    purpose="For a report: promise, reading, worth and origin of the set as one image.",
    file_name="facts.svg",
    media_type="image/svg+xml",
    files=label_as_svg,
    correction="",
    without_demonstrations=True,
)
