"""The state of a run: what its stages have released, and the drafts that follow from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mechanisms.demos.demo_set import DEMONSTRATIONS, PUBLIC_ONLY, ZERO_SHOT, DemoSet, Refusal
from mechanisms.demos.directions import Directions
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.noise import Randomness
from mechanisms.records import Dataset, Demonstration
from mechanisms.runs.drafts import (
    DraftRequest,
    Margins,
    Nearness,
    Ranking,
    drafts_for,
    interleaved,
    write_drafts,
    write_samples,
)
from mechanisms.runs.events import CuratorEvent, Drafting, SetsCompared
from mechanisms.runs.judging import JudgingState
from mechanisms.runs.terms import RunTerms
from mechanisms.runs.text import Gate, cleaned


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
