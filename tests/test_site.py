"""The pages of docs/ as a site: every page has its place, and every link leads somewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr  # strict: a link that leads nowhere is an error
    return folder


def test_every_page_of_the_docs_is_in_the_menu(site: Path):
    menu = (site / "index.html").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    pages += [Path("research") / path.with_suffix(".html").name for path in (ROOT / "research/docs").glob("*.md")]
    assert len(pages) > 20
    wanted = [str(page).replace("README", "index") for page in pages]
    assert [page for page in wanted if f'href="{page}"' not in menu] == []
