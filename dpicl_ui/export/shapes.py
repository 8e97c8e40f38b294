"""The formats that step 5 offers: the demo set itself, and what other tools read."""

from __future__ import annotations

from dpicl_ui.frame.downloads import File
from dpicl_ui.frame.tree import Tree, el, notice
from mechanisms.demos.demo_set import FORMAT, DemoSet, to_text
from mechanisms.demos.signature import signed
from mechanisms.exports.export_format import Released, format_named, format_names, packed

DEMO_SET = "demo-set"
WITHOUT_DEMONSTRATIONS = ("certificate", "schema")
"""Formats in which the set is not kept: the next run would still replace it."""
_FILE_NAME = "demonstrations.dpicl.json"
_PURPOSE = (
    f"One JSON file ({FORMAT}): demonstrations, prompt, certificate. It holds no text, count or index of your data "
    "beyond what you declared public. Anyone can load it in step 4 and test it, without your data."
)


def shapes(made: DemoSet | None) -> list[tuple[str, str]]:
    """Titles and names; formats of records where a set has a schema."""
    others = [format_named(name) for name in format_names()]
    fitting = [each for each in others if not each.of_records or (made is not None and made.schema is not None)]
    return [("Demo set (JSON)", DEMO_SET), *((each.title, each.name) for each in fitting)]


def explained(shape: str, made: DemoSet | None) -> list[Tree]:
    """What a format is for, and what keeps this set out of it, or is lost in it."""
    if shape == DEMO_SET:
        return [el("p.muted", _PURPOSE)]
    chosen = format_named(shape)
    problem = made and (chosen.refusal(made) or chosen.caution(made))
    reading = [el("p.muted", said)] if made and (said := chosen.reading(made)) else []
    return [el("p.muted", chosen.purpose), *reading, *notice(problem or "", "warn")]


def saved(shape: str, made: DemoSet) -> File:
    """The set in a format.

    Raises:
        UsageError: there is no such format, or the set does not fit it.
    """
    text = to_text(signed(made))
    if shape == DEMO_SET:
        return File(_FILE_NAME, "application/json", text.encode())
    chosen = format_named(shape)
    return File(chosen.file_name, chosen.media_type, packed(chosen.write(Released.read(text))))
