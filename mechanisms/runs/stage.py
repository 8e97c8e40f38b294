"""The interface of a stage: its cost, its work, its texts for people, and its behaviour in a run.

A stage is one file in `mechanisms/runs/stages/`. The file defines a `PlannedStage`, which depends only on public
values, the `RunningStage` that reads private rows, and the events that the stage releases. The `RunState` stores the
releases, so that later stages can use them.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from mechanisms.accounting import LedgerRun
from mechanisms.demos.demo_set import DEMONSTRATIONS, PUBLIC_ONLY, ZERO_SHOT, DemoSet, Refusal
from mechanisms.demos.directions import Directions
from mechanisms.errors import UsageError
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Randomness
from mechanisms.privacy_events import PrivacyEvent
from mechanisms.records import Dataset, Demonstration
from mechanisms.runs.drafts import (
    WRITTEN,
    DraftRequest,
    Margins,
    Nearness,
    Ranking,
    drafts_for,
    interleaved,
    write_drafts,
    write_samples,
)
from mechanisms.runs.events import CuratorEvent, Drafting, Key, Release, SetsCompared
from mechanisms.runs.judging import JudgingState
from mechanisms.runs.terms import EventLists, RunTerms
from mechanisms.runs.text import Gate, cleaned

_ROWS, _LENGTH, _STEPS = 32, 64, 4


@dataclass(frozen=True)
class Work:
    """The expected work of the models in a run; public numbers.

    Attributes:
        read: positions of prompts that the language model reads, over all rows.
        written: tokens that the language model decodes, over all rows.
        embedded: texts that the embedding model reads.
    """

    read: float = 0.0
    written: float = 0.0
    embedded: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.read + other.read, self.written + other.written, self.embedded + other.embedded)


def drafting_work(labels: int, count: int, tokens: int) -> Work:
    """The expected work of writing `count` drafts, of at most `tokens` tokens, for each label, and of embedding the
    usable ones."""
    written = WRITTEN * count * labels
    # Sampling a token takes half as long as the model's computation for it.
    return Work(read=8 * written, written=1.2 * written * tokens, embedded=1.5 * written)


@dataclass(frozen=True)
class Speed:
    """Seconds per position, per token and per text, measured on this machine."""

    position: float
    token: float
    text: float = 1 / 120

    def seconds(self, work: Work) -> float:
        return work.read * self.position + work.written * self.token + work.embedded * self.text


def measure(model: LanguageModel, clock: Callable[[], float] = time.perf_counter) -> Speed:
    """Measure the speed of a language model on public text, which takes a few seconds."""
    words = (model.encode("the model is measured on public text ") * _LENGTH)[:_LENGTH]
    # The first pass with a shape is slower: it allocates memory, and an engine may check in it that all rows of a batch
    # are computed alike.
    model.open([], [words] * _ROWS, _LENGTH, _STEPS).advance([words[0]] * _ROWS)
    started = clock()
    session = model.open([], [words] * _ROWS, _LENGTH, _STEPS)
    read = clock()
    for _ in range(_STEPS):
        session.advance([words[0]] * _ROWS)
        _ = session.logits().max()
    written = clock()
    return Speed((read - started) / (_ROWS * _LENGTH), (written - read) / (_ROWS * _STEPS))


def measure_embedder(embedder: Embedder) -> float:
    """The seconds that the embedding model needs for one text, measured on public texts."""
    embedder.embed(["public text"])
    begun = time.perf_counter()
    embedder.embed(["a public text of usual length, as people write them " * 2] * 4)
    return (time.perf_counter() - begun) / 4


@dataclass(frozen=True)
class PlannedStage(ABC):
    """One stage of a planned run.

    Attributes:
        name: the stage's name in shares, certificates and journals; also the name of its file.
        order: its sort key: a run executes its stages in ascending order.
        title: one word for the list of stages on the screen.
        question: the question that the stage asks about the data, with "{unit}" for a row or a user.
        noun: the stage in a sentence, as in "it had got as far as the vote".
        role_units: the number of units that its role should have; None: all units that the other roles leave.
        parts: its weight if stages share epsilon: its share is `parts` over the sum of all stages' parts.
        releases: types of the events that the stage marks as released, each once, all of them public.
        charges_itself: whether the stage charges its parts one by one, each before its first release.
        usual: whether a run has the stage by default; otherwise only if the stage gets a share.
    """

    plan: RunTerms

    name: ClassVar[str]
    order: ClassVar[float]
    title: ClassVar[str]
    question: ClassVar[str]
    noun: ClassVar[str]
    role_units: ClassVar[int | None]
    parts: ClassVar[int]
    releases: ClassVar[tuple[type[Release], ...]]
    charges_itself: ClassVar[bool] = False
    usual: ClassVar[bool] = True

    @property
    @abstractmethod
    def events(self) -> tuple[PrivacyEvent, ...]:
        """The privacy events of a unit that takes part; if units differ, those of the highest cost."""

    def charges(self) -> EventLists:
        """The event lists to which the stage's events are charged: its own, or those that all stages share."""
        if self.plan.by_roles:
            return ((self.name, self.events),)
        return tuple((name, self.events) for name in self.plan.shared_lists)

    @abstractmethod
    def work(self) -> Work:
        """The expected work for the models, from public numbers."""

    def warnings(self) -> Iterator[str]:
        """Warnings for the curator, shown before anything is spent; one line each."""
        return iter(())

    @abstractmethod
    def task(self) -> str:
        """A predicate that says what the stage's units do, for a sentence whose subject they are."""

    def check(self, event: Any) -> None:
        """Refuse a release that was not paid for or does not fit the plan, because files can come from anywhere.

        `event` has a type in `releases`. Raises a UsageError.
        """
        assert isinstance(event, self.releases)

    def begin(self, state: RunState) -> RunningStage:
        """The running stage, which has read nothing yet. Raises a UsageError if the model is too small for it."""
        return OneRelease(self, state)

    def ask(self, state: RunState) -> Iterator[CuratorEvent]:
        """The events of a stage that reads its units once: public events and progress, and the release at the end."""
        raise NotImplementedError

    def take(self, state: RunState, event: Any) -> None:
        """Update the state with the release."""
        raise NotImplementedError


class RunningStage(Protocol):
    """A stage in a run. Its state depends only on the events passed to `apply`, new ones or a journal's."""

    def ask(self, run: LedgerRun | None) -> Iterator[Sequence[CuratorEvent]]:
        """The stage's remaining events; the events of one list are released together.

        The caller has charged the stage, unless the stage charges itself: it then uses `run`, its run in the ledger.
        `run` is None if nothing is charged.
        """

    def apply(self, event: CuratorEvent) -> None:
        """Update the state with an event of this stage; ignore other events. Raises a UsageError if the event cannot
        belong to this run."""


@dataclass
class RunState:
    """The state that the stages of one run share. Everything except `parts` is public or released.

    Attributes:
        parts: the rows that each stage may read; private.
        curator: whether events have values without noise, too.
        held_out: whether the scoring rows took part in no other stage, in this run or an earlier one.
        openings: the released openings of each label, each with its weight; empty if none exceeded the noise.
        words: the released words of each label; empty if none exceeded the noise.
        named: the labels whose names match their rows' direction; empty until directions are released.
        directions: the direction of each label in the embedding space; None until they are released.
        middle: the unit vector of the mean over labels; empty until it is released.
        drafts: the drafts of each label before any vote, best first; they begin with its openings.
        public: the drafts of each label from public words alone, best first: the baseline of the set.
        written: the texts of each label that were written from private rows and passed the gate.
        refused: the texts that the gate refused.
        winners: the texts of each label with the most votes, best first.
        compared: the two sets with which the model reads rows; None until they are known.
    """

    plan: RunTerms
    parts: Mapping[str, Dataset]
    model: LanguageModel
    embedder: Embedder | None
    randomness: Randomness
    curator: bool
    held_out: bool
    openings: dict[str, dict[str, float]] = field(default_factory=dict)
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    directions: Directions | None = None
    middle: tuple[float, ...] = ()
    drafts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    public: dict[str, tuple[str, ...]] = field(default_factory=dict)
    written: dict[str, tuple[str, ...]] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)
    winners: dict[str, tuple[str, ...]] = field(default_factory=dict)
    compared: SetsCompared | None = None

    @cached_property
    def samples(self) -> list[str]:
        spec = self.plan.spec
        return write_samples(self.model, spec.wording, self.plan.labels[0], spec.draft_tokens, self.randomness)

    @cached_property
    def gate(self) -> Gate:
        return Gate(self.model, self.samples, self.plan.spec.wording)

    @cached_property
    def _by_name(self) -> Nearness | None:
        return Nearness(self.embedder, self.plan.spec.wording, self.plan.labels) if self.embedder else None

    @property
    def margins(self) -> Margins | None:
        """The ranking of texts by the released directions; None before their release."""
        if self.embedder is None or self.directions is None:
            return None
        return Margins(self.embedder, self.directions, np.array(self.middle))

    def says(self, label: str) -> bool:
        """Whether the prompt for a label's texts names the label. It does if the owner gave the label a name, if the
        label's name matches its rows, or if no words are released for it."""
        return label in self.plan.spec.label_words or label in self.named or not self.words.get(label)

    @cached_property
    def judging(self) -> JudgingState:
        """The state that the judging stages share, once the set is final."""
        assert self.compared is not None
        sets = {ZERO_SHOT: (), PUBLIC_ONLY: self.compared.public, DEMONSTRATIONS: self.compared.own}
        return JudgingState(self.plan, self.parts, sets, self.model, self.randomness, self.held_out, self.words)

    def try_the_model(self) -> Iterator[Drafting]:
        """Write drafts of the first label, unless a few samples show that the model can write its texts."""
        wording, labels = self.plan.spec.wording, self.plan.labels
        if not any(cleaned(text, wording, labels[0], labels, self.gate) for text in self.samples):
            yield from self.first_drafts(labels[:1])

    def first_drafts(self, labels: Sequence[str] | None = None) -> Iterator[Drafting]:
        """Write the first drafts of the given labels, by default of all, unless they exist. Raises a UsageError if a
        label has no usable ones."""
        assert self.plan.spec.drafts is not None
        for label in self.plan.labels if labels is None else labels:
            yield from self._draft(self.drafts, self._request(label), self.margins or self._by_name)

    def _public_drafts(self) -> Iterator[Drafting]:
        """Write drafts of all labels from public words alone. A label's first drafts are reused if they depend on no
        release."""
        for label in self.plan.labels:
            if label in self.drafts and self._request(label).public and self.margins is None:
                self.public.setdefault(label, self.drafts[label])
            spec = self.plan.spec
            request = DraftRequest(spec.wording, label, self.plan.labels, drafts_for(spec.shots), spec.draft_tokens)
            yield from self._draft(self.public, request, self._by_name)

    def _request(self, label: str) -> DraftRequest:
        """The request for a label's drafts in a ballot, led by all releases about the label."""
        spec, openings, words = self.plan.spec, self.openings.get(label, {}), self.words.get(label, ())
        assert spec.drafts is not None
        labels, tokens, named = self.plan.labels, spec.draft_tokens, self.says(label)
        return DraftRequest(spec.wording, label, labels, spec.drafts, tokens, openings, words, named)

    def _draft(
        self, drafts: dict[str, tuple[str, ...]], request: DraftRequest, ranking: Ranking | None
    ) -> Iterator[Drafting]:
        """Write drafts of a label that differ from those of the other labels, unless they exist."""
        labels, label = self.plan.labels, request.label
        if label not in drafts:
            yield Drafting(label, labels.index(label) + 1, len(labels), request.public)
            taken = [text for other, texts in drafts.items() if other != label for text in texts]
            drafts[label] = write_drafts(self.model, request, self.gate, self.randomness, taken, ranking)

    def chosen(self, label: str) -> tuple[str, ...]:
        """The current texts of a label: the winners of the vote or, before a vote, written demonstrations, then drafts.

        A set has the requested number of demonstrations: drafts replace written texts that the gate refused.
        """
        standing = self.winners.get(label) or (*self.written.get(label, ()), *self.drafts.get(label, ()))
        return tuple(dict.fromkeys(standing))[: self.plan.spec.shots]

    def compare(self) -> Iterator[CuratorEvent]:
        """Yield the sets with which the model reads rows, unless this was done before."""
        if self.compared is None:
            labels, shots = self.plan.labels, self.plan.spec.shots
            yield from self.first_drafts([label for label in labels if len(self.chosen(label)) < shots])
            yield from self._public_drafts()
            public = interleaved({label: self.public[label][:shots] for label in labels}, labels)
            self.compared = SetsCompared(public, self._standing())
            yield self.compared

    def with_releases(self, demo_set: DemoSet) -> DemoSet:
        """The demo set with all releases so far."""
        made = self.compared.own if self.compared else self._standing()
        kept = replace(demo_set, demonstrations=made, refused=tuple(self.refused))
        if self.directions is not None:
            kept = replace(kept, words=self.words, directions=self.directions)
        return self.judging.with_measurements(kept) if self.compared else kept

    def _standing(self) -> tuple[Demonstration, ...]:
        labels = self.plan.labels
        return interleaved({label: self.chosen(label) for label in labels}, labels)


def check_noise(stated: float, certified: float) -> None:
    """Refuse a noise deviation that differs from the certificate's by more than a rounding error."""
    if not math.isclose(stated, certified, rel_tol=1e-9):
        raise UsageError("noise that is not the certificate's")


def part_of(key: Key) -> str:
    """The ledger's name for a demonstration's part of the run."""
    return f"write {key[0]} {key[1]}"


class OneRelease:
    """A stage in a run that reads its units once and makes one release."""

    def __init__(self, stage: PlannedStage, state: RunState) -> None:
        self._stage, self._state = stage, state
        self._done = False

    def ask(self, run: LedgerRun | None) -> Iterator[Sequence[CuratorEvent]]:
        if not self._done:
            yield from ([event] for event in self._stage.ask(self._state))

    def apply(self, event: CuratorEvent) -> None:
        if isinstance(event, SetsCompared):
            self._state.compared = event
        if isinstance(event, self._stage.releases):
            self._done = True
            self._stage.take(self._state, event)
