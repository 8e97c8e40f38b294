"""The stage "words": words for the topics of each label's rows, from one noisy mean of embeddings for each label.

Each unit adds one embedding to the sum of its label. A label's direction is its mean minus the mean over labels, with
the component along that mean removed. The noise on the projection of a public text on a direction is known, so that
words above the noise can be found in a public list. No language model reads a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as checked

from mechanisms.accounting import PrivacyTarget
from mechanisms.demos.directions import LIKENESS, Directions, are_units, margins
from mechanisms.errors import UsageError
from mechanisms.evaluation.class_prototypes import one_record_each
from mechanisms.evaluation.classifier import with_progress
from mechanisms.inference import Embedder
from mechanisms.inference.vocabulary import Vocabulary, common_words, in_english, placing
from mechanisms.noise import Floats
from mechanisms.privacy_events import PrivacyEvent
from mechanisms.records import unit_nouns
from mechanisms.runs.events import LINE, CuratorEvent, Name, Number, Numbers, Release, StageProgress
from mechanisms.runs.stage import PlannedStage, check_certified_noise
from mechanisms.runs.state import RunState
from mechanisms.runs.work import Work
from mechanisms.tallies import Prototypes

CLEARS = 4.0
"""A word's projection on its label's direction must exceed this many standard deviations of its noise. By noise alone,
the expected number of such words for a label is about 1/2."""
MOST_WORDS, FEWEST_WORDS = 8, 3
"""The most words of a label, and the fewest that are used: with fewer, the prompt has only the label's name."""
_LEAST, _RARE, _ALIKE = 0.4, 0.2, 0.7
"""The least projection of a word and its loss for a tenfold rarity, both as parts of the best word's projection; and
the cosine above which two words are duplicates."""
_MOST_CLEAR = 1e6


@checked(frozen=True, config=LINE)
class Word:
    """A public word. `clears` is its projection on its label's direction, in standard deviations of the noise, at most
    a million."""

    word: Name
    clears: Annotated[float, Field(ge=0, le=_MOST_CLEAR)]


@checked(frozen=True, config=LINE)
class WordsReleased(Release):
    """The direction of each label, and the words that clear its noise.

    Attributes:
        embedder: the embedding model's name.
        sha256: the embedding model's digest.
        directions: the direction of each label, a unit vector.
        lengths: the length of each direction before it was normalised: of the part of the label's mean that is
            orthogonal to the mean over labels.
        noise: for each label, an upper bound on the standard deviation of the noise on a unit vector's projection on
            its direction.
        middle: the unit vector of the mean over labels.
        words: the words of each label, best first; empty if fewer than three clear the noise, or with `foreign`.
        named: the labels whose name lies along the label's direction, by itself and as prompts use it.
        foreign: whether public drafts seem to be in another language than the public words.
    """

    embedder: Name
    sha256: Name
    directions: Annotated[dict[Name, Numbers], Field(min_length=2, max_length=10_000)]
    lengths: dict[Name, Number]
    noise: dict[Name, Annotated[float, Field(gt=0, le=1e9)]]
    middle: Numbers
    words: dict[Name, Annotated[tuple[Word, ...], Field(max_length=MOST_WORDS)]]
    named: Annotated[tuple[Name, ...], Field(max_length=10_000)]
    foreign: bool = False
    event: Literal["words"] = "words"

    @property
    def words_by_label(self) -> dict[str, tuple[str, ...]]:
        """The words of each label, in the form of a demo set."""
        return {label: tuple(each.word for each in words) for label, words in self.words.items()}

    @property
    def label_directions(self) -> Directions:
        """The directions, in the form of a demo set."""
        return Directions(self.embedder, self.sha256, self.directions)

    def lines(self) -> tuple[str, ...]:
        if self.foreign:
            return ("The public words are English, and the texts seem not to be: the labels' names stand alone.",)
        told = ((label, ", ".join(f"'{each.word}'" for each in words)) for label, words in self.words.items())
        return tuple(f"{label}: {f'about {words}' if words else 'no word clears the noise'}" for label, words in told)


@cache
def _noise(epsilon: float, delta: float) -> float:
    """The noise multiplier of one Gaussian release at a cost, rounded up to four significant digits.

    Files state the multiplier, and machines differ in the last digits of a calibration.
    """
    found = Prototypes.costing(PrivacyTarget(epsilon, delta), 2).noise_multiplier
    unit = 10.0 ** (math.floor(math.log10(found)) - 3)
    return float(f"{math.ceil(found / unit - 1e-9) * unit:.4g}")


@dataclass(frozen=True)
class WordsStage(PlannedStage):
    """One sum of embeddings for each label, with Gaussian noise."""

    name = "words"
    order = 7
    title = "Words"
    question = "What are the {unit}s of each label about?"
    noun = "the words"
    role_units = None
    parts = 20
    releases = (WordsReleased,)

    @property
    def tally(self) -> Prototypes:
        return Prototypes(_noise(self.plan.epsilon(self.name), self.plan.spec.delta), len(self.plan.labels))

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (self.tally.event,)

    @property
    def counted(self) -> Floats:
        """The expected number of units of each label that add an embedding, from the public sizes, shape (labels,)."""
        return np.array([self.plan.unit_share(self.name) * self.plan.sizes[label] for label in self.plan.labels])

    @property
    def deviations(self) -> Floats:
        """The standard deviation of the noise on a unit vector's projection on each label's mean minus the mean over
        labels, shape (labels,). It is an upper bound for directions orthogonal to the mean over labels, whose own noise
        is not counted."""
        labels, of_means = len(self.plan.labels), (self.tally.noise_multiplier / self.counted) ** 2
        return np.asarray(np.sqrt(((1 - 1 / labels) ** 2 - 1 / labels**2) * of_means + of_means.sum() / labels**2))

    def work(self) -> Work:
        return Work(embedded=self.plan.units(self.name))

    def warnings(self) -> Iterator[str]:
        label, who = self.plan.smallest, unit_nouns(self.plan.unit)
        noise = self.deviations[self.plan.labels.index(label)]
        if CLEARS * noise > _STRONG:
            counted = self.counted[self.plan.labels.index(label)]
            times = CLEARS * noise / _STRONG
            more = f"{times:.0f} times as many {who}, or as large an epsilon," if times >= 1.5 else "Some more"
            yield (
                f"About {math.ceil(counted):,} {who} say what '{label}' is about, and few words will clear the noise. "
                f"{more} would let them."
            )

    def task(self) -> str:
        return "add one embedding each to the noisy mean of their label, from which public words follow."

    def check(self, event: WordsReleased) -> None:
        labels = self.plan.labels
        by_label = (event.directions, event.lengths, event.noise, event.words)
        # The order of the labels must match, too: a text's label is the index of its furthest direction.
        if any(tuple(each) != labels for each in by_label) or not set(event.named) <= set(labels):
            raise UsageError("words of other labels, or in another order")
        for label, noise in zip(self.plan.labels, self.deviations, strict=True):
            check_certified_noise(event.noise[label], float(noise))
        if not are_units([*event.directions.values(), event.middle]):
            raise UsageError("directions that are not unit vectors of one space")
        known = set(common_words())
        for words in event.words.values():
            fits = not words or len(words) >= FEWEST_WORDS
            if (
                not fits
                or (words and event.foreign)
                or any(each.word not in known or each.clears < CLEARS for each in words)
            ):
                raise UsageError("words that are not of the public list, or do not clear the noise")

    def ask(self, state: RunState) -> Iterator[CuratorEvent]:
        assert state.embedder is not None
        plan, embedder = self.plan, state.embedder
        # The vocabulary and its size are public, so it is embedded before any row is read.
        public = yield from with_progress(placing(embedder), lambda share: StageProgress(self.name, share / 2))
        texts, places = one_record_each(state.parts[self.name])
        vectors = np.zeros((len(texts), embedder.dimensions))
        for done, text in enumerate(texts):
            [vectors[done]] = embedder.embed([text])
            if done % _AT_ONCE == 0:
                yield StageProgress(self.name, (1 + done / len(texts)) / 2)
        sums = self.tally.sums(Prototypes.contributions(places, vectors), state.randomness)
        means = sums / self.counted[:, None]
        middle = means.mean(axis=0)
        apart = _across(means - middle, middle)
        lengths, deviations = np.linalg.norm(apart, axis=1), self.deviations
        directions = Directions.of(embedder, plan.labels, apart)
        wording = plan.spec.wording
        # The program's own prompt sentence is English, as the public words are: only drafts for an owner's sentence can
        # be in another language.
        foreign = bool(wording.sentence) and not in_english(state.samples)
        common = Directions.of(embedder, ("",), middle[None])
        found = words_of(directions, common.matrix[0], lengths / deviations, public)
        speaks = self._speaks(directions, lengths / deviations, found, embedder)
        yield WordsReleased(
            embedder=embedder.name,
            sha256=embedder.sha256,
            directions=dict(directions.vectors),
            lengths=dict(zip(plan.labels, lengths.round(6).tolist(), strict=True)),
            noise=dict(zip(plan.labels, deviations.tolist(), strict=True)),
            middle=common.vectors[""],
            words=dict.fromkeys(plan.labels, ()) if foreign else found,
            named=tuple(label for label, holds in zip(plan.labels, speaks, strict=True) if holds),
            foreign=foreign,
        )

    def _speaks(
        self, directions: Directions, clear: Floats, found: Mapping[str, Sequence[Word]], embedder: Embedder
    ) -> NDArray[np.bool_]:
        """Whether each label's name lies along its direction, shape (labels,): in the words of a prompt, above the
        noise, and by itself, as far as a word must. Many rows have so little noise that "message about Q1" exceeds it.
        """
        wording, own = self.plan.spec.wording, np.arange(len(self.plan.labels))
        names = [wording.named(label) for label in self.plan.labels]
        asked = directions.places([f"{wording.kind} {wording.relation} {name}" for name in names], embedder)
        alone = directions.places(names, embedder)
        strongest = np.array([max((each.clears for each in found[label]), default=0.0) for label in self.plan.labels])
        lies = (margins(asked, own) > 0) & (margins(alone, own) > 0)
        return np.asarray(lies & (asked[own, own] * clear > CLEARS) & (alone[own, own] * clear >= _LEAST * strongest))

    def take(self, state: RunState, event: WordsReleased) -> None:
        state.directions, state.middle, state.words = event.label_directions, event.middle, event.words_by_label
        state.named = frozenset(event.named)
        state.drafts.clear()  # trial drafts, written before any charge, were requested without words


def _across(apart: Floats, middle: Floats) -> Floats:
    """The component of each label's mean, less the mean over labels, that is orthogonal to the mean over labels; shape
    (labels, dimensions).

    Each sum is divided by the expected number of units, which follows from public sizes and differs from the number of
    units that take part. A label with fewer of them has a shorter mean, so that its difference from the mean over
    labels would point away from what all rows have in common.
    """
    common = middle / max(float(np.linalg.norm(middle)), 1e-12)
    return np.asarray(apart - np.outer(apart @ common, common))


_AT_ONCE = 16
_STRONG = 0.1
"""The projection of a label's best words on its direction is this to twice as much, on the six public sets."""


def words_of(directions: Directions, middle: Floats, clear: Floats, public: Vocabulary) -> dict[str, tuple[Word, ...]]:
    """The words of each label, best first: words whose projection on its direction exceeds the noise, and is larger
    than on any other direction.

    A larger projection ranks first; words near the mean over labels rank higher, and rare words lower. No two words are
    duplicates. A label with fewer than three words gets none.

    Args:
        middle: the unit vector of the mean over labels, shape (dimensions,).
        clear: for each label, the number of standard deviations of the noise in a projection of 1, shape (labels,).
        public: the public words with their embeddings, shape (words, dimensions).
    """
    vectors = public.places.astype(np.float64)
    places, like = vectors @ directions.matrix.T, LIKENESS * (vectors @ middle)
    rarer = _RARE * np.log10(np.arange(1, len(public.words) + 1))
    found = {}
    for i, label in enumerate(directions.vectors):
        own = places[:, i]
        fits = (own * clear[i] > CLEARS) & (places.argmax(axis=1) == i)
        best = own[fits].max(initial=0.0)
        fits &= own >= _LEAST * best
        order = sorted(np.flatnonzero(fits).tolist(), key=lambda place: best * rarer[place] - like[place] - own[place])
        chosen: list[int] = []
        for place in order:
            if len(chosen) == MOST_WORDS:
                break
            if all(float(public.places[place] @ public.places[other]) < _ALIKE for other in chosen):
                chosen.append(place)
        kept = chosen if len(chosen) >= FEWEST_WORDS else []
        found[label] = tuple(
            Word(public.words[place], round(min(float(own[place] * clear[i]), _MOST_CLEAR), 1)) for place in kept
        )
    return found


STAGE = WordsStage
