"""The contract of a stage: its cost, its work, its words for people, and its step in a run.

A stage is one file in `mechanisms/runs/stages/`. It defines a `PlannedStage`, which follows from public values alone,
and the `Step` that reads private rows. What one step releases, later steps work on: it stands in the `RunState`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Generic, Protocol, TypeVar

from mechanisms.accounting import LedgerRun
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Randomness
from mechanisms.records import Dataset, Demonstration
from mechanisms.runs.drafts import FEWEST, write_drafts
from mechanisms.runs.events import (
    CandidateSet,
    CuratorEvent,
    DemoCompleted,
    Drafting,
    SetsMade,
    StageProgress,
    StageRelease,
)
from mechanisms.runs.forecast import Work
from mechanisms.runs.judging import Judging, Reader
from mechanisms.runs.recipe import Division, Stage
from mechanisms.runs.recipe_request import ALL, Events, RecipeRequest
from mechanisms.runs.resume import Journal, mark_released
from mechanisms.runs.sets import by_label, candidate_sets, interleaved, wordings
from mechanisms.runs.stages import stages_by_place
from mechanisms.runs.writing import Writing

Texts = dict[str, tuple[str, ...]]
"""The texts of each label."""


@dataclass(frozen=True)
class PlannedStage(ABC):
    """One stage of a planned run.

    Attributes:
        request: public; the run's.
        name: what shares, certificates and journals call the stage: the name of its file.
        place: its turn in a run, among those of the other stages.
        title: one word for a row of stages.
        task_title: the same for a form that divides units among tasks.
        question: what is asked of the data, with "{unit}" for a row or a user.
        noun: the stage in a sentence, as in "it had got as far as the vote".
        wanted: how many units its role should have; None: all that the roles of the other stages leave.
        parts: its weight where stages share epsilon: its share is `parts` over the sum of all stages' parts.
        usual: whether it takes part where nobody asks for it; else where it is given a share.
        releases: types of the events that the stage marks as released, all of them public.
    """

    request: RecipeRequest

    name: ClassVar[Stage]
    place: ClassVar[float]
    title: ClassVar[str]
    task_title: ClassVar[str]
    question: ClassVar[str]
    noun: ClassVar[str]
    wanted: ClassVar[int | None]
    parts: ClassVar[int]
    usual: ClassVar[bool] = True
    reads_sets: ClassVar[bool] = False
    releases: ClassVar[tuple[type, ...]]

    @property
    @abstractmethod
    def events(self) -> Events:
        """The privacy events of a unit that takes part."""

    def charges(self) -> tuple[tuple[str, Events], ...]:
        """The stage's events, by event list."""
        if self.request.recipe.division is Division.ROLES:
            return ((self.name.value, self.events),)
        names = (ALL,) if self.request.by_user else self.request.shared_lists
        return tuple((name, self.events) for name in names)

    def dearest(self) -> Events:
        """The events of the unit with the highest cost."""
        return self.events

    @abstractmethod
    def work(self, together: int) -> Work:
        """The stage's work for the models; see `ModelSpeed.together`."""

    def warnings(self) -> Iterator[str]:
        """Warnings for the curator before anything is spent, one line each."""
        return iter(())

    @abstractmethod
    def task(self) -> str:
        """What its units do, as the rest of a sentence that begins with them."""

    def check(self, event: StageRelease, before: Sequence[StageRelease]) -> None:
        """Refuse an event of the stage's own that its run cannot have told: a file may come from anywhere.

        Args:
            event: of one of the types of `releases`.
            before: those of this stage that were told before.

        Raises:
            UsageError: it has not been paid for, or does not fit the request.
        """
        if any(type(each) is type(event) for each in before):
            raise UsageError("a release that was told before")

    @abstractmethod
    def begin(self, state: RunState) -> Step:
        """The stage's step in a run; it has read nothing yet."""


class Step(Protocol):
    """A stage at work. Its state follows from the events that `apply` gets, now or from a journal."""

    def events(
        self, run: LedgerRun, replayed: Sequence[CuratorEvent], journal: Journal | None
    ) -> Iterator[Sequence[CuratorEvent]]:
        """What was not applied yet of the stage, which has been charged; what is released together comes together.

        The caller applies the events before it asks for the next ones.

        Args:
            run: the ledger's run, in which a release is marked before it is yielded.
            replayed: the events that were yielded before the interruption.
            journal: turns events into the lines that the ledger keeps with a mark; without it nothing is marked.

        Raises:
            UsageError: the replayed events do not agree with the ledger.
        """
        ...

    def apply(self, event: CuratorEvent) -> None:
        """Update the state by an event of this stage; ignore others.

        Raises:
            UsageError: the event cannot be of this run.
        """
        ...


def stage_class(stage: Stage) -> type[PlannedStage]:
    """The class of a stage."""
    found: type[PlannedStage] = stages_by_place()[stage]
    return found


def stage_of(request: RecipeRequest, stage: Stage) -> PlannedStage:
    """A stage of a request."""
    return stage_class(stage)(request)


# The state that the steps of one run share.


@dataclass
class RunState:
    """The state that the steps of one run share. All of it but `parts` is public or released.

    Attributes:
        request: public.
        parts: the rows that each stage may read; private.
        held_out: whether the scoring rows took part in nothing else, in this run or another.
        public: the drafts of each label, before any vote.
        ballots: drafts of each label that stand in the last ballot.
        completed: demonstrations that private rows have written.
        winners: texts of each label that private rows have voted for, best first.
        sets: the sets in the choice, in a public order; empty until they are made.
    """

    request: RecipeRequest
    parts: Mapping[Stage, Dataset]
    model: LanguageModel
    embedder: Embedder
    randomness: Randomness
    writing: Writing | None
    held_out: bool
    public: Texts = field(default_factory=dict)
    ballots: Texts = field(default_factory=dict)
    completed: list[DemoCompleted] = field(default_factory=list)
    winners: Texts = field(default_factory=dict)
    sets: tuple[CandidateSet, ...] = ()

    @property
    def written(self) -> tuple[Demonstration, ...]:
        """Finished demonstrations, by number: those that are written side by side finish in any order."""
        return tuple(each.demonstration for each in sorted(self.completed, key=lambda each: each.number))

    @property
    def written_texts(self) -> Mapping[str, tuple[str, ...]]:
        """The texts of finished demonstrations, by label."""
        return by_label(self.written, self.request.labels)

    @cached_property
    def judging(self) -> Judging:
        """What the judging stages share."""
        return Judging(self.request, self.parts, self.sets, self.model, self.randomness, self.held_out)

    def check_longest_drafts(self) -> None:
        """Refuse a task whose longest possible prompt does not fit the model.

        Raises:
            UsageError: it does not fit.
        """
        wanted, tokens = self.request, self.request.tokens
        words = list(self.model.encode(wanted.template.instruction) or self.model.encode("a"))
        longest = self.model.decode((words * tokens)[:tokens])
        self._check_length(dict.fromkeys(wanted.labels, (longest,) * wanted.shots))

    def first_drafts(self) -> Iterator[Drafting]:
        """Write the first drafts, unless they exist.

        Raises:
            UsageError: the model writes no usable drafts, or prompts of them are too long for it.
        """
        labels, wanted = self.request.labels, self.request
        count = wanted.recipe.drafts if Stage.VOTE in self.parts else wanted.shots
        missing = [] if self.sets else [label for label in labels if label not in self.public]
        for label in missing:
            yield Drafting(label, labels.index(label) + 1, len(labels))
            self.public[label] = self.drafts(label, max(FEWEST, count))
        if missing:
            self._check_length(self.public)

    def _check_length(self, drafts: Mapping[str, Sequence[str]]) -> None:
        """Open the prompt of the longest set of these drafts, where a stage reads sets: one that is too long is refused
        here."""
        if not any(stage_class(stage).reads_sets for stage in self.parts):
            return
        wanted = self.request
        longest = {label: sorted(texts, key=len)[-wanted.shots :] for label, texts in drafts.items()}
        reader = Reader(self.model, wanted.labels, wanted.max_record_tokens)
        _ = reader.under(CandidateSet("longest", interleaved(longest, wanted.labels), wanted.template)).contextual

    def drafts(self, label: str, count: int, examples: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Drafts of a label from public text, different from those of other labels; see `write_drafts`."""
        wanted, standing = self.request, self.public | self.ballots
        return write_drafts(
            self.model,
            wanted.template,
            label,
            wanted.labels,
            count,
            wanted.tokens,
            self.randomness,
            examples,
            [text for other, texts in standing.items() if other != label for text in texts],
            self.embedder,
        )

    def make_sets(self) -> Iterator[Sequence[CuratorEvent]]:
        """Make the sets for the choice, unless they exist.

        Raises:
            UsageError: nothing is left of a resumed run.
        """
        if self.sets:
            return
        if not (self.winners or self.written):
            raise UsageError("Nothing of this run is left to keep: begin a new one.")
        wanted = self.request
        made = candidate_sets(
            wordings(wanted.template, wanted.labels, wanted.recipe.sets),
            wanted.labels,
            wanted.shots,
            wanted.recipe.sets,
            self.public,
            self.winners,
            self.written,
        )
        yield [SetsMade(made)]

    def kept(self, demo_set: DemoSet) -> DemoSet:
        """The set from what is released so far: the best winners, else the written demonstrations."""
        if "judging" in self.__dict__:
            return self.judging.kept(demo_set)
        labels, shots = self.request.labels, self.request.shots
        best = {label: texts[:shots] for label, texts in self.winners.items()}
        return replace(demo_set, demonstrations=interleaved({**self.written_texts, **best}, labels))


def release_name(stage: Stage, event: CuratorEvent) -> str:
    """The name of a release in the ledger. It holds no label: a label may have the name of a stage."""
    number = f" {event.round}" if hasattr(event, "round") else ""
    return f"{type(event).__name__} in {stage}{number}"


P = TypeVar("P", bound=PlannedStage)


class JudgingStep(ABC, Generic[P]):
    """A step in which units judge the sets of the choice, which it makes first where they do not exist."""

    def __init__(self, stage: P, state: RunState) -> None:
        self._stage, self._state = stage, state

    def events(
        self, run: LedgerRun, replayed: Sequence[CuratorEvent], journal: Journal | None
    ) -> Iterator[Sequence[CuratorEvent]]:
        """See `Step.events`."""
        yield from self._state.make_sets()
        for event in self._events():
            if not isinstance(event, StageProgress):
                mark_released(run, journal, release_name(self._stage.name, event), event)
            yield [event]

    @abstractmethod
    def _events(self) -> Iterator[CuratorEvent]:
        """The stage's events that were not applied yet, one release at a time; not marked yet."""

    @abstractmethod
    def apply(self, event: CuratorEvent) -> None:
        """See `Step.apply`."""
