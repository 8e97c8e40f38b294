"""One demonstration that is being written: its sample, the rows of its batch, and its released tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np

from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference import GenerationPrompt, Grammar, LanguageModel
from mechanisms.noise import Floats, Integers, Randomness
from mechanisms.records import Demonstration, Record
from mechanisms.runs.decoding import DecodingState, RecordState, TextState, visible
from mechanisms.runs.events import DemoCompleted, PrivateDiagnostics, TokenReleased, WritingEvent
from mechanisms.runs.request import SynthesisRequest
from mechanisms.sampling import (
    Scheme,
    Seating,
    copy_numbers,
    keyed_place,
    seat_in_slots,
    seat_in_subsets,
)
from mechanisms.steps import TokenDistributions

_PLACES = 2**120
"""Enough places for no two units to share one."""

Booleans = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, repr=False)
class PrivateRows:
    """A sample of units: all rows of the batch, and which of them hold a unit.

    On overflow the rows are blank, and the step is released from public text.
    """

    prompts: list[list[int]]
    occupied: Booleans
    overflow: bool


def _decoding_state(request: SynthesisRequest, model: LanguageModel, prompt: GenerationPrompt) -> DecodingState:
    if request.schema is not None:
        return RecordState(Grammar(request.schema.text, model))
    most = request.plan.tokens - request.outputs.charged if request.outputs else None
    return TextState(model, request.min_tokens, prompt.between, most)


def _content(record: Record) -> tuple[str, str]:
    """The identity of a record without a user's id; rows that differ in their output are no copies."""
    return record.text, record.output or ""


class DemonstrationWriter:
    """Writes one demonstration from the units of one label; the caller has charged it, and runs the model."""

    def __init__(
        self,
        units: Sequence[tuple[Record, ...]],
        request: SynthesisRequest,
        model: LanguageModel,
        randomness: Randomness,
        label: str,
        number: int,
        division: bytes = b"",
        curator: bool = False,
    ) -> None:
        """Prepare to write.

        Args:
            units: private; in disjoint batches all units of the label.
            division: the run's secret, by which units fall into disjoint batches; not used by the other schemes.
            curator: also tell the clean sums.

        Raises:
            UsageError: no record can be written by the request's schema.
        """
        self.label, self.number = label, number
        self.prompt = GenerationPrompt(
            model,
            request.template,
            label,
            request.max_record_tokens,
            request.records_per_row,
            request.outputs.shown if request.outputs else 0,
        )
        self.state = _decoding_state(request, model, self.prompt)
        self.charged = 0
        self.output: str | None = None
        self._units, self._request, self._model, self._randomness = units, request, model, randomness
        self._releaser = request.mechanism.begin(request.plan, randomness)
        self._curator = curator
        if request.plan.scheme is Scheme.DISJOINT and not division:
            raise ValueError("Disjoint batches need a secret of the run's own.")
        self._division = division

    @property
    def written(self) -> list[int]:
        """The tokens so far, after the cue."""
        return self.state.written

    @property
    def completed(self) -> DemoCompleted:
        """The finished demonstration; for a record, with its token counts."""
        return DemoCompleted(self.demonstration, self.number, self.state.counts(self.charged))

    @property
    def demonstration(self) -> Demonstration:
        """The demonstration so far, with its output where a model gave one."""
        made = self.state.demonstration(self.label)
        return made if self.output is None else replace(made, output=self.output)

    @property
    def ended(self) -> bool:
        """Whether no further token is charged: it has ended, or its tokens or its room in the batch are used up."""
        return self.full or self.charged >= self._request.plan.tokens

    @property
    def full(self) -> bool:
        """Whether its room in a row is used up, or it has ended."""
        return self.state.stopped or self.left <= 0

    @property
    def left(self) -> int:
        """Tokens for which its row has room."""
        return self._request.room - (len(self.written) - self.state.begun)

    def restore(self, released: Sequence[TokenReleased]) -> None:
        """Restore the tokens that were released before the interruption; nothing is drawn.

        Raises:
            UsageError: these tokens cannot have been written.
        """
        try:
            for event in released:
                while self.state.forced:
                    self.state.take()
                if self.ended or not self._may_be(event):
                    raise ValueError("this token may not come next")
                self.state.accept(event.token or 0)
                self.charged += 1
        except (ValueError, IndexError, OverflowError, TypeError) as error:
            raise UsageError("The run's tokens are not those of this model: give the model that it had.") from error

    def _may_be(self, event: TokenReleased) -> bool:
        if event.token is None or self._model.decode([event.token]) != event.candidates[event.chosen]:
            return False
        return event.token not in self.state.barred(event.token + 1)

    def write_public_token(self, logits: Floats) -> None:
        """Write the next token without private rows: the forced one, or else the likeliest.

        Args:
            logits: of the public row, shape (vocabulary,).
        """
        if self.state.forced:
            self.state.take()
        else:
            columns = self.candidates(logits)
            self.state.accept(int(columns[np.argmax(logits[columns])]))

    def join(self) -> PrivateRows:
        """Draw the sample, and make its prompts with the tokens so far."""
        seating = self._seat()
        rows: Sequence[tuple[int, ...]] = seating.rows
        if seating.overflow:
            rows = [()] * self._request.capacity(self.label)
        occupied = np.array([bool(row) or not self._request.plan.unit_rows for row in rows])
        return PrivateRows([self._row(row) + self.written for row in rows], occupied, seating.overflow)

    def _row(self, seats: tuple[int, ...]) -> list[int]:
        cap = self._request.max_unit_records
        records = [record for seat in seats for record in self._units[seat][:cap]]
        return self.prompt.row([record.text for record in records], [record.output for record in records])

    def _seat(self) -> Seating:
        plan, size = self._request.plan, self._request.sizes[self.label]
        if plan.scheme is Scheme.DISJOINT:
            sampled = self._batch()
            if not plan.unit_rows:
                return Seating(self._hashed_rows(sampled))
        else:
            sampled = self._randomness.poisson_sample(len(self._units), plan.rate(size))
        if plan.unit_rows:
            return seat_in_slots(sampled, self._request.capacity(self.label), self._randomness)
        return seat_in_subsets(sampled, plan.subsets, self._randomness)

    def _place(self, unit: int, purpose: str, places: int) -> int:
        records = self._units[unit]
        owner = records[0].unit
        identity = [owner] if owner is not None else [*_content(records[0]), str(self._copies[unit])]
        return keyed_place(self._division, identity, f"{purpose} {self.label}", places)

    @cached_property
    def _copies(self) -> list[int]:
        return copy_numbers(_content(records[0]) for records in self._units)

    def _batch(self) -> Integers:
        """The units of this demonstration's disjoint batch."""
        batches = self._request.plan.batches(self._request.sizes[self.label])
        members = [i for i in range(len(self._units)) if self._place(i, "batch", batches) == self.number - 1]
        return np.array(members, dtype=np.int64)

    def _hashed_rows(self, members: Integers) -> tuple[tuple[int, ...], ...]:
        """The units by row: a keyed hash gives each its row and its place there.

        Places by position would change for other rows if one of several equal rows were removed, and a prompt shows
        the order of its texts.
        """
        rows: list[list[int]] = [[] for _ in range(self._request.plan.subsets)]
        for unit in sorted(members.tolist(), key=lambda unit: self._place(unit, "order", _PLACES)):
            rows[self._place(unit, "row", len(rows))].append(unit)
        return tuple(tuple(row) for row in rows)

    def candidates(self, logits: Floats) -> Integers:
        """S: the K likeliest tokens of the public distribution that the demonstration's decoding state does not bar.

        Args:
            logits: of the public row, shape (vocabulary,).

        Raises:
            ModelUnavailable: there is none whose logit is finite.
        """
        usable = np.where(np.isfinite(logits), logits, -np.inf)
        usable[self.state.barred(len(logits))] = -np.inf
        order = np.argsort(-usable, kind="stable")
        likeliest = visible(self.state.field, order[np.isfinite(usable[order])], self._model)
        columns = np.array(list(islice(likeliest, self._request.candidates)), dtype=np.int64)
        if not len(columns):
            raise ModelUnavailable("The model gives no usable logits for the public prompt: choose another model.")
        return columns[self._request.transform.narrow(logits[columns])]

    def distributions(
        self, private: PrivateRows | None, rows: Floats, public: Floats, base: Floats | None
    ) -> TokenDistributions:
        """The mechanism's input.

        Args:
            private: who joined; None where the mechanism takes no private rows.
            rows: their logits, shape (rows, K); empty where nobody takes part.
            public, base: logits of the public and of the base row, shape (K,).
        """
        plan = self._request.plan
        occupied = private.occupied if private and not private.overflow else np.empty(0, dtype=np.bool_)
        seen = TokenDistributions(rows[: len(occupied)], occupied, public, plan.subsets, plan.unit_rows, base)
        return self._request.transform.apply(seen.public_step() if private and private.overflow else seen)

    def release(self, columns: Integers, distributions: TokenDistributions) -> Iterator[WritingEvent]:
        """Release one token of the candidates `columns`; whether it is the last is decided on the token itself."""
        release = self._releaser.step(distributions)
        self.charged += 1
        self.state.accept(int(columns[release.index]))
        yield TokenReleased(
            label=self.label,
            number=self.number,
            step=self.charged,
            text=self.state.text,
            candidates=tuple(self._model.decode([int(column)]) for column in columns),
            chosen=release.index,
            scores=None if release.scores is None else tuple(release.scores.tolist()),
            public=tuple((distributions.public_probabilities * self._request.plan.subsets).tolist()),
            stop=self.state.stopped,
            free=release.free,
            trail=release.trail,
            token=int(columns[release.index]),
        )
        if self._curator and self._request.mechanism.uses_private_rows:
            clean, found = distributions.probabilities().sum(axis=0), self._request.mechanism.clipped(distributions)
            clipped = (tuple(found[0].tolist()), tuple(found[1].tolist())) if found else None
            yield PrivateDiagnostics(self.label, self.number, self.charged, tuple(clean.tolist()), clipped)
