"""The pages of docs/ as a site: every page has its place, every link leads somewhere, and no other server is asked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.conftest import ROOT
from tests.http_server import at_work
from tests.ui.visit import browser

pytestmark = pytest.mark.slow


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr  # strict: a link that leads nowhere is an error
    return folder


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    with at_work(partial(_Silent, directory=str(site))) as port:
        yield f"http://127.0.0.1:{port}"


def test_every_page_of_the_docs_is_in_the_menu(site: Path):
    menu = (site / "index.html").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    pages += [Path("research") / path.with_suffix(".html").name for path in (ROOT / "research/docs").glob("*.md")]
    assert len(pages) > 20
    wanted = [str(page).replace("README", "index") for page in pages]
    assert [page for page in wanted if f'href="{page}"' not in menu] == []


def test_reading_and_searching_asks_no_other_server(served: str, tmp_path: Path):
    asked: list[str] = []
    with sync_playwright() as playwright:
        page = browser(playwright, tmp_path).new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{served}/tutorial.html")
        page.get_by_placeholder("Search").click()
        page.keyboard.type("sensitivity")
        page.locator(".md-search-result__item").first.wait_for()
        page.set_viewport_size({"width": 390, "height": 800})
        page.reload()
        page.wait_for_function("document.documentElement.scrollWidth <= 390")
    assert len(asked) > 5
    assert [url for url in asked if not url.startswith((served, "data:", "blob:"))] == []
