"""The stage "openings": how do texts begin? Drafts and demonstrations take their openings from one noisy histogram.

Its alternatives are public: a list of frequent openings, and those that the model itself is likely to write. No
language model reads a row, so the stage takes almost no time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as checked
from scipy.special import softmax

from mechanisms.data.units import Unit, units_of
from mechanisms.errors import UsageError
from mechanisms.inference import LanguageModel, WritingPrompt
from mechanisms.kinds import openings_of
from mechanisms.noise import Floats
from mechanisms.privacy_events import PrivacyEvent
from mechanisms.runs.events import LINE, CuratorEvent, Name, Number, Release, Share, Texts
from mechanisms.runs.stage import PlannedStage, check_certified_noise
from mechanisms.runs.state import RunState
from mechanisms.runs.work import Work
from mechanisms.tallies import OpeningFinder, Openings, distinct, mean_contribution

_CLEARS = 3.0
"""An opening is used if its count exceeds at least this many standard deviations of the noise; see `clear_of_noise`."""
_BY_LABEL = 250.0
"""Each label has its own histogram if every label has this many voters, times epsilon: 1,000 rows at epsilon 1/4."""
_FEWEST, _LEAST_MASS = 3, 0.1
"""The fewest openings that must exceed the noise, and the least share of the voters that must have chosen them. With
less, no opening is used."""
_FIRST, _SECOND = 24, 3
"""The number of the model's likeliest first words, and of second words after each, that are added to the list."""
_MOST_PROPOSING = 16
"""The most labels for whose texts the model proposes openings; with more labels, every second, third, ... one."""
_CHUNK = 512
"""The number of units whose votes are in memory at once."""


@checked(frozen=True, config=LINE)
class OpeningsReleased(Release):
    """The noisy histogram of openings.

    Attributes:
        openings: the public alternatives.
        counts: noisy counts of the votes for each opening, by label, or under "" for all labels together.
        noise: standard deviation of the noise on each count.
        used: for each label, the openings with which its texts will begin, each with its weight; empty if too few
            counts exceed the noise.
    """

    openings: Texts
    counts: Annotated[dict[Name, tuple[Number, ...]], Field(min_length=1, max_length=10_000)]
    noise: Annotated[float, Field(ge=0, le=1e9)]
    used: Annotated[dict[Name, dict[Name, Share]], Field(max_length=10_000)]
    event: Literal["openings"] = "openings"

    def lines(self) -> tuple[str, ...]:
        told = []
        for label, used in self.used.items():
            best = sorted(used, key=lambda each: -used[each])[:6]
            shown = ", ".join(f"'{each}'" for each in best) if best else "none cleared the noise"
            told.append(f"{label}: texts begin with {shown}")
        return tuple(told)


@dataclass(frozen=True)
class OpeningsStage(PlannedStage):
    """One histogram of public openings, pooled over labels or for each label, as public sizes allow."""

    name = "openings"
    order = 5
    title = "Openings"
    question = "How do the {unit}s' texts begin?"
    noun = "the openings"
    role_units = 240
    parts = 3
    releases = (OpeningsReleased,)
    usual = False  # if a label's words are released, its openings change little (research/docs/words.md)

    @property
    def tally(self) -> Openings:
        return Openings(self.plan.epsilon(self.name), self.plan.by_user)

    @property
    def by_label(self) -> bool:
        """Whether every label has enough voters for its own histogram."""
        voters = self.plan.unit_share(self.name) * min(self.plan.sizes.values())
        return voters * self.tally.epsilon >= _BY_LABEL

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        return (self.tally.event,)

    def work(self) -> Work:
        return Work(read=60 * len(self.proposing) * (1 + _FIRST))

    @property
    def proposing(self) -> tuple[str, ...]:
        """The labels for whose texts the model proposes openings."""
        return self.plan.labels[:: math.ceil(len(self.plan.labels) / _MOST_PROPOSING)]

    def task(self) -> str:
        return "vote for how their texts begin, among public openings."

    def check(self, event: OpeningsReleased) -> None:
        groups = set(self.plan.labels) if self.by_label else {""}
        if set(event.counts) != groups or any(len(each) != len(event.openings) for each in event.counts.values()):
            raise UsageError("counts that are not those of the openings")
        check_certified_noise(event.noise, self.tally.deviation)
        if event.used != self.used(event.openings, {label: np.array(each) for label, each in event.counts.items()}):
            raise UsageError("openings that do not follow from the counts")

    def clear_of_noise(self, openings: int) -> float:
        """The least count with which an opening is used.

        Args:
            openings: the number of alternatives. If no text begins with any of them, the expected number of counts
                above the result is 1/2.
        """
        scale = self.tally.deviation / math.sqrt(2)
        return max(_CLEARS * self.tally.deviation, scale * math.log(openings))

    def used(self, openings: Sequence[str], counts: dict[str, Floats]) -> dict[str, dict[str, float]]:
        """The openings of each label whose counts exceed the noise, with weights that sum to 1.

        This is post-processing of the released `counts`, which are by label or under "" for all labels.
        """
        found, least = {}, self.clear_of_noise(len(openings))
        for label in self.plan.labels:
            noisy = counts[label if self.by_label else ""]
            voters = self.plan.unit_share(self.name) * (
                self.plan.sizes[label] if self.by_label else sum(self.plan.sizes.values())
            )
            clear = [i for i, count in enumerate(noisy) if count > least]
            mass = float(sum(noisy[i] for i in clear))
            enough = len(clear) >= _FEWEST and mass >= _LEAST_MASS * voters
            found[label] = {openings[i]: float(noisy[i]) / mass for i in clear} if enough else {}
        return found

    def ask(self, state: RunState) -> Iterator[CuratorEvent]:
        plan, model, wording = self.plan, state.model, self.plan.spec.wording
        prompts = [WritingPrompt(model, wording, label) for label in self.proposing]
        likely = [opening for prompt in prompts for opening in likely_openings(model, prompt)]
        own = (opening for opening in likely if not wording.by_another_writer(opening))
        openings = distinct([*openings_of(plan.spec.kind), *own])
        beginnings, groups = OpeningFinder(openings), plan.labels if self.by_label else ("",)
        starts = {label: i * len(openings) for i, label in enumerate(groups)}
        places = len(groups) * len(openings)
        units = units_of(state.parts[self.name], plan.spec.max_unit_records)

        def cast(chunk: Sequence[Unit]) -> Floats:
            vectors = np.zeros((len(chunk), places))
            for i, unit in enumerate(chunk):
                rows = [beginnings.vote(row.text, places, starts[row.label] if self.by_label else 0) for row in unit]
                vectors[i] = mean_contribution(np.stack(rows))
            return vectors

        chunks = (cast(units[start : start + _CHUNK]) for start in range(0, max(1, len(units)), _CHUNK))
        noisy = self.tally.release_of(chunks, state.randomness).reshape(len(groups), len(openings))
        counts = dict(zip(groups, noisy, strict=True))
        told = {label: tuple(each.tolist()) for label, each in counts.items()}
        yield OpeningsReleased(openings, told, self.tally.deviation, self.used(openings, counts))

    def take(self, state: RunState, event: OpeningsReleased) -> None:
        state.openings = {label: dict(used) for label, used in event.used.items()}
        for label, used in event.used.items():
            if used:  # trial drafts, written before any charge, have no released openings and are written again
                state.drafts.pop(label, None)


def likely_openings(model: LanguageModel, prompt: WritingPrompt) -> Iterator[str]:
    """The likely openings of a text after the model's prompt, of one and two words; public."""
    first = model.open(prompt.prefix, [prompt.cue], len(prompt.cue), 1).logits()[0]
    tokens = [
        each for each in np.argsort(-first, kind="stable")[: 2 * _FIRST].tolist() if each not in model.stop_tokens
    ]
    words = [token for token in tokens if _is_word(model.decode([token]))][:_FIRST]
    if not words:
        return
    rows = [[*prompt.cue, token] for token in words]
    behind = model.open(prompt.prefix, rows, len(rows[0]), 1).logits()
    for token, logits in zip(words, behind, strict=True):
        word = model.decode([token]).strip()
        yield word
        shares = softmax(logits)
        for second in np.argsort(-shares, kind="stable")[:_SECOND].tolist():
            both = model.decode([token, second])
            if both[len(model.decode([token])) :].startswith(" ") and _is_word(both.split()[-1]):
                yield both.strip()


def _is_word(text: str) -> bool:
    bare = text.strip()
    return bool(bare) and bare.replace("'", "").replace("’", "").isalpha()


STAGE = OpeningsStage
