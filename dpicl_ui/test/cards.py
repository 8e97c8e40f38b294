"""The cards of step 4: the set under test, answers, accuracies, and confused labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpicl_ui.frame.tree import MANY_LABELS, Tree, count_row, el, in_words, notice, private_tag
from dpicl_ui.generate.cards import NOT_HELD_OUT, better_alone, demonstrations, of_hundred, unfolded, weighed
from mechanisms import confidence
from mechanisms.demos import findings
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.findings import DEMONSTRATIONS, ArmScore, Score
from mechanisms.evaluation.evaluate import (
    PRIVATE,
    PUBLIC_ONLY,
    ZERO_SHOT,
    Accuracy,
    MeanRecall,
    Scorecard,
    by_balanced_accuracy,
    common_reading,
    figure,
    headline,
    naming_largest,
    shares_of_gain,
    verdict_of_cards,
    verdict_of_score,
)
from mechanisms.evaluation.reader import CONTEXTUAL, PRIOR, RAW, Prediction, readers_in_words, same_reader
from mechanisms.inference import LanguageModel
from mechanisms.noise import Floats
from mechanisms.rounding import percent_down, percent_up, rounded_up

# Class prototypes in words: what they are called, and what to say where they do better than a prompted model.

PROTOTYPES = ("Class prototypes (no language model)", "the nearest class mean of text embeddings, released with noise")

Figure = tuple[float, tuple[float, float]]
"""An accuracy and its interval."""


def verdict(prototypes: Figure, own: Figure, others: Sequence[Figure]) -> str:
    """One sentence if prototypes find more labels than the demonstrations; else empty.

    Args:
        own: the demonstrations' figure, on the same rows.
        others: those of the same model without them.
    """
    value, (low, _) = prototypes
    if value <= own[0]:
        return ""
    everything = all(value > other for other, _ in others)
    beaten = [own, *others] if everything else [own]
    whom = "this model" if everything else "these demonstrations"
    if all(low > high for _, (_, high) in beaten):
        return f"For labels alone, class prototypes do better than {whom}."
    return f"For labels alone, class prototypes look better than {whom}, but intervals overlap: it may be chance."


# What step 4 shows: the set under test, answers, and accuracies.

OWN_ARM = ("Your demonstrations", "the set under test")
ARMS = {
    ZERO_SHOT: ("Zero-shot", "the instruction alone"),
    PUBLIC_ONLY: ("Public only", "demonstrations written without the data, epsilon 0"),
    PRIVATE: OWN_ARM,
}

_WITH_PRIOR = ", with the measured prior"
_READ_WITH_PRIOR = (
    "With the measured prior: the label preference that the run found in the model is taken out of its answers. "
    "An arm for which none was measured is calibrated."
)
_CALIBRATED = "Calibrated answers divide by what the prompt makes the model say for an empty query (Zhao et al. 2021)."
_MADE_OF_THEM = "The class prototypes may be made of these very rows: their figure is then too good."
_NONE_CHOSEN = (
    "Version 0.2 of this program compared sets of demonstrations with the instruction alone, on private rows and under "
    "noise, and kept the instruction alone."
)
_STILL_CARRIED = "The set still carries the measured prior, with which the model's answers are read."


_COMMONEST = "The commonest label"
_WHATEVER = "named every time, whatever the text says"
_NO_BETTER = (
    "The set finds no more labels than naming the commonest one every time does: look at the balanced figures, and at "
    "each label, before you use it."
)
_RECALL = "How many rows of each label are found"
_WHOSE = "Over the model alone, calibrated by empty queries: reading {reading} points, demonstrations {shown} points."
_BEST_READING = "Read as found most labels of the test file under the set: {reading}."
_IN_WORDS = {PRIOR: "With the measured prior", CONTEXTUAL: "Calibrated by empty queries", RAW: "Without calibration"}
_EXPORTED = "As exported: {own} with the correction that the demo set carries, {raw} in a format that cannot carry it."
_KINDS = {PRIOR: "prior", CONTEXTUAL: "calibrated", RAW: "raw"}
_BALANCED, _ALWAYS = "balanced", "always"
_BY_LABEL = "By balanced accuracy, since the commonest label has more than twice an even share of the rows: "
_LIKELIEST = 8
"""Bars of an answer where there are many labels."""


def subject(demo_set: DemoSet | None, loaded: bool) -> list[Tree]:
    """The card of the tested demonstrations."""
    if demo_set is None:
        return [
            el("div.card-head", el("h3", "Nothing to test yet")),
            el("p.muted", "Write demonstrations in step 3, or load a file that was exported before."),
        ]
    claim = demo_set.certificate.claim
    return [
        el(
            "div.card-head",
            el("h3", "Loaded from a file" if loaded else "Written in this session"),
            el("span.tag.public", f"epsilon {rounded_up(claim.epsilon, 4)}"),
        ),
        *(_none_chosen(demo_set) if demo_set.choice and not demo_set.demonstrations else _listed(demo_set)),
    ]


def _listed(demo_set: DemoSet) -> list[Tree]:
    count = len(demo_set.demonstrations)
    return [
        el("p.muted", f"{count} demonstration{'' if count == 1 else 's'} for {in_words(demo_set.labels)}"),
        unfolded(*demonstrations(demo_set)),
    ]


def _none_chosen(demo_set: DemoSet) -> list[Tree]:
    found = [el("p", el("strong", "A set without demonstrations.")), el("p.muted", _NONE_CHOSEN)]
    return [*found, el("p.muted", _STILL_CARRIED)] if demo_set.prior else found


def readers(demo_set: DemoSet, model: LanguageModel) -> list[Tree]:
    """The model that wrote a set, and the model that reads it here."""
    words = readers_in_words(demo_set, model)
    return [el("p.muted", words)] if same_reader(demo_set, model) else notice(words, "warn")


def answers(
    labels: Sequence[str], predictions: Sequence[tuple[str, Prediction]], reading: str | None = None
) -> list[Tree]:
    """A query's answer by each arm: in one reading as bars, in the others in words.

    Args:
        reading: the one that finds most labels of a test file under the set; None: each arm as it is exported.
    """
    said = [el("p.muted", _BEST_READING.format(reading=_KINDS[reading]))] if reading else []
    return [*said, el("div.arms", *(_answer(labels, name, each, reading) for name, each in predictions))]


def _readings(prediction: Prediction) -> dict[str, Floats]:
    """All readings of an answer, the best founded first."""
    measured = {} if prediction.corrected is None else {PRIOR: prediction.corrected}
    return measured | {CONTEXTUAL: prediction.calibrated, RAW: prediction.raw}


def _answer(labels: Sequence[str], name: str, prediction: Prediction, wanted: str | None) -> Tree:
    readings = _readings(prediction)
    kind = wanted if wanted in readings else next(iter(readings))
    shares = readings[kind]
    best = int(shares.argmax())
    few = len(labels) <= MANY_LABELS
    shown = range(len(labels)) if few else sorted(shares.argsort(kind="stable")[::-1][:_LIKELIEST].tolist())
    bars = [count_row(labels[i], float(shares[i]), f"{100 * float(shares[i]):.0f}%", best=i == best) for i in shown]
    return named_arm(
        name,
        el("p.answer", labels[best]),
        *bars,
        None if few else el("p.muted", f"The likeliest {_LIKELIEST} of {len(labels)} labels."),
        *(_other_reading(_IN_WORDS[each], labels, found) for each, found in readings.items() if each != kind),
        corrected=kind == PRIOR,
    )


def named_arm(name: str, *answer: Tree | None, corrected: bool = False) -> Tree:
    """A query's answer under an arm's title."""
    own = ".own" if name == PRIVATE else ""
    title, remark = arm_in_words(name, corrected)
    return el(f"div.arm{own}", el("h4", title), el("p.muted", remark), *answer)


def arm_in_words(name: str, corrected: bool = False) -> tuple[str, str]:
    """An arm's title, and what it is."""
    title, remark = ARMS[name]
    return title, remark + (_WITH_PRIOR if corrected else "")


def _other_reading(name: str, labels: Sequence[str], probabilities: Floats) -> Tree:
    best = int(probabilities.argmax())
    return el("p.muted", f"{name}: {labels[best]} ({100 * float(probabilities[best]):.0f}%)")


def accuracies(
    cards: Sequence[Scorecard],
    owners: Sequence[str] = (),
    prototypes: Accuracy | None = None,
    labels: Sequence[str] = (),
) -> list[Tree]:
    """Accuracy of each arm with its interval; of class prototypes, if they are there; of naming one label every time.

    Args:
        cards: the tested set's own is the last one where there are prototypes.
        owners: private data sets that the rows belong to: the figures are then tagged.
        labels: of the set, in order.
    """
    if not cards:
        return []
    return [
        *figures_head("Accuracy", cards[0].raw.total, owners),
        *_sentence(cards),
        el(
            "div.scores",
            *(_scores(card, cards) for card in cards),
            score_box(PROTOTYPES, accuracy_row("nearest", prototypes)) if prototypes else None,
            _majority(cards, labels),
        ),
        *notice(_no_better(cards[-1], common_reading(cards)), "warn"),
        *(_by_label(cards[-1], labels) if labels else []),
        *(_beside(cards, owners, prototypes) if prototypes else []),
        *([el("p.muted", _READ_WITH_PRIOR)] if any(card.corrected for card in cards) else []),
        *([el("p.muted", _CALIBRATED)] if any(card.calibrated for card in cards) else []),
    ]


def _majority(cards: Sequence[Scorecard], labels: Sequence[str]) -> Tree:
    place, naming = cards[-1].majority
    balanced, found = by_balanced_accuracy(cards), naming_largest(cards)
    exact = score_row(_ALWAYS, found, (found, found), f"{100 * found:.0f}%")
    return score_box(
        (_COMMONEST, _WHATEVER),
        exact if balanced else accuracy_row(_ALWAYS, naming),
        el("p.muted", f"of all rows {_words(naming)}") if balanced else None,
        label=labels[place] if labels else None,
    )


def _no_better(card: Scorecard, reading: str) -> str:
    """The sentence if the set finds no more labels than naming the commonest label does."""
    _, naming = card.majority
    return _NO_BETTER if figure(card, reading).value <= naming.value and len(card.confusion) > 1 else ""


def _by_label(card: Scorecard, labels: Sequence[str]) -> list[Tree]:
    """The share of each label's rows that the set finds."""
    rows = [
        count_row(label, each.value, f"{each.correct:.0f} of {each.total}")
        for label, each in zip(labels, card.recalls, strict=True)
        if each
    ]
    return [el("details", el("summary", _RECALL), *rows)]


def _beside(cards: Sequence[Scorecard], owners: Sequence[str], prototypes: Accuracy) -> list[Tree]:
    """The sentence on prototypes beside the set."""
    *others, own = ((card.read.value, card.read.interval) for card in cards)
    words = verdict((prototypes.value, prototypes.interval), own, others)
    return [*notice(words, "info"), *([el("p.muted", _MADE_OF_THEM)] if owners else [])]


def tag(owners: Sequence[str]) -> list[Tree]:
    """The tag of figures that are for the curator alone: the scored rows belong to private data sets."""
    names = ", ".join(f"'{name}'" for name in owners)
    return [private_tag(f"Only on your screen: without noise, on rows of {names}")] if owners else []


def _sentence(cards: Sequence[Scorecard]) -> list[Tree]:
    """The worth of the set, and the part of it that is the reading's; empty before the set's own figure is there."""
    if cards[-1].name == PUBLIC_ONLY:
        return []
    found = shares_of_gain(cards)
    by_label = _BY_LABEL if by_balanced_accuracy(cards) else ""
    said = verdict_of_cards(cards)
    first = el("p.guarantee", by_label + said[:1].lower() + said[1:] if by_label else said)
    if found is None:
        return [first]
    reading, shown = (f"{100 * each:+.0f}" for each in found)
    return [first, el("p.muted", _WHOSE.format(reading=reading, shown=shown)), *_exported(cards[-1])]


def _exported(card: Scorecard) -> list[Tree]:
    """The set's accuracy in each kind of export."""
    if card.corrected is None:
        return []
    own, raw = (percent_down(each.value) for each in (card.corrected, card.raw))
    return [el("p.muted", _EXPORTED.format(own=own, raw=raw))]


def _scores(card: Scorecard, cards: Sequence[Scorecard]) -> Tree:
    """The main figure of each arm, with the others in smaller type."""
    reading = common_reading(cards)
    kind = _BALANCED if by_balanced_accuracy(cards) else _KINDS[reading]
    figures = {
        _KINDS[PRIOR]: card.corrected,
        _KINDS[CONTEXTUAL]: card.calibrated,
        _KINDS[RAW]: card.raw,
        _BALANCED: card.balanced,
    }
    said = [f"{name} {_words(each)}" for name, each in figures.items() if each and name != kind]
    if silent := sum(card.silent):
        said.append(f"{silent} without a label, counted as wrong")
    return score_box(
        arm_in_words(card.name, reading == PRIOR),
        accuracy_row(kind, headline(card, cards)),
        el("p.muted", " · ".join(said)),
        own=card.name == PRIVATE,
    )


def _words(accuracy: Accuracy | MeanRecall) -> str:
    low, high = accuracy.interval
    return f"{percent_down(accuracy.value)}  ({percent_down(low)} to {percent_up(high)})"


def accuracy_row(kind: str, accuracy: Accuracy | MeanRecall) -> Tree:
    """An accuracy as a bar with its interval."""
    return score_row(kind, accuracy.value, accuracy.interval, _words(accuracy))


def figures_head(title: str, rows: int, owners: Sequence[str]) -> list[Tree]:
    """The head of a card of figures, with what `tag` says."""
    intervals = f"{rows} test rows, bars with {confidence.percent()} intervals"
    return [el("div.card-head", el("h3", title), el("span.muted", intervals)), *tag(owners)]


def score_box(named: tuple[str, str], *rows: Tree | None, own: bool = False, label: str | None = None) -> Tree:
    """Figures under their title and a remark; `own` are those of the set under test."""
    title, remark = named
    name = el("strong", label) if label is not None else None
    head = el("div.score-name", el("strong", title), name, el("span.muted", remark))
    return el("div.score" + (".own" if own else ""), head, *rows)


def score_row(kind: str, value: float, interval: tuple[float, float], words: str) -> Tree:
    """A bar with its interval."""
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


# The private score that a set brings along: no test file is needed for it.

_TITLES = {
    ZERO_SHOT: ARMS[ZERO_SHOT],
    PUBLIC_ONLY: ARMS[PUBLIC_ONLY],
    DEMONSTRATIONS: ARMS[PRIVATE],
    findings.PROTOTYPES: PROTOTYPES,
}
_LARGEST, _BY_SIZES = "The largest label", "named every time, by the public sizes"
_HELD_OUT = "These rows took part in nothing that was written."
_WITH_NOISE = "Released with noise, as part of the run's epsilon: public."
_FROM_FILE = "These figures are what the file says; they cannot be checked without its data."


def score_card(demo_set: DemoSet | None, loaded: bool) -> list[Tree]:
    """Private accuracies of a set, arm by arm; empty if it has none."""
    if demo_set is None or demo_set.score is None:
        return []
    score = demo_set.score
    head = el(
        "div.card-head",
        el("h3", "On the rows of its own data set" if loaded else "On your own rows"),
        el("span.tag.public", "private score"),
    )
    covered = f"Intervals are of {score.percent}, and cover sampling and noise."
    arms = el(
        "div.scores", *(_arm(name, each, loaded) for name, each in score.arms.items()), _majority_of_set(demo_set)
    )
    remark = el("p.muted", f"{_HELD_OUT if score.held_out else NOT_HELD_OUT} {_WITH_NOISE} {covered}")
    beside = notice(_compared(score), "info")
    majority = demo_set.majority[1] if demo_set.majority else None
    sentence = verdict_of_score(score, not demo_set.demonstrations, majority)
    first = [el("p.guarantee", sentence)] if sentence else []
    return [
        el(
            "div.card.public",
            head,
            *first,
            *weighed(demo_set),
            arms,
            *notice(better_alone(demo_set), "info"),
            *beside,
            remark,
            el("p.muted", _FROM_FILE) if loaded else None,
        )
    ]


def _majority_of_set(demo_set: DemoSet) -> Tree | None:
    """The accuracy of naming the largest label every time, by the public sizes."""
    if demo_set.majority is None:
        return None
    label, share = demo_set.majority
    row = score_row(_ALWAYS, share, (share, share), percent_up(share))
    return score_box((_LARGEST, _BY_SIZES), row, label=label)


def _compared(score: Score) -> str:
    """The sentence on class prototypes, if they were scored with the set on enough rows."""
    arms = dict(score.arms)
    prototypes, own = arms.pop(findings.PROTOTYPES, None), arms.pop(DEMONSTRATIONS, None) or arms.pop(ZERO_SHOT, None)
    if prototypes is None or own is None or prototypes.wide or own.wide:
        return ""
    others = [(each.accuracy, each.interval) for each in arms.values()]
    return verdict((prototypes.accuracy, prototypes.interval), (own.accuracy, own.interval), others)


def _arm(name: str, score: ArmScore, loaded: bool) -> Tree:
    whose = "on its own rows" if loaded else "on your own rows"
    return score_box(
        _TITLES.get(name, (name, "")),
        score_row(whose, score.accuracy, score.interval, f"{of_hundred(score)} of 100"),
        el("p.muted", "Too few rows to say more.") if score.wide else None,
        own=name == DEMONSTRATIONS,
    )


# Which labels are taken for which, in words: a matrix of many labels is small, and no screen reader sees it.

_LISTED = 5
_NOTHING = "No row was given another's label."


def confused(owners: Sequence[str], card: Scorecard | None = None, labels: Sequence[str] = ()) -> list[Tree]:
    """The head of the confusion matrix, with the pairs of labels that most rows are lost between."""
    return [el("h3", "Which labels are confused"), *tag(owners), *(_pairs(card, labels) if card else ())]


def _pairs(card: Scorecard, labels: Sequence[str]) -> list[Tree]:
    wrong = card.confusion - np.diag(np.diag(card.confusion))
    often = np.argsort(-wrong, axis=None, kind="stable")[:_LISTED]
    pairs = [(*divmod(int(place), len(labels)), int(wrong.flat[place])) for place in often if wrong.flat[place]]
    if not pairs:  # where no row was answered at all, that says nothing
        return [el("p.muted", _NOTHING)] if card.confusion.any() else []
    return [
        el("p.muted", "Most often:"),
        el("ul.confused", *(_pair(labels[true], labels[said], rows) for true, said, rows in pairs)),
    ]


def _pair(true: str, said: str, rows: int) -> Tree:
    return el(
        "li",
        el("strong", true),
        " read as ",
        el("strong", said),
        f": {rows} rows" if rows > 1 else ": 1 row",
    )
