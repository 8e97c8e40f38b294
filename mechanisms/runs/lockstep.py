"""Demonstrations of one label that are written side by side, one token a step: they share the model's batches.

Which of them are still being written follows from released tokens, so the shapes of the batches stay public.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np

from mechanisms.inference import LanguageModel, Session
from mechanisms.runs.events import WritingEvent
from mechanisms.runs.writer import DemonstrationWriter, PrivateRows
from mechanisms.sampling import Scheme

if TYPE_CHECKING:
    from mechanisms.runs.plan import Plan

_LENGTHS = 8
"""The public length of a row that grows with every token is a multiple of this."""
REST = 24
"""Tokens of public text, at most, that bring a text to the end of its sentence behind its last charged token."""


def groups(
    writers: Sequence[DemonstrationWriter], plan: Plan, model: LanguageModel
) -> Iterator[Sequence[DemonstrationWriter]]:
    """Groups of demonstrations to write together, each of one label and as large as a batch of the model allows.

    Raises:
        UsageError: not even one of them fits, see `LanguageModel.check`.
    """
    anew = plan.sampling.scheme is Scheme.PER_TOKEN
    for label, of_label in groupby(writers, lambda writer: writer.label):
        mine = list(of_label)
        prefix, (length, room) = mine[0].prompt.prefix, _shape(mine, plan, plan.sampling.tokens - 1 if anew else 0)
        held = len(prefix) + length + room
        rows = plan.capacity(label) if plan.mechanism.uses_private_rows else 1
        size = max(1, model.rows_at_once(held if room == 0 else 1, held) // rows)
        model.check(prefix, min(size, len(mine)) * rows, length, room + REST)
        for start in range(0, len(mine), size):
            yield mine[start : start + size]


def _shape(writers: Sequence[DemonstrationWriter], plan: Plan, more: int = 0) -> tuple[int, int]:
    """Positions of a private row, and tokens that are appended to it: none where every token starts anew.

    Args:
        more: positions for tokens that have yet to be written.
    """
    length = max(writer.length + len(writer.written) for writer in writers) + more
    if plan.sampling.scheme is not Scheme.PER_TOKEN:
        return length, plan.sampling.tokens
    # A device prepares its kernels, and the engine compares their slots, once for every length.
    return math.ceil(length / _LENGTHS) * _LENGTHS, 0


def write_together(writers: Sequence[DemonstrationWriter], plan: Plan, model: LanguageModel) -> Iterator[WritingEvent]:
    """Write demonstrations to their end; each step adds one token to every one of them."""
    batch = _Batch(writers, plan, model)
    while batch.writers:
        yield from batch.release()
        ended = [writer for writer in batch.writers if writer.ended]
        yield from finish_publicly(ended, model)
        batch.go_on()


def finish_publicly(writers: Sequence[DemonstrationWriter], model: LanguageModel) -> Iterator[WritingEvent]:
    """Finish demonstrations that get no more private tokens: public text brings each to the end of its sentence.

    It follows from released tokens alone, so it costs nothing.
    """
    going = [writer for writer in writers if not writer.state.whole]
    if going:
        rows = [[*writer.cue, *writer.written] for writer in going]
        session = model.open(going[0].prompt.prefix, rows, max(map(len, rows)), REST)
        for _ in range(REST):
            for writer, logits in zip(going, session.logits(), strict=True):
                writer.write_public_token(logits)
            kept = [i for i, writer in enumerate(going) if not writer.state.whole]
            if not kept:
                break
            if len(kept) < len(going):
                session.keep(kept)
                going = [going[i] for i in kept]
            session.advance([writer.written[-1] for writer in going])
    yield from (writer.completed for writer in writers)


class _Batch:
    """The sessions of demonstrations in progress: public rows, rows for the base distribution, private rows."""

    def __init__(self, writers: Sequence[DemonstrationWriter], plan: Plan, model: LanguageModel) -> None:
        self.writers = list(writers)
        self._plan, self._model = plan, model
        tokens = plan.sampling.tokens
        rows = [[*writer.cue, *writer.written] for writer in writers]
        self._public = model.open(self._prefix, rows, max(map(len, rows)), tokens)
        self._base: Session | None = None
        if plan.transform.needs_base and plan.mechanism.uses_private_rows:
            # The tokens so far alone start behind a line break: a row cannot be empty.
            rows = [
                [*model.encode("\n"), *writer.prompt.opening(writer.opening), *writer.written] for writer in writers
            ]
            self._base = model.open([], rows, max(map(len, rows)), tokens)
        self._drawn: list[PrivateRows] = []
        self._private = self._join()

    @property
    def _prefix(self) -> list[int]:
        return self.writers[0].prompt.prefix

    @property
    def _slices(self) -> list[slice]:
        """The place of each demonstration's private rows in the batch."""
        return [slice(*ends) for ends in pairwise(accumulate((len(d.prompts) for d in self._drawn), initial=0))]

    def _join(self) -> Session | None:
        if not self._plan.mechanism.uses_private_rows:
            return None
        self._drawn = [writer.join() for writer in self.writers]
        rows = [row for drawn in self._drawn for row in drawn.prompts]
        length, room = _shape(self.writers, self._plan)
        return self._model.open(self._prefix, rows, length, room)

    def release(self) -> Iterator[WritingEvent]:
        """Release one token of each demonstration."""
        slices, everything = self._slices, self._public.logits()
        for i, writer in enumerate(self.writers):
            row = slice(i, i + 1)
            columns = writer.candidates(everything[i])
            drawn = self._drawn[i] if self._private else None
            rows = self._private.logits(columns, slices[i]) if self._private else np.empty((0, len(columns)))
            base = self._base.logits(columns, row)[0] if self._base else None
            public = self._public.logits(columns, row)[0]
            yield from writer.release(columns, writer.distributions(drawn, rows, public, base))

    def go_on(self) -> None:
        """Drop ended demonstrations, and give the released tokens to the model."""
        going = [i for i, writer in enumerate(self.writers) if not writer.ended]
        if not going:
            self.writers = []
            return
        if len(going) < len(self.writers):
            self._drop(going)
        tokens = [writer.written[-1] for writer in self.writers]
        for session in (self._public, self._base):
            if session is not None:
                session.advance(tokens)
        if self._plan.sampling.scheme is Scheme.PER_TOKEN:
            self._private = self._join()
        elif self._private is not None:
            counts = [len(drawn.prompts) for drawn in self._drawn]
            self._private.advance([token for token, count in zip(tokens, counts, strict=True) for _ in range(count)])

    def _drop(self, going: list[int]) -> None:
        for session in (self._public, self._base):
            if session is not None:
                session.keep(going)
        if self._private is not None and self._plan.sampling.scheme is not Scheme.PER_TOKEN:
            slices = self._slices
            self._private.keep([row for i in going for row in range(slices[i].start, slices[i].stop)])
        self.writers = [self.writers[i] for i in going]
        self._drawn = [self._drawn[i] for i in going] if self._drawn else []
