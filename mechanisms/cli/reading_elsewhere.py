"""`query` and `evaluate` with a reader elsewhere: what may leave, what is said before it does, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.cli.comparing import compared
from mechanisms.cli.output import progress
from mechanisms.cli.scoring import about_to_score, scorecards
from mechanisms.data.sizes import owners_of
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.evaluate import PRIVATE, PUBLIC_ONLY, arms_of
from mechanisms.evaluation.reader import Arm, same_reader, without_corrections
from mechanisms.evaluation.remote_reader import (
    RemoteReader,
    read_remotely_in_words,
    refuse_set_without_promise,
)
from mechanisms.inference.models.catalogue import listed_as, load_model
from mechanisms.records import Dataset, Demonstration, Record
from mechanisms.runs.public_demonstrations import public_demonstrations

_SHARED = (
    "The test file shares rows with {names}: private rows never leave this machine. Bring rows that took no part, or "
    "read the set with a model of this machine."
)
_NO_WRITER = "its writer, {writer}, is not among the models that are listed and on this machine"
_NO_LABEL = "The answer names no label of the set, or several."


def queried_elsewhere(reader: RemoteReader, written: DemoSet, text: str) -> dict[str, Any]:
    """The label that the answer to one text names, or none.

    Raises:
        UsageError: the set promises nothing.
        ModelUnavailable: there is no answer.
    """
    [demo_set] = _about_to_send(reader, [written])
    label = reader.label(demo_set.template, demo_set.labels, Arm(PRIVATE, demo_set.demonstrations), text)
    if label is None:
        progress(_NO_LABEL)
    return {"label": label, **_models(reader, written)}


def evaluated_elsewhere(
    reader: RemoteReader, names: Sequence[str], written: Sequence[DemoSet], whole: Dataset, rows: Sequence[Record]
) -> dict[str, Any]:
    """Accuracies of one set beside its baselines, or two sets compared.

    Args:
        names: the sets' files.
        whole: the test file.
        rows: those of its rows that are read.

    Raises:
        UsageError: a set promises nothing, or rows of the test file are known here as private.
        ModelUnavailable: a row has no answer.
    """
    if owners := owners_of(fingerprint(whole), PrivacyLedger()):
        raise UsageError(_SHARED.format(names=", ".join(f"'{name}'" for name in owners)))
    sets = _about_to_send(reader, written)
    about_to_score(whole)
    if len(sets) > 1:
        return compared(names, sets, reader, rows)
    public, left_out = _public(sets[0])
    document = scorecards(reader, sets[0], arms_of(sets[0], public), rows)
    return {**_models(reader, written[0]), **document, **left_out}


def _about_to_send(reader: RemoteReader, written: Sequence[DemoSet]) -> list[DemoSet]:
    """The sets as they are read there; says what leaves."""
    for each in written:
        refuse_set_without_promise(each)
    progress(reader.leaving)
    for each in written:
        progress(read_remotely_in_words(each, reader))
    return [without_corrections(each) for each in written]


def _public(demo_set: DemoSet) -> tuple[tuple[Demonstration, ...] | None, dict[str, Any]]:
    """The set's counterpart by its own writer; or none, with the reason."""
    if not demo_set.demonstrations:
        return None, {}
    name = listed_as(demo_set.model_id)
    model = load_model(name) if name else None
    if model is not None and same_reader(demo_set, model):
        return public_demonstrations(demo_set, model), {}
    reason = _NO_WRITER.format(writer=demo_set.model_id)
    progress(f"{PUBLIC_ONLY} is left out: {reason}.")
    return None, {"left_out": {PUBLIC_ONLY: reason}}


def _models(reader: RemoteReader, written: DemoSet) -> dict[str, Any]:
    return {"written_with": written.model_id, "read_by": reader.name, "same_model": False}
