"""The stage "vote": each unit votes for the draft of its label that is nearest in meaning (after Lin et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.accounting import LedgerRun
from mechanisms.data.sizes import Unit, units_of
from mechanisms.runs.drafts import FEWEST
from mechanisms.runs.events import CuratorEvent, DraftsWritten, StageProgress, VotesReleased
from mechanisms.runs.forecast import Work
from mechanisms.runs.reading_forecast import USUAL, text_tokens
from mechanisms.runs.recipe import Division, Stage
from mechanisms.runs.recipe_forecast import drafting_work, records
from mechanisms.runs.recipe_request import Events
from mechanisms.runs.resume import Journal, mark_released
from mechanisms.runs.stage import PlannedStage, RunState, release_name
from mechanisms.runs.voting import VoteCollector, winners
from mechanisms.tallies import Votes

CLEARANCE = 4.0
"""Deviations of the noise by which a winner should exceed the average draft."""
EXCESS = 2.0
"""How many times the average draft's votes a winner has beyond them."""
_KEPT = 4
"""One in so many drafts of a ballot stays for the next round."""
_PROGRESS = 32
"""Voters per report of progress."""


@dataclass(frozen=True)
class Vote(PlannedStage):
    """One ballot of each label a round, with noise on every draft's votes."""

    name = Stage.VOTE
    place = 20
    title = "Vote"
    task_title = "Voting"
    question = "The {unit}s vote: which draft is most like me?"
    noun = "the vote"
    wanted = 300
    parts = 4
    releases = (VotesReleased,)

    @property
    def tally(self) -> Votes:
        """The tally of one round."""
        return Votes(self.request.epsilon(self.name) / self.request.recipe.rounds, self.request.by_user)

    @property
    def events(self) -> Events:
        """See `PlannedStage.events`."""
        return (self.tally.event,) * self.request.recipe.rounds

    def charges(self) -> tuple[tuple[str, Events], ...]:
        """By label, where a unit has one label: it votes on drafts of its own label alone."""
        if self.request.recipe.division is Division.ROLES and not self.request.by_user:
            return tuple((f"{self.name} {label}", self.events) for label in self.request.labels)
        return super().charges()

    def votes_a_draft(self, label: str) -> float:
        """Votes that a draft of a label gets on average in one round."""
        return self.request.role(self.name) * self.request.sizes[label] / self.request.recipe.drafts

    def work(self, together: int) -> Work:
        """The work: each voter is embedded alone, a ballot once, and drafts of later rounds are written."""
        recipe, request = self.request.recipe, self.request
        ballot = len(request.labels) * (recipe.drafts + request.shots)
        voters = text_tokens(request.max_record_tokens) * records(request, self.name)
        voting = Work(embedded=voters + USUAL * request.tokens * ballot)
        return voting * recipe.rounds + drafting_work(request, recipe.drafts) * (recipe.rounds - 1)

    def warnings(self) -> Iterator[str]:
        """See `PlannedStage.warnings`."""
        who = "users" if self.request.by_user else "rows"
        label = min(self.request.sizes, key=lambda each: self.request.sizes[each])
        votes, noise = self.votes_a_draft(label), self.tally.deviation
        if EXCESS * votes < CLEARANCE * noise:
            yield (
                f"A draft of '{label}' gets about {votes:.2g} votes, and the noise on them is {noise:.2g}: its winners "
                f"may be chance. Fewer drafts, more {who} or a larger epsilon help."
            )

    def task(self) -> str:
        """See `PlannedStage.task`."""
        recipe = self.request.recipe
        rounds = f", in {recipe.rounds} rounds" if recipe.rounds > 1 else ""
        return f"vote for the one of {recipe.drafts} drafts of their label that is most like them{rounds}."

    def begin(self, state: RunState) -> Ballots:
        """See `PlannedStage.begin`."""
        return Ballots(self, state)


class Ballots:
    """The step: ballots of all labels, round by round."""

    def __init__(self, stage: Vote, state: RunState) -> None:
        self._stage, self._state = stage, state
        self._written: set[tuple[str, int]] = set()
        self._voted: set[tuple[str, int]] = set()

    def events(
        self, run: LedgerRun, replayed: Sequence[CuratorEvent], journal: Journal | None
    ) -> Iterator[Sequence[CuratorEvent]]:
        """See `Step.events`."""
        request = self._stage.request
        voters = units_of(self._state.parts[Stage.VOTE], request.max_unit_records)
        for number in range(1, request.recipe.rounds + 1):
            for label in request.labels:
                if (label, number) not in self._written:
                    drafts = self._first(label) if number == 1 else self._next(label)
                    yield [DraftsWritten(label, number, drafts)]
            if any((label, number) not in self._voted for label in request.labels):
                yield from self._poll(number, voters, run, journal)

    def apply(self, event: CuratorEvent) -> None:
        """See `Step.apply`."""
        match event:
            case DraftsWritten(label, number, drafts):
                written = self._state.written_texts[label]
                public = tuple(each for each in drafts if each not in written)
                self._state.public.setdefault(label, public or drafts)
                self._state.ballots[label] = drafts
                self._written.add((label, number))
            case VotesReleased(label, number):
                self._state.winners[label] = tuple(self._state.ballots[label][i] for i in event.winners)
                self._voted.add((label, number))
            case _:
                pass

    def _poll(
        self, number: int, voters: Sequence[Unit], run: LedgerRun, journal: Journal | None
    ) -> Iterator[Sequence[CuratorEvent]]:
        ballots, tally = self._state.ballots, self._stage.tally
        polls, contributions = VoteCollector(self._state.embedder, ballots), []
        for done, contribution in enumerate(polls.contributions(voters)):
            contributions.append(contribution)
            if done % _PROGRESS == 0:
                yield [StageProgress(Stage.VOTE, done / len(voters))]
        cast = np.array(contributions).reshape(-1, polls.places)
        votes = polls.by_label(tally.release(cast, self._state.randomness))
        best = winners(ballots, votes, self._wanted)
        released = [
            VotesReleased(label, number, tuple(votes[label].tolist()), best[label], tally.deviation)
            for label in ballots
        ]
        mark_released(run, journal, release_name(Stage.VOTE, released[0]), *released)
        yield released

    @property
    def _wanted(self) -> int:
        """Winners of a label: for all sets, and for the next ballot."""
        request = self._stage.request
        return max(request.recipe.sets * request.shots, request.recipe.drafts // _KEPT)

    def _first(self, label: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self._state.written_texts[label], *self._state.public[label]]))

    def _next(self, label: str) -> tuple[str, ...]:
        request, best = self._stage.request, self._state.winners[label]
        kept = best[: max(1, request.recipe.drafts // _KEPT)]
        count = max(FEWEST, request.recipe.drafts - len(kept))
        fresh = self._state.drafts(label, count, best[: max(2, request.shots)])
        return tuple(dict.fromkeys([*kept, *fresh]))


STAGE = Vote
