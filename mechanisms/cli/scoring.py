"""What the command line says and remembers before it prints figures of a test file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mechanisms import confidence
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.cli.output import progress
from mechanisms.data.sizes import mark_scored, owners_of
from mechanisms.demos.demo_set import DemoSet
from mechanisms.evaluation.evaluate import Accuracy, MeanRecall, Progress, Scorecard, evaluate
from mechanisms.evaluation.reader import Arm, QueryReader
from mechanisms.records import Dataset, Record

_ON_PRIVATE_ROWS = "accuracy without noise on rows of a private data set: for the curator alone"


def about_to_score(test: Dataset, file: str = "test file") -> list[str]:
    """Mark a file's rows, and tell whose private rows are among them; gives the names of those data sets.

    Args:
        test: the whole file, whichever of its rows are used.
        file: what it is called.
    """
    scored, ledger = fingerprint(test), PrivacyLedger()
    owners = owners_of(scored, ledger)
    mark_scored(scored, ledger)
    if owners:
        names = ", ".join(f"'{name}'" for name in owners)
        progress(
            f"The {file} shares rows with {names}. Its figures have no noise: they are for the curator alone, "
            "promise nothing about those rows, and every later certificate of theirs says that they were shown."
        )
    return owners


def not_private(owners: Sequence[str], *sets: str | None) -> dict[str, Any]:
    """What a document says of itself; nothing where the rows are nobody's and every set that is used is private.

    Args:
        owners: whose private rows the figures are of.
        sets: of each set why it is not private: what is computed from it follows from its rows, without noise.
    """
    reason = _ON_PRIVATE_ROWS if owners else next(filter(None, sets), None)
    return {"private": False, "reason": reason, "curator_only": True} if reason else {}


def in_json(each: Accuracy | MeanRecall) -> dict[str, Any]:
    """An accuracy with its interval."""
    return {"accuracy": round(each.value, 4), "interval": [round(bound, 4) for bound in each.interval]}


def scorecards(reader: QueryReader, demo_set: DemoSet, arms: Sequence[Arm], rows: Sequence[Record]) -> dict[str, Any]:
    """How each arm does, and how many rows were read."""
    document: dict[str, Any] = {"rows": 0, "level": confidence.LEVEL}
    for result in evaluate(reader, demo_set.template, demo_set.labels, arms, rows):
        match result:
            case Progress(done, total):
                progress(f"{done} of {total}")
            case Scorecard():
                document["rows"] = result.raw.total
                place, naming = result.majority
                document["majority"] = {"label": demo_set.labels[place]} | in_json(naming)
                document[result.name] = _readings(result, demo_set.labels)
    return document


def _readings(card: Scorecard, labels: Sequence[str]) -> dict[str, Any]:
    return {
        "raw": in_json(card.raw),
        **({"calibrated": in_json(card.calibrated)} if card.calibrated else {"without_answer": sum(card.silent)}),
        **({"prior": in_json(card.corrected)} if card.corrected else {}),
        "balanced": in_json(card.balanced),
        "recall": {label: in_json(each) for label, each in zip(labels, card.recalls, strict=True) if each},
        "confusion": {"labels": list(labels), "counts": card.confusion.tolist()},
    }
