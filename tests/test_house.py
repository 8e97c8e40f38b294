"""The house rules that ruff has no rule for: files are chapters, documentation wraps, what pages name is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mechanisms.steps import mechanism_names
from tests.conftest import ROOT

MOST_FILE_LINES = 700
"""A module is a chapter."""
WIDTH = 120

LONG_FILES: dict[str, str] = {}
WIDE_PAGES: dict[str, str] = {}
NO_FILES = {
    "mechanisms/steps/noisy_votes.py": "the file that CONTRIBUTING.md adds",
}
"""Each exception with its reason."""


def test_files_are_short():
    files = list(sources())
    long = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if len(path.read_text(encoding="utf-8").splitlines()) > MOST_FILE_LINES
    }
    assert len(files) > 100  # the sources were found
    assert long == set(LONG_FILES)


def test_no_circle_of_imports_is_hidden():
    hiding = [path.name for path in (ROOT / "mechanisms").rglob("*.py") if "TYPE_CHECKING" in path.read_text("utf-8")]
    assert hiding == []


def test_pages_wrap():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("assets/**/*.md")]
    pages += [*ROOT.glob("docs/**/*.md"), *ROOT.glob("research/docs/*.md")]
    wide = {
        page.relative_to(ROOT).as_posix(): lines for page in pages if (lines := wide_lines(page.read_text("utf-8")))
    }
    assert len(pages) > 10
    assert set(wide) == set(WIDE_PAGES), wide


def test_every_mechanism_is_described():
    page = (ROOT / "docs/mechanisms.md").read_text(encoding="utf-8")
    missing = [name for name in mechanism_names() if f"| `{name}` |" not in page]
    assert missing == [], "give it a line in the table of docs/mechanisms.md"
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    private = [name for name in mechanism_names() if name not in ("public", "non-private")]
    assert [name for name in private if f"`{name}`" not in changes] == [], "name it in CHANGELOG.md"


def test_what_the_pitfalls_name_is_there():
    page = (ROOT / "docs/pitfalls.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+)::(\w+)`", page)
    files = re.findall(r"`((?:mechanisms|dpicl_ui|docs)/[\w/]+\.\w+)`", page)
    assert len(named) > 40
    assert len(files) > 10
    assert len(named) == page.count("::") - 1  # all but the one that explains the form
    assert [name for name in files if not (ROOT / name).exists()] == []
    promised = re.findall(r"`([\w/]+)::(\w+)`", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
    assert len(promised) > 10
    missing = [
        f"{file}::{test}"
        for file, test in named + promised
        if not (path := ROOT / "tests" / f"{file}.py").exists() or f"def {test}(" not in path.read_text("utf-8")
    ]
    assert missing == []


def test_programs_that_pages_name_are_there():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("research/docs/*.md")]
    named = {name for page in pages for name in re.findall(r"`([\w./]+\.(?:py|js))`", page.read_text("utf-8"))}
    here = [f"/{path.relative_to(ROOT).as_posix()}" for path in programs()]
    missing = {name for name in named if not any(path.endswith(f"/{name}") for path in here)}
    assert len(named) > 50
    assert missing <= set(NO_FILES)


def test_lines_that_should_wrap_are_found():
    wide = "x" * (WIDTH + 1)
    assert wide_lines(f"{wide}\n```sh\n{wide}\n```\n| {wide} |\n\n    {wide}\n- {wide}\n") == [1, 8]
    assert wide_lines(f"---\ntitle: {wide}\n---\n{wide}\n") == [4]


def sources() -> Iterator[Path]:
    for package in ("mechanisms", "dpicl_ui"):
        yield from (ROOT / package).rglob("*.py")


def programs() -> Iterator[Path]:
    yield from ROOT.glob("*.py")
    for folder in ("mechanisms", "dpicl_ui", "research", "tests"):
        yield from (path for path in (ROOT / folder).rglob("*.*") if path.suffix in (".py", ".js"))


def wide_lines(page: str) -> list[int]:
    """Numbers of lines that should wrap: all but tables, code (fenced or indented) and front matter."""
    found, fence = [], ""
    for number, line in enumerate(page.splitlines(), 1):
        if fence:
            fence = "" if line.startswith(fence) else fence
        elif line.startswith("```") or (number == 1 and line == "---"):
            fence = line[:3]
        elif len(line) > WIDTH and not line.startswith(("|", "    ")):
            found.append(number)
    return found
