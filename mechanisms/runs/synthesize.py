"""Whether a data set is the one that a run was planned for."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Protocol

from mechanisms.accounting import BudgetSnapshot, Fingerprint, LedgerRun, PrivacyLedger, fingerprint
from mechanisms.data.disclosures import CLEAN_VALUES, NO_NOISE, SEEDED, WHETHER_SHOWN
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.demos.demo_set import Certificate, DemoSet
from mechanisms.errors import DataError, UsageError
from mechanisms.inference import LanguageModel
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.records import Dataset, Demonstration, person
from mechanisms.runs.best_of import Fidelity
from mechanisms.runs.events import CuratorEvent, RunCompleted, RunStarted
from mechanisms.runs.request import RECORD_SCHEMA, SynthesisRequest
from mechanisms.runs.resume import (
    Journal,
    Whose,
    at_the_end,
    begin,
    check_journal,
    part_of,
    reserved,
    written_down,
)
from mechanisms.runs.writing import Writing


class Planned(Protocol):
    """A request of any kind: what it says about the data set that it is for."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Public label set, in order."""

    @property
    def by_user(self) -> bool:
        """Whether the unit is all records of one user."""

    @property
    def content(self) -> str:
        """Keyed digest of the data set."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Declared upper bound of the units of each label."""

    @property
    def measured(self) -> MeasuredSizes | None:
        """The measurement that the sizes come from, if they are not declared."""


def check_fit(dataset: Dataset, planned: Planned, reads_rows: bool = True) -> None:
    """Refuse to run on another data set than the one that was planned for.

    Args:
        dataset: private.
        planned: public.
        reads_rows: whether the run reads any row at all: then the file must be the very one.

    Raises:
        UsageError: labels, unit or file are others.
        DataError: a label has more units than declared.
    """
    if dataset.labels != planned.labels or dataset.by_user != planned.by_user:
        raise UsageError("The data set and the request must agree on the labels and on the privacy unit.")
    if not reads_rows:
        return
    if fingerprint(dataset).content != planned.content:
        raise UsageError("The run was planned for another file: calibrate it for this one first.")
    if planned.measured is not None:
        return  # a measured size that is too small is part of delta, and must not show
    for label, size in dataset.counted_sizes().items():
        if size > planned.sizes[label]:
            units = f"{person(dataset.unit)}s labelled '{label}'"
            raise DataError(f"The file has more {units} than declared: correct its size.")


# Synthesis: the one place where private text meets a model meets noise, and where the ledger is charged.

TEST_SEED = "made with a test seed: an observer can predict the noise"


def synthesize(
    dataset: Dataset,
    request: SynthesisRequest,
    model: LanguageModel,
    ledger: PrivacyLedger,
    randomness: Randomness | None = None,
    curator: bool = False,
    journal: Journal | None = None,
) -> Generator[CuratorEvent, None, None]:
    """Write synthetic demonstrations, label by label, and tell about every token.

    Demonstrations that fit in one batch of the model are written side by side, each a token further at a time. Each is
    charged whole before its first token. Where the request keeps the best of several, all of them are told, and the
    last event has the set of those that were kept. Closing the generator at any point stops the run within
    one token; what was charged stays charged.

    Args:
        dataset: private.
        request: public and calibrated.
        model: the language model.
        ledger: where the run is reserved and charged.
        randomness: the operating system's, unless this is a test.
        curator: also yield `PrivateDiagnostics`; the demo set is then marked.
        journal: where the run writes down what it releases, so that it can be gone on with; one that has been cut off
            is gone on with: what was told before is told again, first.

    Raises:
        BudgetRefused: the data set's cap does not allow the run.
        UsageError: the model or the device is too small for the run, no record can be written by its schema, or it was
            planned for another data set; the journal is of another run, or nothing of the run can be kept.
        DataError: a label has more units than declared.
    """
    randomness = randomness or SecureRandomness()
    check_journal(journal, randomness, request.mechanism.uses_private_rows and not request.mechanism.not_private)
    check_fit(dataset, request, request.mechanism.uses_private_rows)
    if request.plan.share != 1.0:  # nothing divides the units here: the batch would have no room for all of them
        raise UsageError("A plan for a share of the units is the stage of a recipe: run the recipe.")
    plan, writing = request.plan, Writing(dataset, request, model, randomness, curator)
    fidelity = Fidelity(model, request.template, request.labels) if request.kept is not None else None
    data = fingerprint(dataset)
    run = _begin(data, request, ledger, randomness, journal)
    try:
        if request.mechanism.uses_private_rows:
            _mark(data, request, ledger, randomness, curator)
        before = run.before if run else None
        certificate = _certificate(data, request, ledger, randomness, before)
        demo_set = DemoSet(
            (), request.labels, request.template, certificate, model.name, model.sha256, schema=request.schema
        )
        started = RunStarted(demo_set, plan.shots, plan.tokens, plan.subsets, before, request.kept)
        told = begin(journal, started)
        yield started
        yield from told
        written = writing.events(lambda *whose: _charge(run, request, whose), run, told, journal)
        yield from written_down(written, journal)
        made = demo_set.with_demonstrations(_kept(writing, request, fidelity))
        yield RunCompleted(made, at_the_end(run) if run else None)
    finally:
        if run:
            run.finish()


def _kept(writing: Writing, request: SynthesisRequest, fidelity: Fidelity | None) -> tuple[Demonstration, ...]:
    if not writing.whole:  # of a run that goes on, after losses
        raise UsageError("Nothing of this run is left to keep: begin a new one.")
    made = writing.demonstrations
    return made if fidelity is None else fidelity.best(made, dict.fromkeys(request.labels, request.exported))


def _begin(
    data: Fingerprint,
    request: SynthesisRequest,
    ledger: PrivacyLedger,
    randomness: Randomness,
    journal: Journal | None,
) -> LedgerRun | None:
    # What promises nothing has no cost that a ledger could add up: it stays on the curator's screen, marked.
    if request.mechanism.not_private or not request.mechanism.uses_private_rows:
        return None
    name = request.mechanism.name if randomness.private else f"{request.mechanism.name} with a test seed"
    return reserved(ledger, data, name, request.event, request.release_claim(), journal)


def _mark(
    data: Fingerprint, request: SynthesisRequest, ledger: PrivacyLedger, randomness: Randomness, curator: bool
) -> None:
    for holds, mark in (
        (curator, CLEAN_VALUES),
        (request.mechanism.not_private is not None, NO_NOISE),
        (not randomness.private, SEEDED),
    ):
        if holds:
            ledger.rows.mark(data, mark)


def _certificate(
    data: Fingerprint,
    request: SynthesisRequest,
    ledger: PrivacyLedger,
    randomness: Randomness,
    before: BudgetSnapshot | None,
) -> Certificate:
    reads, structured = request.mechanism.uses_private_rows, [RECORD_SCHEMA] if request.schema else []
    reason = request.mechanism.not_private or (None if randomness.private else TEST_SEED)
    return Certificate(
        private=reason is None,
        reason=reason,
        claim=request.claim(),
        unit=data.unit,
        mechanism=request.mechanism.name,
        transform=request.transform.name,
        scheme=request.plan.scheme.value,
        parameters=request.parameters(),
        event=request.certified_event(),
        public_inputs=(*request.public_inputs, *structured, *([WHETHER_SHOWN] if reads else [])),
        # A set that no row was read for says nothing that follows from the rows.
        shown=ledger.rows.marks(data) if reads else ledger.snapshot(data.name, data.unit).marks,
        spent_before=(before.epsilon, before.delta) if before else (0.0, 0.0),
    )


def _charge(run: LedgerRun | None, request: SynthesisRequest, whose: Whose) -> BudgetSnapshot | None:
    if run is None:
        return None
    run.charge(*request.charge(*whose), part_of(whose))
    return run.snapshot()
