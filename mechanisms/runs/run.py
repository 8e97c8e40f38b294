"""A run: the only module that combines private text, the model and the noise, and that charges the ledger.

The module reads from top to bottom: `divide` (`roles.py`) gives each row its role, `run` tries the model on public text
and reserves the plan in the ledger, and `_events` executes the stages in order. Each stage is charged before it reads a
row.

A run whose process has ended can be resumed: released parts are kept, and no part is drawn twice. The ledger alone
decides whether a part may be drawn; it also stores the plan that the run was reserved for
(`mechanisms/accounting/database.py`). Events from a journal are post-processed and shown again, but decide nothing.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from mechanisms.accounting import Fingerprint, LedgerRun, PrivacyLedger, ResumablePlan, fingerprint
from mechanisms.data.disclosures import CLEAN_VALUES, NO_NOISE, SEEDED
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import DataError, SeveralErrors, StudioError, UsageError
from mechanisms.files import keyed_digest
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.records import Dataset, unit_nouns
from mechanisms.runs.events import (
    CuratorEvent,
    DemoCompleted,
    DemoRefused,
    Release,
    RunCompleted,
    RunStarted,
    SetsCompared,
    SetSoFar,
    StageStarted,
    TokenReleased,
    key_of,
)
from mechanisms.runs.journal import RunJournal
from mechanisms.runs.plan import Plan
from mechanisms.runs.roles import divide, earlier_runs
from mechanisms.runs.spec import SCORE, WRITE
from mechanisms.runs.stage import RunningStage, part_of
from mechanisms.runs.state import RunState
from mechanisms.runs.terms import NO_FILE

TEST_SEED = "made with a test seed: an observer can predict the noise"
_OF_ITS_TIME = {"epsilon", "accountants", "shown", "curator_diagnostics_shown", "spent_before", "software", "created"}
"""Fields of a set that may differ when its run is resumed: dates, the ledger's state, and last digits of a claim."""


def run(
    plan: Plan,
    dataset: Dataset,
    model: LanguageModel,
    ledger: PrivacyLedger,
    randomness: Randomness | None = None,
    curator: bool = False,
    journal: RunJournal | None = None,
    embedder: Embedder | None = None,
) -> Generator[CuratorEvent, None, None]:
    """Make a demo set, and yield an event for every release.

    Each stage is charged before it reads a row, and reads only the rows of its own role. A demonstration is charged in
    full before its first token. Closing the generator at any point stops the run within one token: all charges remain,
    and the last `SetSoFar` has everything that was released before.

    Args:
        plan: the calibrated plan; public.
        dataset: the rows; private.
        randomness: the operating system's by default; tests pass their own.
        curator: also yield `PrivateDiagnostics` of tokens; the demo set is then marked.
        journal: the file to which the run writes its releases, so that it can be resumed. The journal of an
            interrupted run resumes that run: its earlier events are yielded again first.
        embedder: embeds private texts, drafts and public words; needed for the stages "words" and "vote".

    Raises:
        BudgetRefused: the data set's cap does not allow the run.
        UsageError: the model or the device is too small for the run, the model writes no usable drafts, the run was
            planned for another data set, the journal belongs to another run, or nothing of the run can be kept.
        StudioError: the next part was released before and its text is lost, so that the run ends.
        DataError: a label has more units than declared.
    """
    randomness = randomness or SecureRandomness()
    charged = plan.reads_rows and plan.not_private is None
    if journal is not None and not (randomness.private and charged):
        raise UsageError("Only private runs can be resumed: leave out the journal.")
    check_fit(dataset, plan)
    if embedder is None and plan.embeds:
        raise UsageError("Words and a vote need a model that embeds texts.")
    data = fingerprint(dataset)
    parts = divide(dataset, plan)
    # An earlier run may have given the scoring rows other roles, and a curator may choose a run by an earlier score.
    held_out = plan.by_roles and SCORE in plan.stages and not ledger.rows.disclosures(data)
    held_out = held_out and not earlier_runs(data, ledger, journal.key if journal else "")
    state = RunState(plan, parts, model, embedder, randomness, curator, held_out)
    stages = {name: stage.begin(state) for name, stage in plan.stages.items()}
    for name, event in _by_stage(journal):  # up to the interruption
        stages[name].apply(event)
    if WRITE not in plan.stages:  # this is public and fails most often, so it comes before any charge
        yield from state.try_the_model()
    shown, seed = _disclosures(data, plan, ledger), None if randomness.private else TEST_SEED
    empty = replace(plan.empty_set(model.name, model.sha256, shown, seed), arithmetic=model.arithmetic)
    # A run without a privacy guarantee has no finite cost: it is not entered in the ledger, and its set is marked.
    entry = _reserved(data, plan, ledger, randomness, journal, empty) if charged else None
    try:
        marks = {
            CLEAN_VALUES: curator and WRITE in plan.stages,
            NO_NOISE: plan.not_private is not None,
            SEEDED: not randomness.private,
        }
        for mark in (mark for mark, holds in marks.items() if holds and plan.reads_rows):
            ledger.rows.mark(data, mark)
        empty = empty.with_disclosures(_disclosures(data, plan, ledger))
        if entry:
            spent = entry.before.epsilon, entry.before.delta
            empty = replace(empty, certificate=replace(empty.certificate, spent_before=spent))
        yield from _events(plan, state, stages, empty, entry, journal)
    finally:
        if entry:
            entry.finish()


def _events(
    plan: Plan,
    state: RunState,
    stages: Mapping[str, RunningStage],
    empty: DemoSet,
    entry: LedgerRun | None,
    journal: RunJournal | None,
) -> Iterator[CuratorEvent]:
    """Yield the events of a reserved run. Each release of a stage is marked in the ledger, written and then applied.

    The journal and the kept set have each release before it is yielded.
    """
    started = RunStarted(empty, plan.for_content(NO_FILE), entry.before if entry else None)
    replayed: Sequence[CuratorEvent] = ()
    if journal:
        journal.begin(started)
        replayed = journal.replayed or ()
    yield started
    yield from replayed
    if replayed:
        yield from _set_so_far(state, empty)
    known = _known_parts(journal, entry)
    entered = list(dict.fromkeys(stage for stage, _ in _by_stage(journal)))
    for name, running in stages.items():
        stage = plan.stages[name]
        if entry and not stage.charges_itself:
            for of, events in stage.charges():
                entry.charge(of, events, name)
        if name in entered[:-1]:  # the stage had finished before the interruption
            continue
        begins = [] if name in entered else [[StageStarted(name)]]
        for together in chain(begins, running.ask(entry)):
            if entry and journal:
                _write_down(entry, journal, known, name, together)
            for event in together:
                running.apply(event)
            if any(isinstance(event, Release | DemoCompleted | DemoRefused | SetsCompared) for event in together):
                yield from _set_so_far(state, empty)
            yield from together
    yield from _filled(state)
    made = state.with_releases(empty)
    if not made.demonstrations:
        raise UsageError("Nothing of this run is left to keep: begin a new one.")
    budget = None
    with suppress(StudioError):  # if the ledger cannot be read, the finished set must not be lost
        budget = entry.snapshot() if entry else None
    yield RunCompleted(made, budget)


def _filled(state: RunState) -> Iterator[CuratorEvent]:
    """Write public drafts in place of refused demonstrations. If the model writes none, the set stays as it is."""
    for label in state.plan.labels:
        if state.compared is None and len(state.chosen(label)) < state.plan.spec.shots:
            try:
                yield from state.first_drafts([label])
            except UsageError:
                return


def _set_so_far(state: RunState, empty: DemoSet) -> Iterator[SetSoFar]:
    made = state.with_releases(empty)
    if made.demonstrations:
        yield SetSoFar(made)


def _by_stage(journal: RunJournal | None) -> Iterator[tuple[str, CuratorEvent]]:
    """The events of an interrupted run, each as a pair of its stage's name and the event."""
    stage = ""
    for event in (journal.replayed if journal else None) or ():
        stage = event.stage if isinstance(event, StageStarted) else stage
        yield stage, event


def _part(stage: str, event: CuratorEvent) -> str | None:
    """The ledger's name for the part of the run that an event of a stage releases; None if it releases no part.

    The name of a release contains no label, because a label may have the name of a stage.
    """
    match event:
        case Release():
            return f"{type(event).__name__} in {stage}"
        case TokenReleased() | DemoCompleted():
            return part_of(key_of(event))
    return None


def _known_parts(journal: RunJournal | None, entry: LedgerRun | None) -> set[str]:
    """The parts that a journal contains. Raises a UsageError if the ledger has not marked one of them as released."""
    known = {part for stage, event in _by_stage(journal) if (part := _part(stage, event))}
    if entry is not None and not known <= entry.released:
        raise UsageError(
            "The run's file tells of releases that this ledger does not know: give the file that the run wrote."
        )
    return known


def _write_down(
    entry: LedgerRun, journal: RunJournal, known: set[str], stage: str, together: Sequence[CuratorEvent]
) -> None:
    """Mark events that are released together in the ledger, and write them to the journal, before they are yielded."""
    for event in together:
        part = _part(stage, event)
        if part and (isinstance(event, Release) or part not in known):  # tokens are marked with their demonstration
            known.add(part)
            entry.mark(part, journal.lines(event))
    journal.write(*together)


def _reserved(
    data: Fingerprint,
    plan: Plan,
    ledger: PrivacyLedger,
    randomness: Randomness,
    journal: RunJournal | None,
    planned: DemoSet,
) -> LedgerRun:
    """Reserve a new run in the ledger, or reopen the journal's interrupted run."""
    name = plan.name if randomness.private else f"{plan.name} with a test seed"
    if journal is None:
        return ledger.begin(data, name, plan.event, plan.release_claim())
    # These identify a run: its parameters, certified event, task, stages and model.
    document = planned.to_json()
    document["privacy"] = {name: value for name, value in document["privacy"].items() if name not in _OF_ITS_TIME}
    document["model"] = document["model"]["sha256"]
    fixed = {name: value for name, value in document.items() if name not in _OF_ITS_TIME}
    digest = keyed_digest(["plan", json.dumps(fixed, sort_keys=True)])
    resumable = ResumablePlan(journal.key, journal.head(planned), digest)
    reserve = ledger.begin if journal.replayed is None else ledger.resume
    return reserve(data, name, plan.event, plan.release_claim(), resumable)


def _disclosures(data: Fingerprint, plan: Plan, ledger: PrivacyLedger) -> tuple[str, ...]:
    """The disclosures on the certificate. If the run reads no row, none of them depends on the rows."""
    if plan.reads_rows:
        return ledger.rows.disclosures(data)
    return ledger.snapshot(data.name, data.unit).disclosures


def check_fit(dataset: Dataset, plan: Plan) -> None:
    """Refuse a data set for which the run was not planned.

    Raises:
        UsageError: the data set has other labels, another privacy unit or other content.
        DataError: a label has more units than declared.
    """
    if dataset.labels != plan.labels or (plan.reads_rows and dataset.unit != plan.unit):
        raise UsageError("The data set and the plan must agree on the labels and on the privacy unit.")
    if not plan.reads_rows:
        return
    if fingerprint(dataset).content != plan.content:
        raise UsageError("The run was planned for another file: calibrate it for this one first.")
    if plan.measured is not None:
        return  # delta covers a measured size that is too small, and an error would disclose it
    who = unit_nouns(dataset.unit)
    larger = [
        f"The file has more {who} labelled '{label}' than declared: correct its size."
        for label, size in dataset.counted_sizes().items()
        if size > plan.sizes[label]
    ]
    if larger:
        raise DataError(larger[0]) if len(larger) == 1 else SeveralErrors(larger)
