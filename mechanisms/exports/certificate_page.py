"""The certificate as one page to print, which loads and runs nothing and shows values of the file as text.

Its facts label, like that on food, states a set's guarantee, its input and its accuracy.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import jinja2

from mechanisms import __version__
from mechanisms.accounting import best_guess_in_percent, cost_in_words
from mechanisms.asking import LABEL
from mechanisms.demos.demo_set import Certificate, DemoSet
from mechanisms.errors import printable
from mechanisms.exports.export_format import ExportFormat, ReleasedFile
from mechanisms.files import bundled
from mechanisms.records import unit_in_words, unit_noun, unit_nouns
from mechanisms.rounding import percent_down, percent_up, rounded_up
from mechanisms.runs.plan import guarantee
from mechanisms.steps import mechanism_class, mechanism_names
from mechanisms.tallies import Weighing

VERIFY = "python -m mechanisms account --from FILE"
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
    """The label's sections, from the set's file; figures of the claim are rounded up."""
    parts = {
        "The promise": _promise,
        "What was read": _read,
        "What each label is about": _about,
        "On the data set's own rows": _worth,
        "Where it comes from": _origin,
    }
    return tuple(Section(title, facts) for title, told in parts.items() if (facts := tuple(told(demo_set))))


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
        "of the time, about whether the unit took part, by somebody who knows all else and sees the release; what is "
        "taken as public is excepted; 50% is chance",
    )
    spent = cost_in_words(*held.spent_before) if held.spent_before[0] else "nothing"
    yield Fact("Spent before", spent, "on the same data set, in addition" if held.spent_before[0] else "")
    if held.disclosures:
        yield Fact("Known without noise", "yes", f"{'; '.join(held.disclosures)}: later choices may depend on the data")


def _read(made: DemoSet) -> Iterator[Fact]:
    held = made.certificate
    unit = unit_noun(held.unit)
    name = held.parameters.get("mechanism") if made.stages else None
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


def _about(made: DemoSet) -> Iterator[Fact]:
    if made.words is not None:
        remark = "of a public list; noise may have put a word here; where none clears it, the label's name stands alone"
        yield Fact("Words", "released under noise", remark)
        for label, words in made.words.items():
            yield Fact(label, ", ".join(words) or "no word clears the noise")
    if (held := made.directions) is not None:
        yield Fact("Directions", "released under noise", f"a vector a label, for the embedding model {held.embedder}")


def _worth(made: DemoSet) -> Iterator[Fact]:
    score, majority = made.score, made.majority
    if score is None:
        yield Fact("Private score", "not measured")
        return
    rows = "took part in nothing that was chosen" if score.held_out else "may have taken part in what was chosen"
    for name, each in score.arms.items():
        interval = f"{percent_down(each.interval[0], 1)} to {percent_up(each.interval[1], 1)}"
        remark = f"{score.percent} interval {interval}, of sampling and noise; its rows {rows}"
        yield Fact(name.capitalize(), each.stated, remark)
    if majority:
        yield Fact("Naming the largest label every time", percent_up(majority[1], 1), "by the public label sizes")
    alike = "labels" if score.weighing is Weighing.LABELS else unit_nouns(made.certificate.unit)
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
    unit = unit_noun(demo_set.certificate.unit)
    sizes = demo_set.public_sizes
    if sizes is not None and len(set(sizes.values())) == 1:
        return f"By the public sizes all labels have equally many {unit}s: these are balanced accuracies too."
    return (
        f"Each {unit} counts the same here. Private balanced accuracy, in which each label counts the same, was not "
        "measured: it would have cost further epsilon."
    )


def _origin(made: DemoSet) -> Iterator[Fact]:
    computed = f"; computed on {made.arithmetic}" if made.arithmetic else ""
    yield Fact("Written by", made.model_id, f"sha256 {made.model_sha256[:16]}…{computed}")
    wording = made.wording
    named = ", ".join(f"{label}: {words}" for label, words in wording.words.items())
    called = f"labels in the sentence: {named}" if named else ""
    shown = f"behind at most {wording.exemplars} public exemplars of the kind" if wording.exemplar_pairs() else ""
    yield Fact("Asked", wording.sentence_for(LABEL), "; ".join(filter(None, (shown, called))))
    if made.refused:
        reasons = Counter(each.reason for each in made.refused).most_common()
        counted = "; ".join(f"{reason}: {count}" for reason, count in reasons)
        yield Fact("Refused", f"{len(made.refused)} written texts", f"by public rules ({counted})")
    yield Fact("Date", made.created)
    yield Fact("Verify", VERIFY, "builds the accounting anew from the file")


_NOTHING = "Nothing is promised: these demonstrations may repeat the rows they were written from."
_SEEN = (
    "Marked: the curator may know more of the data than this page accounts for ({}). The promise below covers the "
    "releases of this run; it does not cover choices made with such knowledge, the choice of this set included."
)
_ANYWHERE = (
    "Facts about the population still tell something about each person, whether that person's rows took part or not.",
    "The values under “Taken as public” are not protected.",
    "The model's own training data is not protected.",
    "Nobody checked that the demonstrations are true, harmless or fair.",
    "Runs under another name, by other people or on other machines are not included here.",
    "A file cannot prove that its run took place, with unchanged software and on the intended rows.",
)
_ROWS = "A person with several rows is protected less: the promise is for one row."
_USERS = "The rows of a user are protected for that user, not for other people whom they mention."
_BEFORE = "The promise covers this run. Earlier spending on the same data set adds to its epsilon and delta."
_WEAK = "Epsilon 5 and more is a weak promise, for tests."


def _files(released: ReleasedFile) -> str:
    made = released.demo_set
    held = made.certificate
    return _template().render(
        count=len(made.demonstrations),
        created=made.created,
        alarms=[
            *([] if held.private else [f"Not private: {held.reason or 'nothing is promised'}."]),
            *([_SEEN.format("; ".join(held.disclosures))] if held.disclosures else []),
        ],
        guarantee=guarantee(held.claim, held.by_user) if held.private else _NOTHING,
        label=label_of_facts(made),
        facts=list(_of_task(made)),
        limits=list(limits(held)),
        digest=released.digest,
        version=__version__,
    )


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        # Control characters in the file's text must not reorder text on the page.
        finalize=lambda value: printable(str(value)),
    )
    return environment.from_string(bundled("certificate.html").read_text(encoding="utf-8"))


def _of_task(made: DemoSet) -> Iterator[Fact]:
    yield Fact("Adjacency", "add or remove one unit", "")
    yield Fact("Labels", ", ".join(made.labels), made.prompt.instruction)


def limits(held: Certificate) -> Iterator[str]:
    """The limits of a set's guarantee, in sentences."""
    if held.private:
        yield _USERS if held.by_user else _ROWS
    yield from _ANYWHERE
    if held.private and held.spent_before[0]:
        yield _BEFORE
    if held.private and held.claim.epsilon >= 5:
        yield _WEAK


FORMAT = ExportFormat(
    name="certificate",
    title="Certificate (a page to print)",
    purpose="For people: the promise and its limits on one page, with the digest that identifies the file.",
    file_name="certificate.html",
    media_type="text/html",
    files=_files,
    correction="",
    without_demonstrations=True,
)
