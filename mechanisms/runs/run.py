"""A run: the one place where private text, the model and the noise meet, and where the ledger is charged."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Protocol

from mechanisms.accounting import BudgetSnapshot, EarlierRun, Fingerprint, LedgerRun, PrivacyLedger, fingerprint
from mechanisms.data.sizes import CLEAN_VALUES, NO_NOISE, SEEDED, WHETHER_MET, WHETHER_SHOWN
from mechanisms.demos.demo_set import Certificate, DemoSet
from mechanisms.errors import DataError, UsageError
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.records import Dataset, person
from mechanisms.runs.best_of import Fidelity
from mechanisms.runs.events import CuratorEvent, DemoCompleted, Drafting, RunCompleted, SetKept, WritingEvent
from mechanisms.runs.in_stages import Stages
from mechanisms.runs.recipe import Division, Stage, divide
from mechanisms.runs.recipe_request import RecipeRequest, RunRequest, has_stages
from mechanisms.runs.request import RECORD_SCHEMA, SynthesisRequest
from mechanisms.runs.resume import Journal, at_the_end, begin, check_journal, part_of, reserved
from mechanisms.runs.stage import stage_class
from mechanisms.runs.writing import Writing

TEST_SEED = "made with a test seed: an observer can predict the noise"


def synthesize(
    dataset: Dataset,
    request: RunRequest,
    model: LanguageModel,
    ledger: PrivacyLedger,
    randomness: Randomness | None = None,
    curator: bool = False,
    journal: Journal | None = None,
    embedder: Embedder | None = None,
) -> Generator[CuratorEvent, None, None]:
    """Make a demo set, and yield an event for every release.

    Token by token each demonstration is charged whole before its first token; those that fit in one batch of the model
    are written side by side. In stages each is charged before it reads a row, and sees the rows of its own role alone.
    Closing the generator at any point stops the run, within one token; what was charged stays charged. What was
    released before is, in stages, in the last `SetKept`.

    Args:
        dataset: private.
        request: public and calibrated.
        model: the language model.
        ledger: where the run is reserved and charged.
        randomness: the operating system's, unless this is a test.
        curator: also yield `PrivateDiagnostics` of tokens; the demo set is then marked.
        journal: where the run writes down what it releases, so that it can be gone on with; one that has been cut off
            is gone on with: what was told before is told again, first.
        embedder: places private texts and drafts near each other; needed in stages.

    Raises:
        BudgetRefused: the data set's cap does not allow the run.
        UsageError: the model or the device is too small for the run, it writes no usable drafts, no record can be
            written by its schema, or the run was planned for another data set; the journal is of another run, or
            nothing of the run can be kept.
        StudioError: what comes next was let out before and is lost, so that the run ends here.
        DataError: a label has more units than declared.
    """
    randomness = randomness or SecureRandomness()
    check_journal(journal, randomness, request.reads_rows and request.not_private is None)
    check_fit(dataset, request)
    data = fingerprint(dataset)
    new = request.scheme == Division.ROLES and is_new(data, ledger, journal.key if journal else "")
    work: _Work
    if has_stages(request):
        work = _stages(dataset, request, model, embedder, randomness, curator, new)
    else:
        work = _TokenByToken(dataset, request, model, randomness, curator)
    for event in (journal.replayed if journal else None) or ():
        work.apply(event)
    yield from work.draft()  # public, and the likeliest to fail: before anybody has paid
    planned = _empty(data, request, model, ledger, randomness)
    entry = _reserved(data, request, ledger, randomness, journal, planned)
    try:
        _mark(data, request, ledger, randomness, curator)
        begun = planned.with_disclosures(_disclosures(data, request, ledger))
        if entry:
            begun = begun.with_spent_before(entry.before.epsilon, entry.before.delta)
        yield from _run_events(work, begun, request, entry, journal)
    finally:
        if entry:
            entry.finish()


def _run_events(
    work: _Work, demo_set: DemoSet, request: RunRequest, entry: LedgerRun | None, journal: Journal | None
) -> Iterator[CuratorEvent]:
    """The events of a reserved run. The journal and the kept set have each release before it is yielded."""
    started = request.started(demo_set, entry.before if entry else None)
    replayed = begin(journal, started)
    yield started
    yield from replayed
    if replayed and (kept := work.kept(demo_set)):
        demo_set = kept
        yield SetKept(demo_set)
    releases = (DemoCompleted, *(each for stage in request.stages for each in stage_class(stage).releases))
    for together in work.events(entry, replayed, journal):
        if journal:
            journal.write(*together)
        for event in together:
            work.apply(event)
            if isinstance(event, releases) and (kept := work.kept(demo_set)):
                demo_set = kept
                yield SetKept(demo_set)
            yield event
    yield RunCompleted(work.made(demo_set), at_the_end(entry) if entry else None)


def _reserved(
    data: Fingerprint,
    request: RunRequest,
    ledger: PrivacyLedger,
    randomness: Randomness,
    journal: Journal | None,
    planned: DemoSet,
) -> LedgerRun | None:
    # What promises nothing has no cost that a ledger could add up: it stays on the curator's screen, marked.
    if request.not_private or not request.reads_rows:
        return None
    name = request.name if randomness.private else f"{request.name} with a test seed"
    started = request.started(planned, None)
    return reserved(ledger, data, name, request.event, request.release_claim(), journal, started)


def _mark(data: Fingerprint, request: RunRequest, ledger: PrivacyLedger, randomness: Randomness, curator: bool) -> None:
    for holds, mark in (
        (curator and request.written is not None, CLEAN_VALUES),
        (request.not_private is not None, NO_NOISE),
        (not randomness.private, SEEDED),
    ):
        if holds and request.reads_rows:
            ledger.rows.mark(data, mark)


def _disclosures(data: Fingerprint, request: RunRequest, ledger: PrivacyLedger) -> tuple[str, ...]:
    """The disclosures on the certificate; where no row is read, none that follows from the rows."""
    if request.reads_rows:
        return ledger.rows.disclosures(data)
    return ledger.snapshot(data.name, data.unit).disclosures


def _empty(
    data: Fingerprint,
    request: RunRequest,
    model: LanguageModel,
    ledger: PrivacyLedger,
    randomness: Randomness,
) -> DemoSet:
    """The set before its first demonstration and before its charge, with its certificate."""
    reason = request.not_private or (None if randomness.private else TEST_SEED)
    said = {
        RECORD_SCHEMA: request.schema is not None,
        WHETHER_SHOWN: request.reads_rows,
        WHETHER_MET: Stage.SCORE in request.stages,
    }
    certificate = Certificate(
        private=reason is None,
        reason=reason,
        claim=request.claim(),
        unit=data.unit,
        mechanism=request.name,
        transform=request.transform_name,
        scheme=request.scheme,
        parameters=request.parameters(),
        event=request.certified_event(),
        public_inputs=(*request.public_inputs, *(each for each, holds in said.items() if holds)),
        disclosures=_disclosures(data, request, ledger),
        spent_before=(0.0, 0.0),
    )
    return DemoSet(
        (),
        request.labels,
        request.template,
        certificate,
        model.name,
        model.sha256,
        schema=request.schema,
        stages=request.stage_records(),
    )


# The two kinds of work, each with what it charges and what it keeps.


class _Work(Protocol):
    def draft(self) -> Iterator[Drafting]:
        """Write public drafts and check prompts, before any charge."""

    def events(
        self, entry: LedgerRun | None, replayed: Sequence[CuratorEvent], journal: Journal | None
    ) -> Iterator[Sequence[CuratorEvent]]:
        """The remaining events of the run; those that are released together come together."""

    def apply(self, event: CuratorEvent) -> None:
        """Update the state by an event, new or replayed."""

    def kept(self, demo_set: DemoSet) -> DemoSet | None:
        """The set if the run is stopped from here on; None where the events tell it."""

    def made(self, demo_set: DemoSet) -> DemoSet:
        """The finished set."""


class _TokenByToken:
    """Demonstrations that are charged one by one; where the best of several are kept, they are chosen at the end."""

    def __init__(
        self,
        dataset: Dataset,
        request: SynthesisRequest,
        model: LanguageModel,
        randomness: Randomness,
        curator: bool,
    ) -> None:
        if request.plan.share != 1.0:  # nothing divides the units here: the batch would have no room for all of them
            raise UsageError("A plan for a share of the units is the stage of a recipe: run the recipe.")
        self._request, self._writing = request, Writing(dataset, request, model, randomness, curator)
        kept = request.kept is not None
        self._fidelity = Fidelity(model, request.template, request.labels) if kept else None

    def draft(self) -> Iterator[Drafting]:
        """See `_Work`; nothing is drafted."""
        return iter(())

    def events(
        self, entry: LedgerRun | None, replayed: Sequence[CuratorEvent], journal: Journal | None
    ) -> Iterator[Sequence[WritingEvent]]:
        """See `_Work`."""

        def charge(label: str, number: int) -> BudgetSnapshot | None:
            if entry is None:
                return None
            entry.charge(*self._request.charge(label, number), part_of((label, number)))
            return entry.snapshot()

        yield from ([event] for event in self._writing.events(charge, entry, replayed, journal))

    def apply(self, event: CuratorEvent) -> None:
        """See `_Work`; `Writing` keeps its own state."""

    def kept(self, demo_set: DemoSet) -> DemoSet | None:
        """See `_Work`; an event tells each finished demonstration."""
        return None

    def made(self, demo_set: DemoSet) -> DemoSet:
        """See `_Work`.

        Raises:
            UsageError: nothing is left of a resumed run.
        """
        if not self._writing.completed:
            raise UsageError("Nothing of this run is left to keep: begin a new one.")
        made, request = self._writing.demonstrations, self._request
        if self._fidelity is not None:
            made = self._fidelity.best(made, dict.fromkeys(request.labels, request.exported))
        return demo_set.with_demonstrations(made)


def _stages(
    dataset: Dataset,
    request: RecipeRequest,
    model: LanguageModel,
    embedder: Embedder | None,
    randomness: Randomness,
    curator: bool,
    new: bool,
) -> Stages:
    """Stage after stage, each on the rows of its role or with its share of epsilon."""
    if embedder is None:
        raise UsageError("A run in stages needs a model that embeds texts.")
    parts, writing = divide(dataset, request.recipe), None
    if request.written is not None:
        _check_writing(request, request.written)
        writing = Writing(parts[Stage.WRITE], request.written, model, randomness, curator)
    return Stages(request, parts, model, embedder, randomness, writing, new)


def _check_writing(request: RecipeRequest, written: SynthesisRequest) -> None:
    """Refuse a writing that was calibrated for other units: the charge covers the batch's capacity for these alone."""
    same = ("labels", "by_user", "sizes", "measured")
    if written.plan.share != request.role(Stage.WRITE) or any(
        getattr(written, each) != getattr(request, each) for each in same
    ):
        raise UsageError("What the stage 'write' was calibrated for is not this recipe: calibrate it again.")


# Whether a data set is the one that a run was planned for, and whether its rows took part in nothing before.


def check_fit(dataset: Dataset, planned: RunRequest) -> None:
    """Refuse a data set for which the run was not planned.

    Args:
        dataset: private.
        planned: public.

    Raises:
        UsageError: other labels, another unit or another file.
        DataError: a label has more units than declared.
    """
    if dataset.labels != planned.labels or dataset.by_user != planned.by_user:
        raise UsageError("The data set and the request must agree on the labels and on the privacy unit.")
    if not planned.reads_rows:
        return
    if fingerprint(dataset).content != planned.content:
        raise UsageError("The run was planned for another file: calibrate it for this one first.")
    if planned.measured is not None:
        return  # a measured size that is too small is part of delta, and must not show
    for label, size in dataset.counted_sizes().items():
        if size > planned.sizes[label]:
            units = f"{person(dataset.unit)}s labelled '{label}'"
            raise DataError(f"The file has more {units} than declared: correct its size.")


def earlier_runs(data: Fingerprint, ledger: PrivacyLedger, but: str = "") -> list[EarlierRun]:
    """See `PrivacyLedger.earlier_runs`; counts of labels are left out, since they say nothing of single rows' roles."""
    return [run for run in ledger.earlier_runs(data, but) if not run.mechanism.startswith("label counts")]


def is_new(data: Fingerprint, ledger: PrivacyLedger, but: str = "") -> bool:
    """Whether no earlier run or disclosure says anything about a data set's rows, except the run with the key `but`.

    An earlier run may have given the scorers other roles, and a curator may choose a run by an earlier score.
    """
    return not ledger.rows.disclosures(data) and not earlier_runs(data, ledger, but)
