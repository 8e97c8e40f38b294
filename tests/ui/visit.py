"""The real app in a real browser, and what was seen and left there; and how a page is for whoever cannot see it."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Playwright, TimeoutError, sync_playwright

from mechanisms.demos.demo_set import DemoSet, loads
from tests.small_model import small_model

ROOT = Path(__file__).parents[2]
CHROMIUM = Path("/usr/bin/chromium")
HEADED = "DPICL_HEADED" in os.environ
"""Show the browser, for whoever looks for a failure."""
TRACES = os.environ.get("DPICL_TRACES")
"""A folder in which every visit leaves its trace: actions, pictures, console, network."""
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = "<img src=x onerror='window.hacked=1'> ${window.hacked=2} {{window.hacked}} `+(window.hacked=3)+`"
SLOW = 900_000
"""Milliseconds for what the model does, on a machine that others use too."""
PATIENCE = 120_000
"""The same for everything else."""


@dataclass
class Journey:
    """What the journey saw and left."""

    folder: Path
    canary: str
    export: str = ""
    run: Path = Path()
    console: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    tokens_seen: list[str] = field(default_factory=list)
    shown: dict[str, str] = field(default_factory=dict)
    spent: list[float] = field(default_factory=list)
    storage: str = ""
    overflow: dict[str, int] = field(default_factory=dict)
    inaccessible: list[str] = field(default_factory=list)
    hacked: object = None

    def files(self, *names: str) -> Iterator[Path]:
        for name in names:
            yield from (path for path in (self.folder / name).rglob("*") if path.is_file())

    @property
    def demo_set(self) -> DemoSet:
        return loads(self.export)


@contextmanager
def visiting(seen: Journey, locale: str = "en-US", **settings: str) -> Iterator[Page]:
    """The app's first page, served from `seen.folder`; the app ends with the visit."""
    with serving(seen.folder, **settings) as port, sync_playwright() as playwright:
        context = browser(playwright, seen.folder, locale)
        page = context.pages[0]
        watch(page, seen, port)
        with traced(context, seen.folder.name):
            page.goto(f"http://127.0.0.1:{port}/")
            yield page
        context.close()


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[int]:
    """The port of an app that is served from a folder for as long as the block lasts."""
    server = serve(folder, port := free_port(), **settings)
    try:
        yield port
    finally:
        server.terminate()
        server.wait(SLOW / 1000)


def free_port() -> int:
    """One below those that the system gives to whoever asks for any, while the app is still starting."""
    while True:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def serve(folder: Path, port: int, **settings: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "DPICL_HOME": str(folder / "home"),
        "TMPDIR": str(folder / "temp"),
        "GRADIO_TEMP_DIR": str(folder / "temp" / "gradio"),
        "PORT": str(port),
        "HOST": "127.0.0.1",
        "DPICL_MODEL": small_model(),
        **settings,
    }
    (folder / "temp").mkdir()
    with (folder / "log").open("wb") as log:
        started = ["app.py"] if "DPICL_MODEL" in settings else ["-m", "tests.ui.any_text"]
        server = subprocess.Popen([sys.executable, *started], cwd=ROOT, env=environment, stdout=log, stderr=log)
    # A cold disk and a full memory made the imports alone take over half a minute once.
    until = time.monotonic() + SLOW / 1000
    while server.poll() is None and time.monotonic() < until:
        try:
            with urlopen(f"http://127.0.0.1:{port}/", timeout=5):
                return server
        except OSError:
            time.sleep(0.25)
    server.kill()
    server.wait()
    raise RuntimeError(f"the app does not answer: {(folder / 'log').read_text()}")


def browser(playwright: Playwright, folder: Path, locale: str = "en-US") -> BrowserContext:
    context = playwright.chromium.launch_persistent_context(
        folder / "profile",
        executable_path=CHROMIUM if CHROMIUM.exists() else None,
        args=ARGUMENTS,
        headless=not HEADED,
        locale=locale,  # Gradio's own words follow the browser's language
        viewport={"width": 1280, "height": 900},
    )
    context.set_default_timeout(PATIENCE)
    return context


@contextmanager
def traced(context: BrowserContext, name: str) -> Iterator[None]:
    if TRACES is None:
        yield
        return
    context.tracing.start(screenshots=True, snapshots=True)
    try:
        yield
    finally:
        context.tracing.stop(path=Path(TRACES) / f"{name}.zip")


def watch(page: Page, seen: Journey, port: int) -> None:
    def heard(message: ConsoleMessage) -> None:
        if message.type == "error":
            seen.console.append(message.text)

    page.set_default_timeout(PATIENCE)
    page.on("console", heard)
    page.on("pageerror", lambda error: seen.console.append(str(error)))
    home = (f"http://127.0.0.1:{port}/", "data:", "blob:")
    page.on("request", lambda request: None if request.url.startswith(home) else seen.foreign.append(request.url))


def port_of(page: Page) -> int:
    return urlsplit(page.url).port or 80


def press(page: Page, button: str, shown: str) -> None:
    """Click until something is shown: Gradio drops a click while the handler of the one before is still ending."""
    until = time.monotonic() + SLOW / 1000
    while page.locator(shown).filter(visible=True).count() == 0:
        assert time.monotonic() < until, f"{button} was clicked, and {shown} never came"
        if page.locator(f"{button}:enabled").is_visible():
            with suppress(TimeoutError):  # the click before has begun at last
                page.click(f"{button}:enabled", timeout=2000)
        with suppress(TimeoutError):
            page.locator(shown).filter(visible=True).first.wait_for(timeout=1000)


def plan_by_token(page: Page, subsets: int, tokens: int) -> None:
    """From the columns of step 1 to step 3, with a short run token by token."""
    confirm_data(page)
    by_token(page, subsets=subsets, tokens=tokens)
    step(page, 3)


def confirm_data(page: Page) -> None:
    """Declare what becomes public, and wait for the first plan and its picture."""
    page.check("#declared-public input")
    press(page, "#confirm-data", "#step-2.current")
    page.wait_for_selector("#outcome .guarantee", timeout=SLOW)
    page.wait_for_selector("#noise .live-legend", timeout=SLOW)


def by_token(page: Page, **settings: int) -> None:
    """Plan a run that only writes token by token, with one demonstration a label."""
    page.click("button:has-text('For experts')")
    page.click("#recipe label:has-text('no score')")
    for name, value in {"shots": 1, **settings}.items():
        fill(page, name, value)
    planned(page)


def fill(page: Page, name: str, value: float) -> None:
    """Type a number into a setting of step 2, and leave its field."""
    field = page.locator(
        f"#{name.replace('_', '-')} input[type=number], #{name} textarea, #{name} input[type=text]"
    ).first
    field.fill(str(value))
    field.press("Tab")


def planned(page: Page) -> None:
    """Wait until what was typed last is calibrated."""
    page.wait_for_timeout(500)
    page.wait_for_selector("#steps .stepper:nth-child(3):not(.shut)", timeout=SLOW)
    page.wait_for_selector("#outcome .guarantee", timeout=SLOW)


def step(page: Page, number: int) -> None:
    page.click(f"#steps .stepper:nth-child({number})")
    page.wait_for_selector(f"#step-{number}.current")


# Looks at a page for whoever cannot see it, or uses it by keys, or on a small phone.

_TABBABLE = """() => [...document.querySelectorAll(
    'button, input, select, textarea, summary, a[href], [tabindex]:not([tabindex="-1"])')].filter((each) =>
  each.tabIndex >= 0 && !each.disabled && each.checkVisibility({visibilityProperty: true, opacityProperty: true})
  && each.getClientRects().length && (each.type !== 'radio' || each.checked))"""
_FOCUSED = """() => {
  const now = document.activeElement, style = getComputedStyle(now);
  window.reached.add(now);
  const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
  return now === document.body || seen ? '' : now.outerHTML.slice(0, 200); }"""
_BEYOND = """() => [...document.querySelectorAll('#steps .title')].filter((title) => {
  const words = document.createRange();
  words.selectNodeContents(title);
  const [inner, outer] = [words, title.parentElement].map((each) => each.getBoundingClientRect());
  return inner.left < outer.left + 1 || inner.right > outer.right - 1;
}).map((title) => title.textContent)"""
_MOVING = """() => document.getAnimations().filter((each) => each.playState === 'running').map((each) =>
  `moves: ${each.animationName} of ${each.effect.target.outerHTML.slice(0, 120)}`)"""


def findings(page: Page) -> list[str]:
    """What axe-core finds wrong on the page as it is, in the light and in the dark theme, of any severity.

    Motion is reduced meanwhile: a colour on its way to another is none that can be judged. A list that has just been
    left takes a moment to close.
    """
    page.wait_for_timeout(300)
    page.emulate_media(reduced_motion="reduce")
    found: list[str] = page.evaluate(_MOVING)
    for dark in (False, True):
        page.evaluate("(dark) => document.body.classList.toggle('dark', dark)", dark)
        for rule in Axe().run(page).response["violations"]:
            found += [f"{rule['id']} ({'dark' if dark else 'light'}): {node['html'][:200]}" for node in rule["nodes"]]
    page.evaluate("() => document.body.classList.remove('dark')")
    page.emulate_media(reduced_motion="no-preference")
    return found


def by_keys(page: Page) -> list[str]:
    """Controls that the tab key does not reach from the page's beginning, or reaches without a mark to be seen."""
    page.evaluate(f"""() => {{ window.reached = new Set(); window.expected = ({_TABBABLE})();
      document.activeElement.blur(); document.body.tabIndex = -1; document.body.focus(); }}""")
    unmarked = []
    for _ in range(3 * page.evaluate("window.expected.length") + 5):  # what scrolls, and each radio button, too
        page.keyboard.press("Tab")
        unmarked.append(page.evaluate(_FOCUSED))
        if page.evaluate("window.expected.every((each) => !each.isConnected || window.reached.has(each))"):
            break
    missed = page.evaluate(
        "window.expected.filter((each) => each.isConnected && !window.reached.has(each))"
        ".map((each) => each.outerHTML.slice(0, 200))"
    )
    return [f"no mark: {each}" for each in unmarked if each] + [f"not reached: {each}" for each in missed]


def beyond_their_boxes(page: Page) -> list[str]:
    """Words of the step bar that reach over the edge of their button."""
    found: list[str] = page.evaluate(_BEYOND)
    return found
