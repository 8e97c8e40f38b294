"""A hook of MkDocs: the pages that stand beside docs/ become pages of the site, and links between them hold there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from mechanisms.runs.spec import FLAGGED

_TOP = Path(__file__).parents[1]
_PAGES = {"README.md": "index.md"} | {name: name for name in ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")}
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_CODE = re.compile(r"\[([^\]]+)\]\((?!docs/|https?:|#)([^)#]+\.(?:py|csv|json|txt))\)")
"""Links to files of the program, which the site does not have: their names stay."""
_SETTINGS = "<!-- the settings of a run -->"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages beside docs/, with links as seen from inside it."""
    for name, page in _PAGES.items():
        text = _CODE.sub(r"\1", _FRONT_MATTER.sub("", (_TOP / name).read_text(encoding="utf-8")))
        text = text.replace("](research/docs/", "](research/").replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    for path in sorted((_TOP / "research/docs").glob("*.md")):
        text = path.read_text(encoding="utf-8").replace("](../../docs/", "](../")
        text = text.replace("](../../README.md", "](../index.md")
        files.append(File.generated(config, f"research/{path.name}", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to the README lead to the site's first page, links to what was measured to its pages of the site.

    The table of a run's settings is made of the spec.
    """
    rows = (f"| `--{each.flag}` | {each.group} | {each.help().replace('|', '/')} |" for each in FLAGGED)
    markdown = markdown.replace(_SETTINGS, "\n".join(["| option | group | sets |", "|---|---|---|", *rows]))
    markdown = markdown.replace("](../../research/docs/", "](../research/").replace(
        "](../research/docs/", "](research/"
    )
    markdown = markdown.replace("](../SECURITY.md", "](SECURITY.md")
    return markdown.replace("](../README.md", "](index.md").replace("](README.md", "](index.md")
