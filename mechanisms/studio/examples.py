"""The bundled example data sets: fictional, so that anybody can try the app without data of their own."""

from dataclasses import dataclass
from pathlib import Path

from mechanisms.studio.csv_file import Mapping

_FOLDER = Path(__file__).parents[2] / "assets" / "examples"


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
        _FOLDER / "clinic_messages.csv",
        Mapping("message", "department"),
        ("Message", "Department"),
    ),
    Example(
        "Bank support messages by topic (fictional)",
        _FOLDER / "bank_support.csv",
        Mapping("text", "topic"),
        ("Message", "Topic"),
    ),
)
