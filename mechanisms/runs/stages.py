"""The stages of a recipe's run in their order; what one released, the next ones work on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mechanisms.accounting import LedgerRun
from mechanisms.data.sizes import Unit, units_of
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Randomness
from mechanisms.records import Dataset, Demonstration
from mechanisms.runs.drafts import write_drafts
from mechanisms.runs.events import (
    CandidateSet,
    ChoiceReleased,
    CuratorEvent,
    DemoCompleted,
    Drafting,
    DraftsWritten,
    PriorsReleased,
    ScoreReleased,
    SetsMade,
    StageProgress,
    StageStarted,
    VotesReleased,
)
from mechanisms.runs.judging import Judges, Reader, Released
from mechanisms.runs.recipe import Stage
from mechanisms.runs.recipe_request import RecipeRequest
from mechanisms.runs.resume import Journal, check_told, let_out
from mechanisms.runs.sets import by_label, by_turns, candidate_sets, wordings
from mechanisms.runs.voting import Polls, winners
from mechanisms.runs.writing import Writing

_KEPT = 4
"""Of a ballot, one in so many drafts stands in the next round again."""
_PROGRESS = 32
"""Voters between two reports of progress."""

Texts = dict[str, tuple[str, ...]]


class Stages:
    """The stages of one run. Everything that follows from an event follows from it alone (`apply`)."""

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
        self._stage: Stage | None = None
        self._public: Texts = {}
        self._ballots: Texts = {}
        self._balloted: set[tuple[str, int]] = set()
        self._completed: list[DemoCompleted] = []
        self._winners: Texts = {}
        self._voted: set[tuple[str, int]] = set()
        self._known_judges: Judges | None = None
        self._sets: tuple[CandidateSet, ...] = ()

    def apply(self, event: CuratorEvent) -> None:
        """Go on from an event, told now or before the run was cut off.

        Raises:
            UsageError: it is none of this run's.
        """
        match event:
            case StageStarted(stage):
                self._stage = stage
            case DemoCompleted():
                self._completed.append(event)
            case DraftsWritten(label, number, drafts):
                written = by_label(self._written, self._request.labels)[label]
                self._public.setdefault(label, tuple(each for each in drafts if each not in written) or drafts)
                self._ballots[label] = drafts
                self._balloted.add((label, number))
            case VotesReleased(label, number):
                self._winners[label] = tuple(self._ballots[label][i] for i in event.winners)
                self._voted.add((label, number))
            case SetsMade(sets):
                self._sets = sets
            case PriorsReleased() | ChoiceReleased() | ScoreReleased() if self._stage is not None and self._sets:
                self._judges.apply(self._stage, event)
            case _:
                pass

    def draft(self) -> Iterator[Drafting]:
        """What is public and comes before anybody pays: the first round's drafts, and whether prompts fit the model.

        Where rows write token by token they begin at once: drafts wait until the first stage that needs them, if
        prompts of the longest drafts that there can be fit the model.

        Raises:
            UsageError: the model writes no usable drafts, or prompts are too long for it.
        """
        if Stage.WRITE in self._request.recipe.stages:
            try:
                self._check_length(dict.fromkeys(self._request.labels, (self._longest_draft,) * self._request.shots))
            except UsageError:
                pass  # real drafts may be shorter
            else:
                return
        yield from self._first_drafts()

    def _first_drafts(self) -> Iterator[Drafting]:
        """Write the first round's drafts, where they are not there yet."""
        labels = self._request.labels
        count = self._request.recipe.drafts if Stage.VOTE in self._parts else self._request.shots
        missing = [] if self._sets else [label for label in labels if label not in self._public]
        for label in missing:
            yield Drafting(label, labels.index(label) + 1, len(labels))
            self._public[label] = self._drafts(label, max(2, count))
        if missing:
            self._check_length(self._public)

    @property
    def _longest_draft(self) -> str:
        """As many tokens as a draft may have."""
        tokens = self._model.encode(self._request.template.instruction) or self._model.encode("a")
        return self._model.decode((list(tokens) * self._request.tokens)[: self._request.tokens])

    def _check_length(self, drafts: Mapping[str, Sequence[str]]) -> None:
        """Open the prompt of the longest set that these drafts can make, so that one too long is refused here."""
        wanted = self._request
        longest = {label: sorted(texts, key=len)[-wanted.shots :] for label, texts in drafts.items()}
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
            self._embedder,
        )

    def events(
        self, run: LedgerRun | None, told: Sequence[CuratorEvent] = (), journal: Journal | None = None
    ) -> Iterator[Sequence[CuratorEvent]]:
        """What is left of all stages, each charged before its first release; what is let out together comes together.

        Whoever gets events applies them before asking for the next ones.

        Args:
            run: where stages are charged, and marked before they are told.
            told: what had been told when the run was cut off.
            journal: what the ledger notes of a part that is marked; nothing is marked without one.

        Raises:
            UsageError: that does not fit the ledger, or nothing is left to go on with.
        """
        assert run is not None, "a run in stages is always charged"
        check_told(_marks(told), run)
        entered = [event.stage for event in told if isinstance(event, StageStarted)]
        for stage in self._request.recipe.stages:
            if stage is not Stage.WRITE:
                yield from ([each] for each in self._first_drafts())
            for name, events in self._request.charges(stage):
                run.charge(name, events, stage)
            if stage not in entered:
                yield [StageStarted(stage, run.snapshot())]
            self._stage = stage
            yield from self._released(stage, run, told, journal)
        yield from ([each] for each in self._first_drafts())
        if not self._sets:
            yield self._compete()

    def _released(
        self, stage: Stage, run: LedgerRun, told: Sequence[CuratorEvent], journal: Journal | None
    ) -> Iterator[Sequence[CuratorEvent]]:
        """What a stage releases, which has been charged."""
        if stage is Stage.WRITE and self._writing is not None:
            written = self._writing.events(lambda *whose: run.snapshot(), run, told, journal)
            yield from ([event] for event in written)
        elif stage is Stage.VOTE:
            yield from self._vote(run, journal)
        else:
            yield from self._judge(stage, run, journal)

    @property
    def _written(self) -> tuple[Demonstration, ...]:
        """Whole demonstrations in their order: those written side by side are not completed in it."""
        return tuple(each.demonstration for each in sorted(self._completed, key=lambda each: each.number))

    def _vote(self, run: LedgerRun, journal: Journal | None) -> Iterator[Sequence[CuratorEvent]]:
        voters = units_of(self._parts[Stage.VOTE], self._request.max_unit_records)
        for number in range(1, self._request.recipe.rounds + 1):
            for label in self._request.labels:
                if (label, number) not in self._balloted:
                    drafts = self._first_ballot(label) if number == 1 else self._next_ballot(label)
                    yield [DraftsWritten(label, number, drafts)]
            if any((label, number) not in self._voted for label in self._request.labels):
                yield from self._poll(number, voters, run, journal)

    def _poll(
        self, number: int, voters: Sequence[Unit], run: LedgerRun, journal: Journal | None
    ) -> Iterator[Sequence[CuratorEvent]]:
        ballots, tally = self._ballots, self._request.votes
        polls, contributions = Polls(self._embedder, ballots), []
        for done, contribution in enumerate(polls.contributions(voters)):
            contributions.append(contribution)
            if done % _PROGRESS == 0:
                yield [StageProgress(Stage.VOTE, done / len(voters))]
        cast = np.array(contributions).reshape(-1, polls.places)
        votes = polls.by_label(tally.release(cast, self._randomness))
        best = winners(ballots, votes, self._wanted)
        released = [
            VotesReleased(label, number, tuple(votes[label].tolist()), best[label], tally.deviation)
            for label in ballots
        ]
        let_out(run, journal, _part(Stage.VOTE, released[0]), *released)
        yield released

    @property
    def _wanted(self) -> int:
        """Winners of a label: for all sets, and for the next ballot."""
        return max(self._request.recipe.sets * self._request.shots, self._request.recipe.drafts // _KEPT)

    def _first_ballot(self, label: str) -> tuple[str, ...]:
        written = by_label(self._written, self._request.labels)
        return tuple(dict.fromkeys([*written[label], *self._public[label]]))

    def _next_ballot(self, label: str) -> tuple[str, ...]:
        best, recipe = self._winners[label], self._request.recipe
        kept = best[: max(1, recipe.drafts // _KEPT)]
        fresh = self._drafts(label, max(2, recipe.drafts - len(kept)), best[: max(2, self._request.shots)])
        return tuple(dict.fromkeys([*kept, *fresh]))

    def _compete(self) -> Sequence[CuratorEvent]:
        request = self._request
        if not (self._winners or self._written):
            raise UsageError("Nothing of this run is left to keep: begin a new one.")
        sets = candidate_sets(
            wordings(request.template, request.labels),
            request.labels,
            request.shots,
            request.recipe.sets,
            self._public,
            self._winners,
            self._written,
        )
        return [SetsMade(sets)]

    @property
    def _judges(self) -> Judges:
        """Those of the sets that compete."""
        if self._known_judges is None:
            self._known_judges = Judges(
                self._request, self._parts, self._sets, self._model, self._randomness, self._untouched
            )
        return self._known_judges

    def _judge(self, stage: Stage, run: LedgerRun, journal: Journal | None) -> Iterator[Sequence[CuratorEvent]]:
        if not self._sets:
            yield self._compete()
        for event in self._judges.events(stage):
            if isinstance(event, StageProgress):
                yield [event]
            else:
                let_out(run, journal, _part(stage, event), event)
                yield [event]

    def kept(self, demo_set: DemoSet) -> DemoSet:
        """The set with everything that has been released for it: the best winners, else what was written."""
        if self._known_judges is not None:
            return self._known_judges.kept(demo_set)
        labels, shots = self._request.labels, self._request.shots
        best = {label: texts[:shots] for label, texts in self._winners.items()}
        return replace(demo_set, demonstrations=by_turns(by_label(self._written, labels) | best, labels))

    def made(self, demo_set: DemoSet) -> DemoSet:
        """The set in the end: what was kept last."""
        return demo_set


def _part(stage: Stage, event: VotesReleased | Released) -> str:
    """What the ledger calls what a stage lets out at once; no label, which may be called like a stage, stands in it."""
    number = f" {event.round}" if isinstance(event, VotesReleased) else ""
    return f"{type(event).__name__} in {stage}{number}"


def _marks(told: Sequence[CuratorEvent]) -> Iterator[str]:
    """The parts of the judging and voting stages that were told."""
    stage = None
    for event in told:
        if isinstance(event, StageStarted):
            stage = event.stage
        elif stage is not None and isinstance(event, VotesReleased | Released):
            yield _part(stage, event)
