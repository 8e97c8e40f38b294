"""Structured records outside the charged tokens: whether a schema can be written by, and how a record comes to its end.

Nothing here sees a private row: the end of a record is post-processing of its released tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mechanisms.errors import UsageError
from mechanisms.inference import Grammar, LanguageModel
from mechanisms.studio.data.record_schema import RecordSchema
from mechanisms.studio.synthesis.writer import DemonstrationWriter

REST = 256
"""Tokens of public text, at most, behind the last charged one; then a record ends as soon as its schema lets it."""


def check_schema(schema: RecordSchema, model: LanguageModel) -> None:
    """Refuse a schema that no record can be written by, before anybody has paid.

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
    """Write records to their end whose charged tokens are used up: the public row goes on alone, and greedily."""
    write_publicly(writers, model, REST, lambda writer: writer.form.stopped)
    for writer in writers:
        if not writer.form.stopped:
            writer.form.close()


def write_publicly(
    writers: Sequence[DemonstrationWriter],
    model: LanguageModel,
    most: int,
    ended: Callable[[DemonstrationWriter], bool],
) -> None:
    """Go on without any private row, greedily, until a demonstration has ended, by so many tokens at `most`."""
    going = [writer for writer in writers if not ended(writer)]
    if not going:
        return
    rows = [[*writer.prompt.cue, *writer.written] for writer in going]
    session = model.open(going[0].prompt.prefix, rows, max(map(len, rows)), most)
    for _ in range(most):
        for writer, logits in zip(going, session.logits(), strict=True):
            writer.go_on_publicly(logits)
        kept = [i for i, writer in enumerate(going) if not ended(writer)]
        if not kept:
            return
        if len(kept) < len(going):
            session.keep(kept)
            going = [going[i] for i in kept]
        session.advance([writer.written[-1] for writer in going])
