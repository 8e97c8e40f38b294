"""Membership inference on prompts: does a row's own label grow likelier where the row stands behind the prompt?

Duan et al. 2023 score a row by the probability of its own label under the demonstrations. That is high for every easy
row, used or not, so two more attacks ask how much higher it is than it would be anyway: than without demonstrations,
and than under reference prompts of other rows (offline likelihood ratio, Carlini et al. 2022, with one variance).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.errors import UsageError
from mechanisms.inference import LanguageModel
from mechanisms.noise import Floats, Randomness, SecureRandomness
from mechanisms.records import Dataset, Demonstration, Record
from mechanisms.studio.assurance.audit import AuditProgress
from mechanisms.studio.assurance.roc import Roc, roc
from mechanisms.studio.assurance.shown_rows import RELEASED, ROWS, as_demonstrations, drawn
from mechanisms.studio.evaluation.classify import Classifier
from mechanisms.studio.recipes.any_set import AnySet

PROBABILITY, ZERO_SHOT, REFERENCES = "probability", "over zero-shot", "over references"
_LEAST, _MOST = -700.0, -1e-12
"""Log-probabilities whose odds are finite."""

Scores = Mapping[str, Floats]
"""Of each attack, a score for each row: the higher, the likelier a member."""
_Rows = Mapping[str, Sequence[Record]]
"""Rows of each label."""


@dataclass(frozen=True)
class Effort:
    """How much is tried; public.

    Attributes:
        rows: of each label, members and others each, that are scored under the released demonstrations.
        prompts: of private rows as they are, the planted leak.
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
    """What each attack reaches; `shown` is what stood in the prompt: `RELEASED` or `ROWS`."""

    shown: str
    attacks: Mapping[str, Roc]


class Attacker:
    """Knows the model, the task, the rows that it asks about, and public texts; sees the prompt's answers alone."""

    def __init__(self, model: LanguageModel, task: AnySet, references: Sequence[Sequence[Demonstration]]) -> None:
        """Prepare the prompts by which scores are calibrated: none, and the references, which hold no member."""
        self._model, self._task = model, task
        self._without = self._under(())
        self._references = [self._under(each) for each in references]

    def _under(self, shown: Sequence[Demonstration]) -> Classifier:
        return Classifier(self._model, self._task.template, self._task.labels, shown)

    def scores(self, shown: Sequence[Demonstration], rows: Sequence[Record]) -> Scores:
        """How much each row looks like one of those behind the demonstrations `shown`."""
        own = self._own_label(self._under(shown), rows)
        usual = np.mean([_odds(self._own_label(each, rows)) for each in self._references], axis=0)
        return {
            PROBABILITY: own,
            ZERO_SHOT: own - self._own_label(self._without, rows),
            REFERENCES: _odds(own) - usual,
        }

    def _own_label(self, classifier: Classifier, rows: Sequence[Record]) -> Floats:
        """Log-probability of each row's own label."""
        found = classifier.log_probabilities([row.text for row in rows])
        own = found[np.arange(len(rows)), [self._task.labels.index(row.label) for row in rows]]
        return np.clip(np.nan_to_num(own, nan=_LEAST), _LEAST, _MOST)


def _odds(log_probabilities: Floats) -> Floats:
    """Log-odds, which are nearer to a normal distribution than probabilities (Carlini et al. 2022)."""
    return np.asarray(log_probabilities - np.log(-np.expm1(log_probabilities)))


def membership(
    model: LanguageModel,
    task: AnySet,
    private: Dataset,
    held_out: Dataset,
    effort: Effort | None = None,
    randomness: Randomness | None = None,
) -> Generator[AuditProgress | Membership, None, None]:
    """Attack a set of demonstrations, and before it prompts of real rows, which the attacks must find.

    Members are rows of the data set that the demonstrations were made from, others held-out rows; as many of each
    label, so that labels tell nothing. Rows of the two files should be drawn from the same source: what else differs
    between them counts as membership here.

    Args:
        model: what the prompts are put to.
        task: the demonstrations, and their task.
        private: behind the demonstrations.
        held_out: rows that are not; those that are in `private` too are left out.
        effort: how much is tried.
        randomness: which rows are drawn; the operating system's, unless this is a test.

    Yields:
        Progress in prompts, and a result for `ROWS` and for `RELEASED`.

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
        raise UsageError("Both files need more rows of every label: at least the shots, held out also the references.")
    attacker = Attacker(model, task, references)
    yield from _planted(attacker, model, inside, others, effort)
    count = min(effort.rows, *(len(rows) for of in (inside, others) for rows in of.values()))
    members, strangers = ([row for rows in of.values() for row in rows[:count]] for of in (inside, others))
    both = attacker.scores(task.demonstrations, [*members, *strangers])
    yield Membership(RELEASED, {name: roc(each[: len(members)], each[len(members) :]) for name, each in both.items()})


def _planted(
    attacker: Attacker, model: LanguageModel, inside: _Rows, others: _Rows, effort: Effort
) -> Generator[AuditProgress | Membership, None, None]:
    """Prompts of other rows each time, and as many strangers each time."""
    known: dict[str, list[Floats]] = defaultdict(list)
    unknown: dict[str, list[Floats]] = defaultdict(list)
    fewest = min(len(rows) for of in (inside, others) for rows in of.values())
    prompts = min(effort.prompts, fewest // effort.shots)
    for number in range(prompts):
        members, strangers = (_turn(of, effort.shots, number) for of in (inside, others))
        scores = attacker.scores(as_demonstrations(members, model), [*members, *strangers])
        for name, each in scores.items():
            known[name].append(each[: len(members)])
            unknown[name].append(each[len(members) :])
        yield AuditProgress(number + 1, prompts + 1)
    yield Membership(ROWS, {name: roc(np.concatenate(known[name]), np.concatenate(unknown[name])) for name in known})


def _by_label(dataset: Dataset, labels: Sequence[str], without: frozenset[str], randomness: Randomness) -> _Rows:
    """Rows of each label in random order, without some texts."""
    rows = [row for row in dataset.records if row.text not in without]
    return {label: drawn([row for row in rows if row.label == label], len(rows), randomness) for label in labels}


def _turn(rows: _Rows, shots: int, number: int) -> list[Record]:
    """The rows of a prompt, labels by turns."""
    return [rows[label][number * shots + i] for i in range(shots) for label in rows]


def _prompt(rows: _Rows, shots: int, number: int, model: LanguageModel) -> tuple[Demonstration, ...]:
    have = min(len(each) for each in rows.values())
    return as_demonstrations(_turn(rows, shots, number), model) if have >= (number + 1) * shots else ()
