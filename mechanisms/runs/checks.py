"""Checks of a run before anything is spent: reasons why it would fail or say little, each with its remedy.

A check charges nothing, and releases nothing to a set. Findings may have counts of private rows, so they are only for
the owner's own screen, and no file has them. A run is refused here by the same functions as when it begins.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.sizes import FAILURE_SHARE, MeasuredSizes
from mechanisms.errors import SeveralErrors, StudioError, UsageError
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.inference.prompts import first_tokens
from mechanisms.inference.vocabulary import in_english
from mechanisms.noise import SecureRandomness
from mechanisms.records import Dataset, unit_nouns
from mechanisms.rounding import duration, rounded_down, rounded_up
from mechanisms.runs.plan import Plan
from mechanisms.runs.roles import divide
from mechanisms.runs.run import check_fit
from mechanisms.runs.spec import CALIBRATE, SCORE, SETTINGS, WORDS, WRITE
from mechanisms.runs.state import RunState
from mechanisms.runs.text import FOREIGN, Gate
from mechanisms.runs.work import Speed

T = TypeVar("T")


class Level(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    """The run would fail."""
    WARNING = "warning"
    """The run's results would say little, or less than they seem to."""
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """A finding of a check: its subject, its severity, and one line that says what to do."""

    check: str
    level: Level
    message: str

    @property
    def line(self) -> str:
        return f"{self.level}: {self.check}: {self.message}"


def warned(check: str, message: str) -> Finding:
    """A finding that does not stop the run."""
    return Finding(check, Level.WARNING, message)


class Findings:
    """The findings of several checks, each message once; the checks continue after a refusal."""

    def __init__(self) -> None:
        self._found: dict[str, Finding] = {}

    def add(self, found: Iterable[Finding]) -> None:
        """Add the findings of a check."""
        for each in found:
            self._found.setdefault(each.message, each)

    def attempt(self, check: str, work: Callable[[], T]) -> T | None:
        """The result of `work`; None if it is refused, and the refusal is then added as an error."""
        try:
            return work()
        except StudioError as error:
            lines = error.lines if isinstance(error, SeveralErrors) else [str(error)]
            self.add(Finding(check, Level.ERROR, line) for line in lines)
            return None

    @property
    def errors(self) -> int:
        """The number of findings that stop the run."""
        return sum(each.level is Level.ERROR for each in self._found.values())

    def __iter__(self) -> Iterator[Finding]:
        """Errors first, then warnings, then notes; each kind in the order of the checks."""
        return iter(sorted(self._found.values(), key=lambda each: [*Level].index(each.level)))


def check_plan(plan: Plan, dataset: Dataset, ledger: PrivacyLedger, to_measure: bool = False) -> Findings:
    """The findings on a calibrated plan for a data set that need no model; private.

    Args:
        to_measure: whether the run still has to pay for measuring the plan's sizes.
    """
    found = Findings()
    found.attempt("rows", lambda: check_fit(dataset, plan))
    found.add(row_findings(plan, dataset))
    found.add(plan_findings(plan))
    found.attempt("budget", lambda: check_budget(plan, dataset, ledger, to_measure))
    found.attempt("disk", lambda: check_disk(ledger.folder))
    return found


def check_with_model(plan: Plan, dataset: Dataset, model: LanguageModel, embedder: Embedder | None) -> Findings:
    """The findings on a plan that need the run's models; private. No model computes on a row: only the tokenizer reads
    texts."""
    found = Findings()
    state = RunState(plan, divide(dataset, plan), model, embedder, SecureRandomness(), False, False)
    for stage in plan.stages.values():
        found.attempt("memory", lambda stage=stage: stage.begin(state))  # type: ignore[misc]
    found.add(long_text_findings(plan, dataset, model))
    found.add(language_findings(plan, dataset, model))
    return found


def plan_findings(plan: Plan) -> Iterator[Finding]:
    """The warnings of the plan, such as those about its noise or about too few units."""
    return (warned(check, message) for check, message in plan.warnings())


def time_findings(plan: Plan, speed: Speed) -> Iterator[Finding]:
    """The forecast time of the run on this machine; a warning if it takes hours."""
    seconds = speed.seconds(plan.work)
    told = f"The run takes {duration(seconds)} on this machine"
    if seconds < _LONG:
        yield Finding("time", Level.NOTE, f"{told}.")
    else:
        yield warned(
            "time",
            f"{told}: with fewer {_setting('subsets')}, {_setting('shots')} or {_setting('draft_tokens')}, or a "
            "smaller model, it takes less. A journal lets it be resumed.",
        )


_LONG = 3600.0
"""The time of a run, in seconds, from which on it is a warning."""


def _setting(name: str) -> str:
    """A setting's name on the command line and in the app."""
    each = SETTINGS[name]
    return f"'{each.field.title}' ({each.flag})"


def check_budget(plan: Plan, dataset: Dataset, ledger: PrivacyLedger, to_measure: bool = False) -> None:
    """Refuse a run that exceeds the data set's cap. Raises the same BudgetRefused as `run`."""
    if not plan.reads_rows or plan.not_private:
        return
    data = fingerprint(dataset)
    if to_measure:
        ledger.check(data, plan.certified_event(), plan.claim())
    else:
        ledger.check(data, plan.event, plan.release_claim())


def budget_findings(plan: Plan, dataset: Dataset, ledger: PrivacyLedger) -> Iterator[Finding]:
    """The remaining budget of the data set, and the part of it that the run would take."""
    if plan.reads_rows and not plan.not_private:
        left = ledger.snapshot(dataset.name, dataset.unit)
        cost = rounded_up(plan.claim().epsilon, 3)
        told = f"The run takes epsilon {cost} of {rounded_down(left.remaining, 3)} that are left for '{left.name}'"
        yield Finding("budget", Level.NOTE, f"{told} (cap {left.cap.epsilon:g}).")


_LEAST_DISK = 2**25
"""The least free space, in bytes: a ledger with the digests of a million rows, a journal and a set need less."""


def check_disk(folder: Path) -> None:
    """Refuse a folder, or the path of a new file, on a disk that is nearly full. Raises a UsageError."""
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    free = shutil.disk_usage(there).free
    if free < _LEAST_DISK:
        raise UsageError(f"Only {free / 1e6:.0f} MB are free where '{folder}' lies: make room there.")


# What these find in the private rows is for their owner only.
_LOOKED_AT, _READ = 2000, 200
"""The numbers of texts, or users, from which the lengths and the language of the texts are estimated."""


def as_measured(dataset: Dataset, epsilon: float, delta: float) -> MeasuredSizes:
    """The true sizes of the labels in the form of measured ones, for a check only: private, and never stored."""
    sizes = {label: max(1, size) for label, size in dataset.counted_sizes().items()}
    return MeasuredSizes(sizes, epsilon, FAILURE_SHARE * delta, fingerprint(dataset).content)


def row_findings(plan: Plan, dataset: Dataset) -> Iterator[Finding]:
    """The labels for which the file has no rows, or far fewer units than declared; private."""
    if not plan.reads_rows or dataset.labels != plan.labels:
        return
    who = unit_nouns(dataset.unit)
    for label, counted in dataset.counted_sizes().items():
        declared = plan.sizes[label]
        if not counted:
            yield warned(
                "rows",
                f"No row has the label '{label}', and noise alone would choose its texts: check how the file spells "
                "it, or leave it out.",
            )
        elif 2 * counted < declared and plan.measured is None:
            yield warned(
                "rows",
                f"The file has fewer than half of the {declared:,} {who} that are declared for '{label}': so few join "
                "that the noise weighs more than the plan says. Declare sizes as the file counts them, or let them be "
                "measured with noise.",
            )


def long_text_findings(plan: Plan, dataset: Dataset, model: LanguageModel) -> Iterator[Finding]:
    """The approximate share of texts that are longer than the public cap, if the language model reads rows; private."""
    if not plan.reads_rows or {WRITE, CALIBRATE, SCORE}.isdisjoint(plan.stages):
        return
    cap, texts = plan.spec.max_record_tokens, _some(dataset, _LOOKED_AT)
    cut = sum(len(first_tokens(model, text, cap + 1)) > cap for text in texts)
    if cut:
        told = (
            f"About {max(1, round(100 * cut / len(texts)))}% of the texts are longer than {cap} tokens, and cut there"
        )
        help_text = f"a larger {_setting('max_record_tokens')} reads more of them, and takes longer"
        level = Level.WARNING if 2 * cut > len(texts) else Level.NOTE
        yield Finding("tokens", level, f"{told}: {help_text}.")


def language_findings(plan: Plan, dataset: Dataset, model: LanguageModel) -> Iterator[Finding]:
    """Warnings if the rows seem to be in a language that the model, the program's sentence or the public words do not
    cover; private."""
    texts = _some(dataset, _READ) if plan.reads_rows else []
    if Gate(model, texts).foreign:
        yield warned("language", FOREIGN)
    if in_english(texts):
        return
    if not plan.spec.sentence:
        told = "The program's own sentence asks in English, and the rows seem to be of another language"
        yield warned("language", f"{told}: say yours as {_setting('sentence')}.")
    if WORDS in plan.stages:
        yield warned(
            "words",
            "The public words are English, and the rows seem not to be: few will say what a label is about. Give the "
            f"labels good names, and leave the stage '{WORDS}' out of the {_setting('shares')}.",
        )


def _some(dataset: Dataset, most: int) -> Sequence[str]:
    """The texts of at most `most` units, spread evenly over the whole file."""
    rows = dataset.members
    return [row.text for unit in rows[:: max(1, -(-len(rows) // most))] for row in unit]


def draft_findings(plan: Plan, model: LanguageModel, embedder: Embedder | None) -> Iterator[Finding]:
    """Check by a few samples of the first label whether the model can write the drafts that a run in stages needs, and
    warn if it may hardly know their language.

    Raises:
        UsageError: no draft is usable.
        ModelUnavailable: the model's logits are not finite.
    """
    if plan.stages.keys() <= {WRITE}:
        return
    state = RunState(plan, {}, model, embedder, SecureRandomness(), False, False)
    for _ in state.try_the_model():
        pass
    if state.gate.foreign:
        yield warned("language", FOREIGN)
