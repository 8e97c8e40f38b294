"""`evaluate` with two sets: what tells them apart on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mechanisms import confidence
from mechanisms.cli.output import progress
from mechanisms.cli.scoring import in_json
from mechanisms.demos.demo_set import DemoSet
from mechanisms.evaluation.evaluate import AS_READ, Comparison, compare
from mechanisms.evaluation.reader import QueryReader
from mechanisms.records import Record


def compared(
    names: Sequence[str], sets: Sequence[DemoSet], reader: QueryReader, rows: Sequence[Record]
) -> dict[str, Any]:
    """The two sets in every reading, with McNemar's exact test; `names` are those of their files."""
    first, second = sets
    reading = compare(reader, first, second, rows)
    while True:
        try:
            progress(f"{next(reading)} rows read")
        except StopIteration as ended:
            found: dict[str, Comparison] = ended.value
            break
    [total] = {each.first.total for each in found.values()}
    written = dict(zip(("first", "second"), zip(names, (each.model_id for each in sets), strict=True), strict=True))
    return {
        "rows": total,
        "level": confidence.LEVEL,
        **{place: {"file": name, "written_with": writer} for place, (name, writer) in written.items()},
        "read_by": reader.name,
        **({} if AS_READ in found else _silent(*found.values())),
        **{name: _document(each) for name, each in found.items()},
    }


def _silent(read: Comparison) -> dict[str, Any]:
    """Of a reader that answers in words."""
    return {"without_answer": dict(zip(("first", "second"), read.silent, strict=True))}


def _document(each: Comparison) -> dict[str, Any]:
    return {
        "first": in_json(each.first),
        "second": in_json(each.second),
        "only_first_right": each.only_first,
        "only_second_right": each.only_second,
        "mcnemar_p": each.p_value,
    }
