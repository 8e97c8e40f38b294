"""Gradio's insides: one file names them, and it was read against the release that is here."""

from __future__ import annotations

import ast
from importlib.metadata import version
from pathlib import Path

from dpicl_ui.frame.internals import RELEASE
from tests.conftest import ROOT

HOME = ROOT / "dpicl_ui/frame/internals.py"
INSIDES = {"fns", "blocks", "state_holder", "show_progress_on", "default_config"}
"""Attributes of a page that Gradio does not document."""


def of_gradio(path: Path) -> set[str]:
    """What a file takes from inside Gradio: its modules, and attributes of a page."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    modules = {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    modules |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return {each for each in modules if each.startswith("gradio.")} | attributes & INSIDES


def test_the_release_of_gradio_is_the_one_that_its_insides_were_read_in():
    assert version("gradio").startswith(f"{RELEASE}."), f"read {HOME.name} against this release, then change its name"


def test_one_file_names_gradios_insides():
    used = {path: found for path in [ROOT / "app.py", *(ROOT / "dpicl_ui").rglob("*.py")] if (found := of_gradio(path))}
    assert used.pop(HOME) >= {"gradio.routes", "state_holder"}
    assert used == {}
