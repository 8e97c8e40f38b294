"""Membership inference: the ROC of attack scores, and attacks on released demonstrations and on a planted leak."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binomtest

from mechanisms import confidence
from mechanisms.audit.mechanism import AuditProgress
from mechanisms.errors import UsageError
from mechanisms.evaluation.completions import log_likelihoods
from mechanisms.evaluation.reader import Classifier
from mechanisms.inference import LanguageModel
from mechanisms.inference.prompts import QueryPrompt, first_tokens
from mechanisms.noise import Floats, Randomness, SecureRandomness
from mechanisms.records import Dataset, Demonstration, Record
from mechanisms.runs.score import ScoredSet

# The ROC curve of a score, its area, and the bounds that a claim implies.

LOW = 0.01
"""The low false positive rate at which attacks are compared (Carlini et al. 2022)."""
_RATES = (0.0, LOW, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
_FEWEST = 2
_NEARLY = 1 - 1e-9

Interval = tuple[float, float]
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Roc:
    """The ROC of an attack, without noise and for the curator alone.

    Attributes:
        members, others: the numbers of scored rows.
        points: (false positive rate, true positive rate) at fixed rates, each at the lowest threshold that meets it.
        curve: the same at every threshold, from (0, 0) to (1, 1); the area below it is `area`.
        area: probability that a member scores above another row; ties count half.
        interval: of the area, at `confidence.LEVEL`.
        found: true positive rate at a false positive rate of `LOW`; `found_interval` is its interval.
    """

    members: int
    others: int
    points: Points
    curve: Points
    area: float
    interval: Interval
    found: float
    found_interval: Interval


def roc(members: Floats, others: Floats) -> Roc:
    """Compare the scores of members, shape (m,), with those of others, shape (n,); members should score higher.

    Raises:
        UsageError: fewer than two of either.
    """
    if min(len(members), len(others)) < _FEWEST:
        raise UsageError("An attack needs at least two members and two other rows: give larger files.")
    below = np.sort(others)
    wins = np.searchsorted(below, members, "left") + np.searchsorted(below, members, "right")
    area = float(wins.mean()) / 2 / len(others)
    reached = [_above(members, below, rate) for rate in _RATES]
    found = reached[_RATES.index(LOW)]
    exact = binomtest(found, len(members)).proportion_ci(confidence.LEVEL, method="exact")
    return Roc(
        len(members),
        len(others),
        tuple((rate, count / len(members)) for rate, count in zip(_RATES, reached, strict=True)),
        _curve(members, others),
        area,
        _area_interval(area, len(members), len(others)),
        found / len(members),
        (float(exact.low), float(exact.high)),
    )


def _curve(members: Floats, others: Floats) -> Points:
    """The rates of rows that score at least a threshold, for every observed score, highest first."""
    thresholds = np.unique(np.concatenate([members, others]))[::-1]
    wrong, right = (1 - np.searchsorted(np.sort(each), thresholds) / len(each) for each in (others, members))
    return ((0.0, 0.0), *zip(wrong.tolist(), right.tolist(), strict=True))


def _above(members: Floats, others: Floats, rate: float) -> int:
    """The number of members above the lowest threshold that at most a share `rate` of the sorted others exceed."""
    allowed = math.floor(rate * len(others))
    if allowed == len(others):
        return len(members)
    return int((members > others[len(others) - 1 - allowed]).sum())


def _area_interval(area: float, members: int, others: int) -> Interval:
    """The interval of Newcombe 2006, method 5: Hanley and McNeil's variance at the bound, not 0 at area 1."""

    def lower(value: float) -> float:
        def gap(at: float) -> float:
            return value - at - confidence.standard_errors() * math.sqrt(_variance(at, members, others))

        end = value * _NEARLY
        return float(brentq(gap, 0.0, end)) if value > 0 and gap(end) < 0 else end

    return lower(area), 1.0 - lower(1.0 - area)


def _variance(area: float, members: int, others: int) -> float:
    balanced = (members + others) / 2 - 1
    spread = 1 + balanced * ((1 - area) / (2 - area) + area / (1 + area))
    return area * (1 - area) * spread / (members * others)


def allowed(epsilon: float, delta: float, rate: float) -> float:
    """The largest true positive rate that (epsilon, delta)-DP allows at a false positive rate.

    It bounds rates over runs, for one row that is in the data or not (Kairouz, Oh, Viswanath 2015).
    """
    if not math.isfinite(epsilon):
        return 1.0
    bounds = (rate * math.exp(min(epsilon, 700.0)) + delta, 1 - math.exp(-epsilon) * (1 - delta - rate))
    return max(0.0, min(1.0, *bounds))


def corners(epsilon: float, delta: float) -> Points:
    """The corners of the curve of `allowed`, as (false positive rate, true positive rate), from left to right."""
    wrong, right = (float((1 - delta) * expit(sign * epsilon)) for sign in (-1, 1))
    return ((0.0, delta), (wrong, delta + right), (1 - delta, 1.0), (1.0, 1.0))


def allowed_area(epsilon: float, delta: float) -> float:
    """The area below the curve of `allowed`: the largest area of any attack."""
    rates, reached = zip(*corners(epsilon, delta), strict=True)
    return float(np.trapezoid(reached, rates))


# The planted leak, on which every attack is tried besides its target: prompts of verbatim private rows.
#
# An attack that fails on the planted leak says nothing about the target.

RELEASED, ROWS, NOTHING = "demonstrations", "real rows", "no demonstrations"
"""Kinds of demonstrations in an attacked prompt."""
_MOST_TOKENS = 96
"""The most tokens of a row in a prompt, as for queries."""


def as_demonstrations(rows: Sequence[Record], model: LanguageModel) -> tuple[Demonstration, ...]:
    """Rows as demonstrations, verbatim up to a public number of tokens; not private."""
    return tuple(
        Demonstration(model.decode(first_tokens(model, row.text, _MOST_TOKENS)).strip(), row.label) for row in rows
    )


def drawn(rows: Sequence[Record], count: int, randomness: Randomness) -> list[Record]:
    """`count` of the rows in random order, or all if there are fewer."""
    return [rows[place] for place in randomness.permutation(len(rows))[:count].tolist()]


# Membership inference on prompts, by the likelihood of a row's label or of its words.
#
# Duan et al. 2023 score a row by the probability of its own label under the demonstrations, which is high for every
# easy row. Two more attacks compare it with the probability without demonstrations, and with that under reference
# prompts of other rows (offline likelihood ratio, Carlini et al. 2022, with one variance).
#
# A small model learns few labels from its prompt, but repeats its words. The last attack is the likelihood ratio of the
# row's own words with and without demonstrations, for attackers who can query these likelihoods.

PROBABILITY, ZERO_SHOT, REFERENCES, WORDS = "probability", "over zero-shot", "over references", "own words"
_LEAST, _MOST = -700.0, -1e-12
"""Bounds of log-probabilities, so that their odds are finite."""
_WORDS = 16
"""The first tokens of a row that are scored as its own words."""
_AT_ONCE = 32
"""Rows between two reports of progress."""

Scores = Mapping[str, Floats]
"""For each attack, a score for each row; members should score higher."""
_Rows = Mapping[str, Sequence[Record]]
"""Rows of each label."""


@dataclass(frozen=True)
class Effort:
    """The size of an attack; public.

    Attributes:
        rows: members, and as many others, of each label that are scored under the released demonstrations.
        prompts: prompts of verbatim private rows (the planted leak).
        shots: rows of each label in such a prompt, and in a reference prompt.
        references: prompts of rows that are no members.
    """

    rows: int = 25
    prompts: int = 16
    shots: int = 1
    references: int = 4

    def __post_init__(self) -> None:
        if min(self.rows, self.prompts, self.shots, self.references) < 1:
            raise UsageError("An attack needs at least one row, one prompt, one shot and one reference.")


@dataclass(frozen=True)
class Membership:
    """The ROC of each attack; `shown` is the kind of demonstrations in the prompt: `RELEASED` or `ROWS`."""

    shown: str
    attacks: Mapping[str, Roc]


class Attacker:
    """Knows the model, the task, the rows to score, and public texts; sees only the model's outputs."""

    def __init__(self, model: LanguageModel, task: ScoredSet, references: Sequence[Sequence[Demonstration]]) -> None:
        """Prepare the calibration prompts: without demonstrations, and with references, which hold no member."""
        self._model, self._task = model, task
        self._without = self._under(())
        self._references = [self._under(each) for each in references]
        self._usual: dict[Record, tuple[float, float, float]] = {}

    def _under(self, shown: Sequence[Demonstration]) -> Classifier:
        return Classifier(self._model, self._task.template, self._task.labels, shown)

    def scores(self, shown: Sequence[Demonstration], rows: Sequence[Record]) -> Scores:
        """The rows' membership scores under the demonstrations `shown`."""
        own, (without, usual, words) = self._own_label(self._under(shown), rows), self.usual(rows)
        return {
            PROBABILITY: own,
            ZERO_SHOT: own - without,
            REFERENCES: _odds(own) - usual,
            WORDS: self._own_words(shown, rows) - words,
        }

    def usual(self, rows: Sequence[Record]) -> tuple[Floats, Floats, Floats]:
        """The rows' baseline scores: labels without demonstrations and under the references, and words; cached."""
        new = [row for row in dict.fromkeys(rows) if row not in self._usual]
        if new:
            without = self._own_label(self._without, new)
            under = np.mean([_odds(self._own_label(each, new)) for each in self._references], axis=0)
            usual = np.stack([without, under, self._own_words((), new)], axis=1)
            self._usual.update(zip(new, map(tuple, usual.tolist()), strict=True))
        found = np.array([self._usual[row] for row in rows])
        return found[:, 0], found[:, 1], found[:, 2]

    def _own_words(self, shown: Sequence[Demonstration], rows: Sequence[Record]) -> Floats:
        """Log-probability of each row's first words as the text of a query."""
        prompt = QueryPrompt(self._model, self._task.template, shown, _WORDS)
        asked = [[*prompt.head, *first_tokens(self._model, row.text, prompt.cap)] for row in rows]
        return _finite(log_likelihoods(self._model, prompt.prefix, asked, len(prompt.head)))

    def _own_label(self, classifier: Classifier, rows: Sequence[Record]) -> Floats:
        """Log-probability of each row's own label."""
        found = classifier.log_probabilities([row.text for row in rows])
        own = found[np.arange(len(rows)), [self._task.labels.index(row.label) for row in rows]]
        return _finite(own)


def _finite(log_probabilities: Floats) -> Floats:
    """Clip log-probabilities so that their odds are finite."""
    return np.clip(np.nan_to_num(log_probabilities, nan=_LEAST), _LEAST, _MOST)


def _odds(log_probabilities: Floats) -> Floats:
    """Log-odds, which are closer to normal than probabilities (Carlini et al. 2022)."""
    return np.asarray(log_probabilities - np.log(-np.expm1(log_probabilities)))


def membership(
    model: LanguageModel,
    task: ScoredSet,
    private: Dataset,
    held_out: Dataset,
    effort: Effort | None = None,
    randomness: Randomness | None = None,
) -> Generator[AuditProgress | Membership, None, None]:
    """Attack prompts of real rows, where attacks should succeed, and then a set of demonstrations.

    Members are rows of the data set that the demonstrations were written from, others are held-out rows, equally many
    of each label. Both files should come from the same source: any other difference counts as membership here.

    Args:
        model: the attacked model.
        task: the demonstrations and their task.
        private: the rows that the demonstrations were written from.
        held_out: other rows; those that are in `private` too are left out.
        effort: the size of the attack.
        randomness: draws rows; the operating system's by default, other sources are for tests.

    Yields:
        Progress, in prompts and batches of rows, and the results for `ROWS` and `RELEASED`.

    Raises:
        UsageError: there are no demonstrations, or too few rows of a label.
    """
    effort, randomness = effort or Effort(), randomness or SecureRandomness()
    if not task.demonstrations:
        raise UsageError("The set has no demonstrations: there is nothing to attack.")
    inside = _by_label(private, task.labels, frozenset(), randomness)
    outside = _by_label(held_out, task.labels, frozenset(row.text for row in private.records), randomness)
    spent = effort.shots * effort.references
    references = [_prompt(outside, effort.shots, number, model) for number in range(effort.references)]
    others = {label: rows[spent:] for label, rows in outside.items()}
    if min(len(rows) for of in (inside, others) for rows in of.values()) < effort.shots:
        raise UsageError("A file has too few rows of a label: give larger files, or fewer shots or references.")
    attacker = Attacker(model, task, references)
    fewest = min(len(rows) for of in (inside, others) for rows in of.values())
    prompts, count = min(effort.prompts, fewest // effort.shots), min(effort.rows, fewest)
    steps = prompts + 2 * math.ceil(2 * count * len(task.labels) / _AT_ONCE)
    done = 0
    for told in _attacks(attacker, model, task.demonstrations, (inside, others), (count, prompts, effort.shots)):
        done += told is None
        yield told or AuditProgress(done, steps)


def _attacks(
    attacker: Attacker,
    model: LanguageModel,
    shown: Sequence[Demonstration],
    both: tuple[_Rows, _Rows],
    numbers: tuple[int, int, int],
) -> Generator[Membership | None, None, None]:
    """The attacks on members and on others (`strangers`); yields None after each step."""
    count, prompts, shots = numbers
    members, strangers = ([row for rows in of.values() for row in rows[:count]] for of in both)
    rows = [*members, *strangers]
    portions = [rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE)]
    for portion in portions:
        attacker.usual(portion)
        yield None
    yield from _planted(attacker, model, both, shots, prompts)
    found = list[Scores]()
    for portion in portions:
        found.append(attacker.scores(shown, portion))
        yield None
    scores = {name: np.concatenate([each[name] for each in found]) for name in found[0]}
    yield Membership(RELEASED, {name: roc(each[: len(members)], each[len(members) :]) for name, each in scores.items()})


def _planted(
    attacker: Attacker, model: LanguageModel, both: tuple[_Rows, _Rows], shots: int, prompts: int
) -> Generator[Membership | None, None, None]:
    """The attacks on prompts of verbatim rows, with new members and as many new others for each prompt."""
    known: dict[str, list[Floats]] = defaultdict(list)
    unknown: dict[str, list[Floats]] = defaultdict(list)
    for number in range(prompts):
        members, strangers = (_turn(of, shots, number) for of in both)
        scores = attacker.scores(as_demonstrations(members, model), [*members, *strangers])
        for name, each in scores.items():
            known[name].append(each[: len(members)])
            unknown[name].append(each[len(members) :])
        yield None
    yield Membership(ROWS, {name: roc(np.concatenate(known[name]), np.concatenate(unknown[name])) for name in known})


def _by_label(dataset: Dataset, labels: Sequence[str], without: frozenset[str], randomness: Randomness) -> _Rows:
    """Rows of each label in random order, except those with a text in `without`."""
    rows = [row for row in dataset.records if row.text not in without]
    return {label: drawn([row for row in rows if row.label == label], len(rows), randomness) for label in labels}


def _turn(rows: _Rows, shots: int, number: int) -> list[Record]:
    """The rows of prompt `number`, with the labels in turn."""
    return [rows[label][number * shots + i] for i in range(shots) for label in rows]


def _prompt(rows: _Rows, shots: int, number: int, model: LanguageModel) -> tuple[Demonstration, ...]:
    have = min(len(each) for each in rows.values())
    return as_demonstrations(_turn(rows, shots, number), model) if have >= (number + 1) * shots else ()
