"""From an update's arrival in the browser to the frame that shows it, while the model writes on the same cores.

    python -m research.benchmarks.paint [--tokens 40] [--subsets 8]

A real run token by token in a real browser, twice. The first time its own updates are watched: one arrives with the
last chunk that the page read from the app before. The second time another tab replays the first run beside it, at 15
updates a second: one arrives when it is due, however late the browser's timer is. An update is a change of the live
screen, and is painted when the second frame after the change begins. What is asked: 95 of 100 within 150 ms. Ends with
1 where it is not so. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Page

from mechanisms.data.sources import EXAMPLES
from tests.ui.visit import SLOW, Journey, plan_by_token, press, visiting

ASKED = 150.0
"""Milliseconds, of 95 in 100 updates."""
SPEED = "10"
"""Of the replay: 15 updates a second."""
_READ = """
window.arrived = 0; window.painted = [];
const read = ReadableStreamDefaultReader.prototype.read;
ReadableStreamDefaultReader.prototype.read = async function (...given) {
  const got = await read.apply(this, given);
  window.arrived = performance.now();
  return got;
};
"""
_DUE = """
window.arrived = 0; window.painted = [];
const every = window.setInterval;
window.setInterval = (call, delay, ...given) => {
  const period = Math.trunc(delay), start = performance.now();
  let last = start;
  return every(() => {
    window.arrived = last + period;
    last = start + period * Math.floor((performance.now() + 1 - start) / period);
    call(...given);
  }, delay);
};
"""
_WATCH = """() => {
  let noted = 0;
  new MutationObserver(() => {
    const arrived = window.arrived;
    if (arrived === noted) return;
    noted = arrived;
    requestAnimationFrame(() => requestAnimationFrame(now => window.painted.push([arrived, now - arrived])));
  }).observe(document.querySelector('#live'), {childList: true, subtree: true, characterData: true, attributes: true});
}"""
_ENDED = "#run-notice .notice"

Updates = list[tuple[float, float]]
"""When each arrived, and the milliseconds until it was painted."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--subsets", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        own, beside, seconds = _runs(Path(folder), options.tokens, options.subsets)
    print(f"the run took {seconds[0]:.0f} s, and {seconds[1]:.0f} s beside the replay")
    held = [_told(name, updates) for name, updates in (("its own updates", own), ("a replay beside it", beside))]
    return int(not all(held))


def _told(name: str, updates: Updates) -> bool:
    """Print how soon updates were painted; whether that is soon enough."""
    arrived, delays = np.array(updates).T
    rate = (len(arrived) - 1) / (arrived[-1] - arrived[0]) * 1000
    half, most = (float(np.quantile(delays, share)) for share in (0.5, 0.95))
    print(f"{name}: {len(delays)} updates, {rate:.1f} a second on average")
    print(f"  milliseconds to paint: median {half:.0f}, 95 of 100 within {most:.0f}, longest {delays.max():.0f}")
    return most <= ASKED


def _runs(folder: Path, tokens: int, subsets: int) -> tuple[Updates, Updates, tuple[float, float]]:
    """Updates of a run, updates of its replay beside another run, and the seconds of both runs."""
    with visiting(Journey(folder, canary="")) as page:
        page.add_init_script(_READ)
        page.reload()
        page.click(f".examples button:has-text('{EXAMPLES[0].title}')")
        page.wait_for_selector("#data-preview table")
        plan_by_token(page, subsets, tokens)
        page.evaluate(_WATCH)
        begun = time.monotonic()
        press(page, "#generate", f"#stop:enabled, {_ENDED}")
        page.wait_for_selector(_ENDED, timeout=SLOW)
        alone, own = time.monotonic() - begun, page.evaluate("window.painted")
        with page.expect_download() as download:
            page.click("#save-run")
        download.value.save_as(folder / "run.jsonl")
        other = _replaying(page, folder / "run.jsonl")
        begun = time.monotonic()
        page.click("#generate")
        page.wait_for_selector("#generate:disabled")
        while page.locator("#generate:disabled").count():
            play = other.get_by_role("button", name="Play")
            if play.count():
                play.click()
            other.wait_for_timeout(500)
        return own, other.evaluate("window.painted"), (alone, time.monotonic() - begun)


def _replaying(page: Page, run: Path) -> Page:
    """Another tab that plays a saved run, and is watched."""
    other = page.context.new_page()
    other.add_init_script(_DUE)
    other.goto(page.url)
    with other.expect_file_chooser() as chooser:
        other.click("#look-again")
    chooser.value.set_files(run)
    other.wait_for_selector("#replay .replay-range")
    other.evaluate(_WATCH)
    other.select_option("#replay .replay-speed", SPEED)
    return other


if __name__ == "__main__":
    sys.exit(main())
