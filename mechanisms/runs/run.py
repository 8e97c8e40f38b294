"""Whether rows took part in nothing before, as far as the ledger knows: what a score says of its scorers."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace

from mechanisms.accounting import Fingerprint, LedgerRun, PrivacyLedger, fingerprint
from mechanisms.data.disclosures import CLEAN_VALUES, SEEDED, WHETHER_MET, WHETHER_SHOWN
from mechanisms.demos.demo_set import Certificate, DemoSet
from mechanisms.errors import UsageError
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.records import Dataset
from mechanisms.runs.events import DemoCompleted
from mechanisms.runs.recipe import Division, Stage, divide
from mechanisms.runs.recipe_events import (
    ChoiceReleased,
    CuratorRecipeEvent,
    PriorsReleased,
    RecipeCompleted,
    RecipeStarted,
    ScoreReleased,
    SetKept,
    VotesReleased,
)
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.resume import Journal, at_the_end, begin, check_journal, reserved
from mechanisms.runs.stages import Stages
from mechanisms.runs.synthesize import TEST_SEED, check_fit
from mechanisms.runs.writing import Writing


def earlier_runs(data: Fingerprint, ledger: PrivacyLedger, but: str = "") -> list[dict[str, object]]:
    """The runs that may have read rows of a data set, under whatever name, but to count them; private.

    Args:
        data: private.
        ledger: where they are.
        but: the key of a run that is left out.
    """
    names = dict.fromkeys([data.name, *ledger.rows.names_that_share(data.rows)])
    runs = (run for name in names for run in ledger.history(name, but))
    return [run for run in runs if not str(run["mechanism"]).startswith("label counts")]


def is_new(data: Fingerprint, ledger: PrivacyLedger, but: str = "") -> bool:
    """Whether nothing is known of a data set's rows that a run can have been chosen by, `but` by the run of that key.

    Another run may have given its scorers other roles, and whoever has seen a score may choose by it.
    """
    return not ledger.rows.marks(data) and not earlier_runs(data, ledger, but)


# A recipe's run: stage after stage, each charged before it reads a row, each seeing the rows of its own role alone.

_RELEASES = DemoCompleted | VotesReleased | PriorsReleased | ChoiceReleased | ScoreReleased
"""What stands in the set from then on."""


def run_recipe(
    dataset: Dataset,
    request: RecipeRequest,
    model: LanguageModel,
    embedder: Embedder,
    ledger: PrivacyLedger,
    randomness: Randomness | None = None,
    curator: bool = False,
    journal: Journal | None = None,
) -> Generator[CuratorRecipeEvent, None, None]:
    """Make a demo set by a recipe, and tell about every release.

    Closing the generator at any point stops the run; what was charged stays charged, and what was released before is in
    the last `SetKept`.

    Args:
        dataset: private.
        request: public; where it writes token by token, with a calibrated mechanism.
        model: the language model.
        embedder: places private texts and drafts near each other.
        ledger: where the run is reserved and charged.
        randomness: the operating system's, unless this is a test.
        curator: also yield `PrivateDiagnostics` of tokens; the demo set is then marked.
        journal: where the run writes down what it releases, so that it can be gone on with; one that has been cut off
            is gone on with: what was told before is told again, first.

    Raises:
        BudgetRefused: the data set's cap does not allow the run.
        UsageError: the model or the device is too small for the run, it writes no usable drafts, or the run was planned
            for another data set; the journal is of another run.
        StudioError: what comes next was let out before and is lost, so that the run ends here.
        DataError: a label has more units than declared.
    """
    randomness = randomness or SecureRandomness()
    check_journal(journal, randomness, private=True)
    check_fit(dataset, request)
    if request.written is not None:
        _check_writing(request, request.written)
    parts = divide(dataset, request.recipe)
    writing = None
    if request.written is not None:
        writing = Writing(parts[Stage.WRITE], request.written, model, randomness, curator)
    data = fingerprint(dataset)
    untouched = request.recipe.division is Division.ROLES and is_new(data, ledger, journal.key if journal else "")
    stages = Stages(request, parts, model, embedder, randomness, writing, untouched)
    for event in (journal.told if journal else None) or ():
        stages.apply(event)
    yield from stages.draft()  # public, and the likeliest to fail: before anybody has paid
    name = f"recipe {request.recipe.kind}{'' if randomness.private else ' with a test seed'}"
    run = reserved(ledger, data, name, request.event, request.release_claim(), journal)
    try:
        for holds, mark in ((curator and writing is not None, CLEAN_VALUES), (not randomness.private, SEEDED)):
            if holds:
                ledger.rows.mark(data, mark)
        yield from _told(stages, _empty(request, data, ledger, randomness, run, model), request, run, journal)
    finally:
        run.finish()


def _told(
    stages: Stages, demo_set: DemoSet, request: RecipeRequest, run: LedgerRun, journal: Journal | None
) -> Iterator[CuratorRecipeEvent]:
    """All that is told of a run that is reserved; each release is in the journal, and in the kept set, before."""
    started = RecipeStarted(demo_set, request.recipe.stages, request.shots, request.tokens, run.before)
    told = begin(journal, started)
    yield started
    yield from told
    if told:
        demo_set = stages.kept(demo_set)
        yield SetKept(demo_set)
    for together in stages.events(run, told, journal):
        if journal:
            journal.write(*together)
        for event in together:
            stages.apply(event)
            if isinstance(event, _RELEASES):
                demo_set = stages.kept(demo_set)
                yield SetKept(demo_set)
            yield event
    yield RecipeCompleted(demo_set, at_the_end(run))


def _check_writing(request: RecipeRequest, written: SynthesisRequest) -> None:
    """The batch has room for the role's units of these sizes: for more of them its capacity would not be paid for."""
    same = ("labels", "by_user", "sizes", "measured")
    if written.plan.share != request.role(Stage.WRITE) or any(
        getattr(written, each) != getattr(request, each) for each in same
    ):
        raise UsageError("What the stage 'write' was calibrated for is not this recipe: calibrate it again.")


def _empty(
    request: RecipeRequest,
    data: Fingerprint,
    ledger: PrivacyLedger,
    randomness: Randomness,
    run: LedgerRun,
    model: LanguageModel,
) -> DemoSet:
    said = [WHETHER_MET] if Stage.SCORE in request.recipe.shares else []
    certificate = Certificate(
        private=randomness.private,
        reason=None if randomness.private else TEST_SEED,
        claim=request.claim(),
        unit=data.unit,
        mechanism=f"recipe {request.recipe.kind}",
        transform="none",
        scheme=request.recipe.division.value,
        parameters=request.parameters(),
        event=request.certified_event(),
        public_inputs=(*request.public_inputs, WHETHER_SHOWN, *said),
        shown=ledger.rows.marks(data),
        spent_before=(run.before.epsilon, run.before.delta),
    )
    made = DemoSet((), request.labels, request.template, certificate, model.name, model.sha256)
    return replace(made, stages=request.stages())
