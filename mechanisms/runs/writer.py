"""One demonstration that is being written: its sample, the rows of its batch, and its released tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference import LanguageModel, WritingPrompt
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.records import Demonstration, Record
from mechanisms.runs.decoding import TextState
from mechanisms.runs.events import DemoCompleted, PrivateDiagnostics, TokenReleased, WritingEvent
from mechanisms.sampling import Seating, seat_in_slots, seat_in_subsets
from mechanisms.steps import TokenDistributions

if TYPE_CHECKING:
    from mechanisms.runs.plan import Plan

Key = tuple[str, int]
"""The label and the number of a demonstration."""


@dataclass(frozen=True, repr=False)
class PrivateRows:
    """A sample of units: all rows of the batch, and which of them hold a unit.

    On overflow the rows are blank, and the step is released from public text.
    """

    prompts: list[list[int]]
    occupied: NDArray[np.bool_]
    overflow: bool


class DemonstrationWriter:
    """Writes one demonstration from the units of one label; the caller has charged it, and runs the model.

    Args:
        units: private; of the label.
        opening: how the text begins; public.
        curator: also tell the clean sums.
    """

    def __init__(
        self,
        units: Sequence[tuple[Record, ...]],
        plan: Plan,
        model: LanguageModel,
        randomness: Randomness,
        key: Key,
        opening: str = "",
        curator: bool = False,
    ) -> None:
        self.key, self.opening = key, opening
        self._plan, self._units, self._model, self._randomness = plan, units, model, randomness
        spec = plan.spec
        rows = (spec.max_unit_records if plan.by_user else 1) * plan.sampling.per_subset
        self.prompt = WritingPrompt(model, spec.asked, key[0], spec.max_record_tokens, rows)
        begun = self.prompt.opening(opening)
        self.cue = [*self.prompt.cue, *begun]
        self.state = TextState(model, spec.min_tokens or 0, begun)
        self.charged = 0
        self._releaser = plan.mechanism.begin(plan.sampling, randomness)
        self._curator = curator

    @property
    def label(self) -> str:
        return self.key[0]

    @property
    def written(self) -> list[int]:
        """The tokens so far, after the cue."""
        return self.state.written

    @property
    def length(self) -> int:
        """Positions of a private row, before any token is written."""
        return self.prompt.length - len(self.prompt.cue) + len(self.cue)

    @property
    def completed(self) -> DemoCompleted:
        """The finished demonstration."""
        return DemoCompleted(Demonstration(self.state.finished, self.label), self.key[1])

    @property
    def ended(self) -> bool:
        """Whether no further token is charged: the text has ended, or its tokens are used up."""
        return self.state.stopped or self.charged >= self._plan.sampling.tokens

    def restore(self, released: Sequence[TokenReleased]) -> None:
        """Restore the tokens that were released before the interruption; nothing is drawn.

        Raises:
            UsageError: these tokens cannot have been written.
        """
        try:
            for event in released:
                same = event.token is not None and self._model.decode([event.token]) == event.candidates[event.chosen]
                if self.ended or not same or event.token in self.state.barred():
                    raise ValueError("this token may not come next")
                self.state.accept(event.token or 0)
                self.charged += 1
        except (ValueError, IndexError, OverflowError, TypeError) as error:
            raise UsageError("The run's tokens are not those of this model: give the model that it had.") from error

    def write_public_token(self, logits: Floats) -> None:
        """Write the next token without private rows: the likeliest.

        Args:
            logits: of the public row, shape (vocabulary,).
        """
        columns = self.candidates(logits)
        self.state.accept(int(columns[np.argmax(logits[columns])]))

    def join(self) -> PrivateRows:
        """Draw the sample, and make its prompts with the tokens so far."""
        seating = self._seat()
        rows: Sequence[tuple[int, ...]] = seating.rows
        if seating.overflow:
            rows = [()] * self._plan.capacity(self.label)
        occupied = np.array([bool(row) or not self._plan.sampling.unit_rows for row in rows])
        return PrivateRows([self._row(row) + self.written for row in rows], occupied, seating.overflow)

    def _row(self, seats: tuple[int, ...]) -> list[int]:
        cap = self._plan.spec.max_unit_records
        texts = [record.text for seat in seats for record in self._units[seat][:cap]]
        return [*self.prompt.row(texts), *self.cue[len(self.prompt.cue) :]]

    def _seat(self) -> Seating:
        sampling = self._plan.sampling
        sampled = self._randomness.poisson_sample(len(self._units), sampling.rate(self._plan.sizes[self.label]))
        if sampling.unit_rows:
            return seat_in_slots(sampled, self._plan.capacity(self.label), self._randomness)
        return seat_in_subsets(sampled, sampling.subsets, self._randomness)

    def candidates(self, logits: Floats) -> Integers:
        """S: the likeliest tokens of the public distribution that the text's state does not bar, at most K.

        Where only a token's index is released, whose noise cannot be read, they are a nucleus: a plan's
        `candidate_top_p`.

        Args:
            logits: of the public row, shape (vocabulary,).

        Raises:
            ModelUnavailable: there is none whose logit is finite.
        """
        spec = self._plan.spec
        usable = np.where(np.isfinite(logits), logits, -np.inf)
        usable[self.state.barred()] = -np.inf
        order = np.argsort(-usable, kind="stable")
        likeliest = self.state.visible(order[np.isfinite(usable[order])])
        columns = np.array(list(islice(likeliest, spec.candidates)), dtype=np.int64)
        if not len(columns):
            raise ModelUnavailable("The model gives no usable logits for the public prompt: choose another model.")
        if (top_p := spec.candidate_top_p or 1.0) < 1:
            shares = softmax(usable[np.isfinite(usable)])
            held = np.cumsum(np.exp(usable[columns] - usable.max()) * shares.max())
            columns = columns[: max(2, int(np.searchsorted(held, top_p)) + 1)]
        return columns[self._plan.transform.narrow(logits[columns])]

    def distributions(
        self, private: PrivateRows | None, rows: Floats, public: Floats, base: Floats | None
    ) -> TokenDistributions:
        """The mechanism's input.

        Args:
            private: who joined; None where the mechanism takes no private rows.
            rows: their logits, shape (rows, K); empty where nobody takes part.
            public, base: logits of the public and of the base row, shape (K,).
        """
        sampling = self._plan.sampling
        occupied = private.occupied if private and not private.overflow else np.empty(0, dtype=np.bool_)
        seen = TokenDistributions(rows[: len(occupied)], occupied, public, sampling.subsets, sampling.unit_rows, base)
        return self._plan.transform.apply(seen.public_step() if private and private.overflow else seen)

    def release(self, columns: Integers, distributions: TokenDistributions) -> Iterator[WritingEvent]:
        """Release one token of the candidates `columns`; whether it is the last is decided on the token itself."""
        release = self._releaser.step(distributions)
        self.charged += 1
        self.state.accept(int(columns[release.index]))
        rows = self._plan.sampling.subsets
        yield TokenReleased(
            label=self.label,
            number=self.key[1],
            step=self.charged,
            text=self.state.text,
            candidates=tuple(self._model.decode([int(column)]) for column in columns),
            chosen=release.index,
            scores=None if release.scores is None else tuple(release.scores.tolist()),
            public=tuple((distributions.public_probabilities * rows).tolist()),
            stop=self.state.stopped,
            values=None if release.values is None else tuple((release.values * rows).tolist()),
            free=release.free,
            trail=release.trail,
            token=int(columns[release.index]),
        )
        if self._curator and self._plan.mechanism.uses_private_rows:
            clean, found = distributions.probabilities().sum(axis=0), self._plan.mechanism.clipped(distributions)
            clipped = (tuple(found[0].tolist()), tuple(found[1].tolist())) if found else None
            yield PrivateDiagnostics(self.label, self.key[1], self.charged, tuple(clean.tolist()), clipped)
