"""The stage "vote": each unit votes for the text of its ballot with the nearest meaning (after Lin et al. 2024).

The ballot has public drafts and the demonstrations that were written token by token. The winners become the set's
demonstrations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as checked

from mechanisms.data.units import Unit, units_of
from mechanisms.errors import UsageError
from mechanisms.inference import Embedder
from mechanisms.noise import Floats
from mechanisms.privacy_events import PrivacyEvent
from mechanisms.queries.retrieval import similarities
from mechanisms.records import Record, unit_nouns
from mechanisms.runs.completion import CLEARANCE, EXCESS
from mechanisms.runs.events import LINE, Count, CuratorEvent, Name, Number, Release, StageProgress, Texts
from mechanisms.runs.spec import WRITE
from mechanisms.runs.stage import PlannedStage, check_certified_noise
from mechanisms.runs.state import RunState
from mechanisms.runs.terms import EventLists
from mechanisms.runs.text import normalised_text
from mechanisms.runs.work import Work, drafting_work
from mechanisms.tallies import Votes, mean_contribution

ALIKE = 0.9
"""The cosine similarity above which two texts mean the same, so that one of them is enough in a set."""


@checked(frozen=True, config=LINE)
class Ballot:
    """A label's ballot and its noisy votes.

    Attributes:
        drafts: its texts, all of them releasable.
        votes: the noisy number of votes for each text.
        winners: positions of the winners, best first.
        written: the number of texts that were written from private rows; they are the first ones.
    """

    drafts: Texts
    votes: Annotated[tuple[Number, ...], Field(min_length=1, max_length=50_000)]
    winners: Annotated[tuple[Count, ...], Field(max_length=50_000)]
    written: Count = 0


@checked(frozen=True, config=LINE)
class VotesReleased(Release):
    """The votes of all labels in one release; `noise` is the standard deviation of the noise on each count."""

    ballots: Annotated[dict[Name, Ballot], Field(min_length=1, max_length=10_000)]
    noise: Annotated[float, Field(ge=0, le=1e9)]
    event: Literal["votes"] = "votes"

    def lines(self) -> tuple[str, ...]:
        return tuple(
            f"{label}: winners with {', '.join(f'{each.votes[i]:.0f}' for i in each.winners)} votes of "
            f"{len(each.drafts)} texts (noise {self.noise:.1f})"
            for label, each in self.ballots.items()
        )


@dataclass(frozen=True)
class VoteStage(PlannedStage):
    """One ballot for each label, with noise on the votes for every text."""

    name = "vote"
    order = 20
    title = "Vote"
    question = "The {unit}s vote: which text is most like me?"
    noun = "the vote"
    role_units = 240
    parts = 4
    releases = (VotesReleased,)

    @property
    def tally(self) -> Votes:
        return Votes(self.plan.epsilon(self.name), self.plan.by_user)

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (self.tally.event,)

    def charges(self) -> EventLists:
        """The event lists: one for each label if a unit has one label, because it votes only on that label's texts."""
        if self.plan.by_roles and not self.plan.by_user:
            return tuple((f"{self.name} {label}", self.events) for label in self.plan.labels)
        return super().charges()

    def votes_a_draft(self, label: str) -> float:
        """The average number of votes for a text of a label's ballot."""
        assert self.plan.spec.drafts is not None
        return self.plan.unit_share(self.name) * self.plan.sizes[label] / self.plan.spec.drafts

    def work(self) -> Work:
        plan = self.plan
        assert plan.spec.drafts is not None
        drafting = drafting_work(len(plan.labels), plan.spec.drafts, plan.spec.draft_tokens)
        return drafting + Work(embedded=plan.rows(self.name))

    def warnings(self) -> Iterator[str]:
        who = unit_nouns(self.plan.unit)
        label = self.plan.smallest
        votes, noise = self.votes_a_draft(label), self.tally.deviation
        if EXCESS * votes < CLEARANCE * noise:
            yield (
                f"A draft of '{label}' gets about {votes:.2g} votes, and the noise on them is {noise:.2g}: its winners "
                f"may be chance. Fewer drafts, more {who} or a larger epsilon help."
            )

    def task(self) -> str:
        return f"vote for the one of {self.plan.spec.drafts} drafts of their label that is most like them."

    def check(self, event: VotesReleased) -> None:
        if set(event.ballots) != set(self.plan.labels):
            raise UsageError("votes of other labels")
        check_certified_noise(event.noise, self.tally.deviation)
        for each in event.ballots.values():
            spec = self.plan.spec
            most = (spec.drafts or 0) + (spec.written or 0 if WRITE in self.plan.shares else 0)
            fits = len(each.votes) == len(each.drafts) <= max(most, spec.shots) and each.written <= len(each.drafts)
            distinct = len(set(each.winners)) == len(each.winners) and all(i < len(each.drafts) for i in each.winners)
            if not (fits and distinct and len(each.winners) <= spec.shots):
                raise UsageError("votes that are not those of the ballot")

    def ask(self, state: RunState) -> Iterator[CuratorEvent]:
        plan = self.plan
        yield from state.first_drafts()
        ballots = {
            label: tuple(dict.fromkeys([*state.written.get(label, ()), *state.drafts[label]])) for label in plan.labels
        }
        assert state.embedder is not None
        polls = VoteCollector(state.embedder, ballots)
        voters = units_of(state.parts[self.name], plan.spec.max_unit_records)
        contributions = []
        for done, contribution in enumerate(polls.contributions(voters)):
            contributions.append(contribution)
            if done % 32 == 0:
                yield StageProgress(self.name, done / len(voters))
        cast = np.array(contributions).reshape(-1, polls.places)
        votes = polls.by_label(self.tally.release(cast, state.randomness))
        best = winners(ballots, votes, plan.spec.shots, polls.embedded)
        released = {
            label: Ballot(drafts, tuple(votes[label].tolist()), best[label], len(state.written.get(label, ())))
            for label, drafts in ballots.items()
        }
        yield VotesReleased(released, self.tally.deviation)

    def take(self, state: RunState, event: VotesReleased) -> None:
        for label, ballot in event.ballots.items():
            state.winners[label] = tuple(ballot.drafts[i] for i in ballot.winners)
            state.drafts.setdefault(label, ballot.drafts[ballot.written :] or ballot.drafts)


Ballots = Mapping[str, Sequence[str]]
"""The texts of each label; public."""


def winners(
    ballots: Ballots, votes: Mapping[str, Floats], most: int, embedded: Mapping[str, NDArray[np.float32]]
) -> dict[str, tuple[int, ...]]:
    """The indices of each label's best texts, best first, from released votes. The smaller index wins a tie.

    A text wins at most once over all labels, letter case and punctuation ignored: the copy with more votes wins. A text
    that is near in meaning to a winner of its label is used only if the set would not be full without it.

    Args:
        votes: the votes for each label's texts, in the order of its ballot; shape (texts,).
        most: the most winners of a label.
        embedded: the unit vectors of each label's texts, shape (texts, dimensions).
    """
    cast = [(vote, label, place) for label, of in votes.items() for place, vote in enumerate(of.tolist())]
    found: dict[str, list[int]] = {label: [] for label in ballots}
    alike: dict[str, list[int]] = {label: [] for label in ballots}
    standing: set[str] = set()

    def stand(label: str, place: int) -> None:
        text = normalised_text(ballots[label][place])
        if text not in standing and len(found[label]) < most:  # a text that does not win excludes no other
            standing.add(text)
            found[label].append(place)

    for _, label, place in sorted(cast, key=lambda each: -each[0]):
        vectors = embedded[label]
        if any(float(vectors[place] @ vectors[other]) > ALIKE for other in found[label]):
            alike[label].append(place)
        else:
            stand(label, place)
    for label, places in alike.items():
        for place in places:
            stand(label, place)
    return {label: tuple(places) for label, places in found.items()}


class VoteCollector:
    """Collects the votes of private texts. A unit's vector has an entry for every text of every label."""

    def __init__(self, embedder: Embedder, ballots: Ballots) -> None:
        self._embedder = embedder
        self.embedded = {label: embedder.embed(drafts) for label, drafts in ballots.items()}
        ends = np.cumsum([0, *(len(drafts) for drafts in ballots.values())])
        self._starts = dict(zip(ballots, ends.tolist(), strict=False))
        self.places = int(ends[-1])

    def contributions(self, units: Sequence[Unit]) -> Iterator[Floats]:
        """Each unit's vector, shape (places,): one vote, or for a user the mean of the votes of its rows."""
        for unit in units:
            yield mean_contribution(np.stack([self._vote(record) for record in unit]))

    def _vote(self, record: Record) -> Floats:
        vote = np.zeros(self.places)
        if record.text.strip():  # a blank text casts no vote
            [vector] = self._embedder.embed([record.text])
            nearest = int(similarities(self.embedded[record.label], vector).argmax())  # ties: the smaller index
            vote[self._starts[record.label] + nearest] = 1.0
        return vote

    def by_label(self, votes: Floats) -> dict[str, Floats]:
        ends = [*self._starts.values(), self.places]
        return {label: votes[ends[i] : ends[i + 1]] for i, label in enumerate(self._starts)}


STAGE = VoteStage
