"""The bundled example data sets: fictional, so that anybody can try the app without data of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mechanisms.bundled import bundled
from mechanisms.data.columns import ColumnMapping


@dataclass(frozen=True)
class Example:
    """A bundled file and how to read it."""

    title: str
    path: Path
    mapping: ColumnMapping
    fields: tuple[str, str]
    """How prompts call the text and the label."""
    test: Path | None = None
    """Other rows of the same kind, which wrote nothing."""


EXAMPLES = (
    Example(
        "Clinic messages by department (fictional)",
        bundled("examples/clinic_messages.csv"),
        ColumnMapping("message", "department", "patient"),
        ("Message", "Department"),
        bundled("examples/clinic_test.csv"),
    ),
    Example(
        "Bank support messages by topic (fictional)",
        bundled("examples/bank_support.csv"),
        ColumnMapping("text", "topic"),
        ("Message", "Topic"),
        bundled("examples/bank_test.csv"),
    ),
)


@dataclass(frozen=True)
class AnsweredExample(Example):
    """A bundled file of texts with answers, which stand in the mapping where labels do, and what a row is called."""

    kind: str = field(kw_only=True)


ANSWERED_EXAMPLES = (
    AnsweredExample(
        "Shop messages and the item that each is about (fictional)",
        bundled("examples/shop_requests.csv"),
        ColumnMapping("message", "item"),
        ("Message", "Item"),
        kind="Shop message",
    ),
)


@dataclass(frozen=True)
class RecordExample:
    """A bundled file of records, its schema, and what one of them is called."""

    title: str
    path: Path
    schema: Path
    kind: str


RECORD_EXAMPLES = (
    RecordExample(
        "Appointment requests as records (fictional)",
        bundled("examples/appointment_requests.jsonl"),
        bundled("examples/appointment_request.schema.json"),
        "Appointment request",
    ),
)
