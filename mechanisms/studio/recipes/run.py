"""A recipe's run: stage after stage, each charged before it reads a row, each seeing the rows of its own role alone."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace

import numpy as np

from mechanisms.accounting import Fingerprint, LedgerRun, PrivacyLedger, fingerprint
from mechanisms.errors import UsageError
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.records import Dataset, Demonstration
from mechanisms.studio.data.marks import CLEAN_VALUES, SEEDED, WHETHER_MET, WHETHER_SHOWN
from mechanisms.studio.data.units import units_of
from mechanisms.studio.recipes.drafts import write_drafts
from mechanisms.studio.recipes.events import (
    CandidateSet,
    ChoiceReleased,
    CuratorRecipeEvent,
    Drafting,
    DraftsWritten,
    PriorsReleased,
    RecipeCompleted,
    RecipeStarted,
    ScoreReleased,
    SetKept,
    SetsMade,
    StageProgress,
    StageStarted,
    VotesReleased,
)
from mechanisms.studio.recipes.judging import Judges
from mechanisms.studio.recipes.reading import Reader
from mechanisms.studio.recipes.recipe import Division, Stage
from mechanisms.studio.recipes.request import RecipeRequest
from mechanisms.studio.recipes.roles import divide
from mechanisms.studio.recipes.sets import by_label, by_turns, candidate_sets, wordings
from mechanisms.studio.recipes.untouched import is_new
from mechanisms.studio.recipes.voting import Polls, winners
from mechanisms.studio.synthesis.demo_set import Certificate, DemoSet
from mechanisms.studio.synthesis.events import DemoCompleted
from mechanisms.studio.synthesis.fit import check_fit
from mechanisms.studio.synthesis.request import SynthesisRequest
from mechanisms.studio.synthesis.synthesize import TEST_SEED, Writing

_KEPT = 4
"""Of a ballot, one in so many drafts stands in the next round again."""
_PROGRESS = 32
"""Voters between two reports of progress."""

_RELEASES = DemoCompleted | VotesReleased | PriorsReleased | ChoiceReleased | ScoreReleased
"""What stands in the set from then on."""

Texts = dict[str, tuple[str, ...]]


def run_recipe(
    dataset: Dataset,
    request: RecipeRequest,
    model: LanguageModel,
    embedder: Embedder,
    ledger: PrivacyLedger,
    randomness: Randomness | None = None,
    curator: bool = False,
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

    Raises:
        BudgetRefused: the data set's cap does not allow the run.
        UsageError: the model or the device is too small for the run, it writes no usable drafts, or the run was planned
            for another data set.
        DataError: a label has more units than declared.
    """
    randomness = randomness or SecureRandomness()
    check_fit(dataset, request)
    if request.written is not None:
        _check_writing(request, request.written)
    parts = divide(dataset, request.recipe)
    writing = None
    if request.written is not None:
        writing = Writing(parts[Stage.WRITE], request.written, model, randomness, curator)
    data = fingerprint(dataset)
    untouched = request.recipe.division is Division.ROLES and is_new(data, ledger)
    stages = _Stages(request, parts, model, embedder, randomness, writing, untouched)
    yield from stages.draft()  # public, and the likeliest to fail: before anybody has paid
    name = f"recipe {request.recipe.kind}{'' if randomness.private else ' with a test seed'}"
    run = ledger.begin(data, name, request.event, request.release_claim())
    for holds, mark in ((curator and writing is not None, CLEAN_VALUES), (not randomness.private, SEEDED)):
        if holds:
            ledger.rows.mark(data, mark)
    demo_set = _empty(request, data, ledger, randomness, run, model)
    try:
        yield RecipeStarted(demo_set, request.recipe.stages, request.shots, request.tokens, run.before)
        for event in stages.events(run):
            if isinstance(event, _RELEASES):
                demo_set = stages.kept(demo_set)
                yield SetKept(demo_set)
            yield event
        yield RecipeCompleted(demo_set, run.snapshot())
    finally:
        run.finish()


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


class _Stages:
    """The stages in their order; what one released, the next ones work on."""

    def __init__(
        self,
        request: RecipeRequest,
        parts: Mapping[Stage, Dataset],
        model: LanguageModel,
        embedder: Embedder,
        randomness: Randomness,
        writing: Writing | None,
        untouched: bool,
    ) -> None:
        self._request, self._parts, self._writing = request, parts, writing
        self._model, self._embedder, self._randomness = model, embedder, randomness
        self._untouched = untouched
        self._public: Texts = {}
        self._ballots: Texts = {}
        self._completed: list[DemoCompleted] = []
        self._winners: Texts = {}
        self._judges: Judges | None = None
        self._sets: tuple[CandidateSet, ...] = ()

    def draft(self) -> Iterator[Drafting]:
        """Write the first round's drafts."""
        labels = self._request.labels
        count = self._request.recipe.drafts if Stage.VOTE in self._parts else self._request.shots
        for number, label in enumerate(labels, 1):
            yield Drafting(label, number, len(labels))
            self._public[label] = self._drafts(label, max(2, count))
        self._check_length()

    def _check_length(self) -> None:
        """Open the prompt of the longest set that these drafts can make, so that one too long is refused here."""
        wanted = self._request
        longest = {label: sorted(drafts, key=len)[-wanted.shots :] for label, drafts in self._public.items()}
        reader = Reader(self._model, wanted.labels, wanted.max_record_tokens)
        _ = reader.under(CandidateSet("longest", by_turns(longest, wanted.labels), wanted.template)).contextual

    def _drafts(self, label: str, count: int, examples: tuple[str, ...] = ()) -> tuple[str, ...]:
        wanted, standing = self._request, self._public | self._ballots
        return write_drafts(
            self._model,
            wanted.template,
            label,
            wanted.labels,
            count,
            wanted.tokens,
            self._randomness,
            examples,
            [text for other, texts in standing.items() if other != label for text in texts],
        )

    def events(self, run: LedgerRun) -> Iterator[CuratorRecipeEvent]:
        """All stages, each charged before its first release."""
        for stage in self._request.recipe.stages:
            for name, events in self._request.charges(stage):
                run.charge(name, events)
            yield StageStarted(stage, run.snapshot())
            if stage is Stage.WRITE and self._writing is not None:
                yield from self._write(self._writing, run)
            elif stage is Stage.VOTE:
                yield from self._vote()
            else:
                yield from self._judge(stage)
        if not self._sets:
            yield self._compete()

    def _write(self, writing: Writing, run: LedgerRun) -> Iterator[CuratorRecipeEvent]:
        for event in writing.events(lambda label, number: run.snapshot()):
            if isinstance(event, DemoCompleted):
                self._completed.append(event)
            yield event

    @property
    def _written(self) -> tuple[Demonstration, ...]:
        """Whole demonstrations in their order: those written side by side are not completed in it."""
        return tuple(each.demonstration for each in sorted(self._completed, key=lambda each: each.number))

    def _vote(self) -> Iterator[CuratorRecipeEvent]:
        voters = units_of(self._parts[Stage.VOTE], self._request.max_unit_records)
        ballots = self._ballots = self._first_ballots()
        for number in range(1, self._request.recipe.rounds + 1):
            for label in self._request.labels if number > 1 else ():
                ballots[label] = self._next_ballot(label)
            for label, drafts in ballots.items():
                yield DraftsWritten(label, number, drafts)
            polls, contributions = Polls(self._embedder, ballots), []
            for done, contribution in enumerate(polls.contributions(voters)):
                contributions.append(contribution)
                if done % _PROGRESS == 0:
                    yield StageProgress(Stage.VOTE, done / len(voters))
            cast = np.array(contributions).reshape(-1, polls.places)
            votes = polls.by_label(self._request.votes.release(cast, self._randomness))
            for label, best in winners(ballots, votes, self._wanted).items():
                self._winners[label] = tuple(ballots[label][i] for i in best)
                yield VotesReleased(label, number, tuple(votes[label].tolist()), best, self._request.votes.deviation)

    @property
    def _wanted(self) -> int:
        """Winners of a label: for all sets, and for the next ballot."""
        return max(self._request.recipe.sets * self._request.shots, self._request.recipe.drafts // _KEPT)

    def _first_ballots(self) -> Texts:
        written = by_label(self._written, self._request.labels)
        return {label: tuple(dict.fromkeys([*written[label], *drafts])) for label, drafts in self._public.items()}

    def _next_ballot(self, label: str) -> tuple[str, ...]:
        best, recipe = self._winners[label], self._request.recipe
        kept = best[: max(1, recipe.drafts // _KEPT)]
        fresh = self._drafts(label, max(2, recipe.drafts - len(kept)), best[: max(2, self._request.shots)])
        return tuple(dict.fromkeys([*kept, *fresh]))

    def _compete(self) -> SetsMade:
        request = self._request
        self._sets = candidate_sets(
            wordings(request.template, request.labels),
            request.labels,
            request.shots,
            request.recipe.sets,
            self._public,
            self._winners,
            self._written,
        )
        return SetsMade(self._sets)

    def _judge(self, stage: Stage) -> Iterator[CuratorRecipeEvent]:
        if self._judges is None:
            yield self._compete()
            self._judges = Judges(
                self._request, self._parts, self._sets, self._model, self._randomness, self._untouched
            )
        yield from self._judges.events(stage)

    def kept(self, demo_set: DemoSet) -> DemoSet:
        """The set with everything that has been released for it: the best winners, else what was written."""
        if self._judges is not None:
            return self._judges.kept(demo_set)
        labels, shots = self._request.labels, self._request.shots
        best = {label: texts[:shots] for label, texts in self._winners.items()}
        return replace(demo_set, demonstrations=by_turns(by_label(self._written, labels) | best, labels))
