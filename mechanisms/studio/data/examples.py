"""The bundled example data sets: fictional, so that anybody can try the app without data of their own."""

from dataclasses import dataclass
from pathlib import Path

from mechanisms.bundled import bundled
from mechanisms.studio.data.csv_file import Mapping


@dataclass(frozen=True)
class Example:
    """A bundled file and how to read it."""

    title: str
    path: Path
    mapping: Mapping
    fields: tuple[str, str]
    """How prompts call the text and the label."""


EXAMPLES = (
    Example(
        "Clinic messages by department (fictional)",
        bundled("examples/clinic_messages.csv"),
        Mapping("message", "department"),
        ("Message", "Department"),
    ),
    Example(
        "Bank support messages by topic (fictional)",
        bundled("examples/bank_support.csv"),
        Mapping("text", "topic"),
        ("Message", "Topic"),
    ),
)
