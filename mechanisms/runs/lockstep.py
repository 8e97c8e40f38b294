"""Demonstrations written side by side, one token a step; and records after their charged tokens.

The end of a record sees no private row: it is post-processing of its released tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np

from mechanisms.data.record_schema import RecordSchema
from mechanisms.errors import UsageError
from mechanisms.evaluation.completions import Responder, answering
from mechanisms.inference import Grammar, LanguageModel, Session
from mechanisms.runs.events import WritingEvent
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.writer import DemonstrationWriter, PrivateRows
from mechanisms.sampling import Scheme

REST = 256
"""Tokens of public text, at most, behind the last charged one; then a record ends as soon as its schema lets it."""


def check_schema(schema: RecordSchema, model: LanguageModel) -> None:
    """Refuse a schema by which no record can be written, before any charge.

    Raises:
        UsageError: no record meets it, only one does, or the record written for a test is none of the schema.
    """
    grammar = Grammar(schema.text, model)
    tokens: list[int] = []
    while grammar.forced:
        tokens.append(grammar.take())
    if grammar.complete:
        raise UsageError("Only one record meets this schema: there is nothing in it that private rows could say.")
    tokens.extend(grammar.rest())
    if not schema.holds(grammar.text(tokens)):
        raise UsageError("A record written by this schema does not meet it: choose a simpler schema.")


def write_rest(writers: Sequence[DemonstrationWriter], model: LanguageModel) -> None:
    """Finish records whose charged tokens are used up, greedily and from the public row alone."""
    write_publicly(writers, model, REST, lambda writer: writer.state.stopped)
    for writer in writers:
        if not writer.state.stopped:
            writer.state.close()


def write_publicly(
    writers: Sequence[DemonstrationWriter],
    model: LanguageModel,
    most: int,
    ended: Callable[[DemonstrationWriter], bool],
) -> None:
    """Continue greedily without private rows, until each demonstration has ended or has `most` tokens more."""
    going = [writer for writer in writers if not ended(writer)]
    if not going:
        return
    rows = [[*writer.prompt.cue, *writer.written] for writer in going]
    session = model.open(going[0].prompt.prefix, rows, max(map(len, rows)), most)
    for _ in range(most):
        for writer, logits in zip(going, session.logits(), strict=True):
            writer.write_public_token(logits)
        kept = [i for i, writer in enumerate(going) if not ended(writer)]
        if not kept:
            return
        if len(kept) < len(going):
            session.keep(kept)
            going = [going[i] for i in kept]
        session.advance([writer.written[-1] for writer in going])


# Outputs that a model gives to released texts: what it answers to each without being shown any demonstration.


def _responder(request: SynthesisRequest, model: LanguageModel) -> Responder:
    assert request.outputs is not None
    return answering(model, request.template, (), request.outputs.max_tokens)


def check_answers(request: SynthesisRequest, model: LanguageModel) -> None:
    """Refuse a prompt that is too long for the model, before any charge.

    Raises:
        UsageError: see there.
    """
    _responder(request, model).check()


def write_answers(writers: Sequence[DemonstrationWriter], request: SynthesisRequest, model: LanguageModel) -> None:
    """Let the model write the outputs of demonstrations whose texts are released."""
    texts = [writer.demonstration.text for writer in writers]
    for writer, answer in zip(writers, _responder(request, model).answers(texts), strict=True):
        writer.output = answer


# Demonstrations that are written side by side: independent of each other, they share the model's batches.
#
# Which of them are still being written follows from released tokens, so the shapes of the batches stay public.

_NOBODY = PrivateRows([], np.empty(0, dtype=np.bool_), overflow=False)
_LENGTHS = 8
"""The public length of a row that grows with every token is a multiple of this."""


def groups(
    writers: Sequence[DemonstrationWriter], request: SynthesisRequest, model: LanguageModel
) -> Iterator[Sequence[DemonstrationWriter]]:
    """Groups of demonstrations to write together, each as large as a batch of the model allows.

    Raises:
        UsageError: not even one of them fits, see `LanguageModel.check`; or the schema is none to write by.
    """
    if not writers:
        return
    anew = request.plan.scheme is Scheme.PER_TOKEN
    prefix, (length, room) = writers[0].prompt.prefix, _shape(writers, request, request.room - 1 if anew else 0)
    held = len(prefix) + length + room
    most = max(_rows(writer, request) for writer in writers)
    size = max(1, model.rows_at_once(held if room == 0 else 1, held) // most)
    model.check(prefix, min(size, len(writers)) * most, length, room)
    if request.schema is not None:
        check_schema(request.schema, model)
        model.check(prefix, min(size, len(writers)), max(map(_public, writers)) + request.room, REST)
    if request.answered_by_model:
        check_answers(request, model)
    for start in range(0, len(writers), size):
        yield writers[start : start + size]


def _rows(writer: DemonstrationWriter, request: SynthesisRequest) -> int:
    return request.capacity(writer.label) if request.mechanism.uses_private_rows else 1


def _public(writer: DemonstrationWriter) -> int:
    return len(writer.prompt.cue) + len(writer.written)


def _shape(writers: Sequence[DemonstrationWriter], request: SynthesisRequest, more: int = 0) -> tuple[int, int]:
    """Positions of a private row, and tokens that are appended to it: none where every token starts anew.

    Args:
        more: positions for tokens that have yet to be written.
    """
    length = max(writer.prompt.length + len(writer.written) for writer in writers) + more
    if request.plan.scheme is not Scheme.PER_TOKEN:
        return length, request.room
    # A device prepares its kernels, and the engine compares their slots, once for every length.
    return math.ceil(length / _LENGTHS) * _LENGTHS, 0


def write_together(
    writers: Sequence[DemonstrationWriter], request: SynthesisRequest, model: LanguageModel
) -> Iterator[WritingEvent]:
    """Write demonstrations to their end; each step adds one token, charged or forced, to every one of them."""
    batch, waiting = _Batch(writers, request, model), []
    while batch.writers:
        yield from batch.release()
        for writer in (each for each in batch.writers if each.ended):
            if request.answered_by_model or (request.schema is not None and not writer.state.stopped):
                waiting.append(writer)
            else:
                yield writer.completed
        batch.go_on()
    yield from _completed(waiting, request, model)


def finish_publicly(
    writers: Sequence[DemonstrationWriter], request: SynthesisRequest, model: LanguageModel
) -> Iterator[WritingEvent]:
    """Finish demonstrations whose samples are lost: released tokens stay, and public text completes them."""
    if request.schema is None and writers:
        going = [writer for writer in writers if not writer.ended]
        write_publicly(going, model, max((writer.left for writer in going), default=0), lambda writer: writer.full)
    yield from _completed(writers, request, model)


def _completed(
    writers: Sequence[DemonstrationWriter], request: SynthesisRequest, model: LanguageModel
) -> Iterator[WritingEvent]:
    """Complete demonstrations at no cost, from released tokens alone."""
    if request.answered_by_model:
        write_answers(writers, request, model)
    elif request.schema is not None:
        write_rest(writers, model)
    yield from (writer.completed for writer in writers)


class _Batch:
    """The sessions of demonstrations in progress: public rows, rows for the base distribution, private rows."""

    def __init__(self, writers: Sequence[DemonstrationWriter], request: SynthesisRequest, model: LanguageModel) -> None:
        self.writers = list(writers)
        self._request, self._model = request, model
        rows = [[*writer.prompt.cue, *writer.written] for writer in writers]
        self._public = model.open(self._prefix, rows, max(map(len, rows)), request.room)
        self._base: Session | None = None
        if request.transform.needs_base and request.mechanism.uses_private_rows:
            # The tokens so far alone start behind a line break: a row cannot be empty.
            rows = [[*model.encode("\n"), *writer.written] for writer in writers]
            self._base = model.open([], rows, max(map(len, rows)), request.room)
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
        if not self._request.mechanism.uses_private_rows:
            return None
        # For a token that is forced nobody joins a new sample; whose token is, follows from released tokens.
        anew = self._request.plan.scheme is Scheme.PER_TOKEN
        self._drawn = [_NOBODY if anew and writer.state.forced else writer.join() for writer in self.writers]
        rows = [row for drawn in self._drawn for row in drawn.prompts]
        if not rows:
            return None
        length, room = _shape(self.writers, self._request)
        return self._model.open(self._prefix, rows, length, room)

    def release(self) -> Iterator[WritingEvent]:
        """Write one token of each demonstration, forced or drawn."""
        slices, everything = self._slices, self._public.logits()
        for i, writer in enumerate(self.writers):
            if writer.state.forced:
                writer.state.take()
                continue
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
        if self._request.plan.scheme is Scheme.PER_TOKEN:
            self._private = self._join()
        elif self._private is not None:
            counts = [len(drawn.prompts) for drawn in self._drawn]
            self._private.advance([token for token, count in zip(tokens, counts, strict=True) for _ in range(count)])

    def _drop(self, going: list[int]) -> None:
        for session in (self._public, self._base):
            if session is not None:
                session.keep(going)
        if self._private is not None and self._request.plan.scheme is not Scheme.PER_TOKEN:
            slices = self._slices
            self._private.keep([row for i in going for row in range(slices[i].start, slices[i].stop)])
        self.writers = [self.writers[i] for i in going]
        self._drawn = [self._drawn[i] for i in going] if self._drawn else []
