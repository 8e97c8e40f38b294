"""Browsers beside each other for some minutes: does every run finish or say why not, does anybody see another's rows?

    python -m research.faults.many_browsers [--browsers 8] [--minutes 10]

Each browser visits again and again: a new session, a file with a word of its own in every row, a short run token by
token, the page closed. What a page shows is searched for the words of all others, and so are the app's log and folders
at the end. The app's memory is read every second; it is compared over whole visits, from the second third of the time
on, when every visitor has been there. Ends with 1 where a run neither finished nor was refused, where a word was seen
elsewhere, or where memory grew by more than 5%.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psutil
from playwright.sync_api import Error, Page, sync_playwright

from tests.ui.visit import SLOW, Journey, browser, free_port, plan_by_token, press, serve, watch

LABELS = ("Billing", "Delivery")
ROWS, TOKENS, SUBSETS = 30, 3, 2
GROWTH = 1.05
MISSING = "no answer"


@dataclass
class Crowd:
    """What all visitors saw; `lock` guards it."""

    port: int
    until: float
    words: dict[int, str]
    answers: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    crossed: int = 0
    memory: list[tuple[float, int]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browsers", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        server = serve(place, port := free_port())
        try:
            words = {number: uuid.uuid4().hex for number in range(options.browsers)}
            crowd = Crowd(port, time.monotonic() + 60 * options.minutes, words)
            _together(crowd, place, psutil.Process(server.pid))
        finally:
            server.terminate()
            server.wait(20)
        left = _left(crowd, place)
    grown = _growth(crowd)
    print(_table(crowd, left, grown))
    return int(bool(crowd.crossed or left or grown > GROWTH or any(each.startswith(MISSING) for each in crowd.answers)))


def _together(crowd: Crowd, place: Path, app: psutil.Process) -> None:
    visitors = [threading.Thread(target=_visit_often, args=(crowd, place, number)) for number in crowd.words]
    for each in visitors:
        each.start()
    while any(each.is_alive() for each in visitors):
        with crowd.lock:
            crowd.memory.append((time.monotonic(), app.memory_info().rss))
        time.sleep(1)


def _visit_often(crowd: Crowd, place: Path, number: int) -> None:
    own = place / f"visitor-{number}"
    own.mkdir()
    table = own / "rows.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        rows = [(f"{crowd.words[number]} number {i}", label) for i in range(ROWS) for label in LABELS]
        csv.writer(file).writerows([("message", "topic"), *rows])
    with sync_playwright() as playwright:
        context = browser(playwright, own)
        while time.monotonic() < crowd.until:
            page = context.new_page()
            watch(page, Journey(own, crowd.words[number]), crowd.port)
            page.set_default_timeout(SLOW)  # eight browsers and a model share the cores
            began = time.monotonic()
            try:
                answer = _visit(page, crowd, table)
            except Error as error:
                answer = f"{MISSING}: {str(error).splitlines()[0]}"
            _note(crowd, page, number, answer, time.monotonic() - began)
            page.close()
        context.close()


def _visit(page: Page, crowd: Crowd, table: Path) -> str:
    page.goto(f"http://127.0.0.1:{crowd.port}/", timeout=SLOW)
    page.set_input_files("#upload-data input[type=file]", table, timeout=SLOW)
    page.wait_for_selector("#data-preview table", timeout=SLOW)
    page.fill("#data-name input, #data-name textarea", f"rows {uuid.uuid4().hex}")
    plan_by_token(page, SUBSETS, TOKENS)
    press(page, "#generate", "#stop:enabled, #run-notice .notice")
    page.wait_for_selector("#run-notice .notice:has-text('Done.'), #run-notice .notice.bad", timeout=SLOW)
    return page.inner_text("#run-notice .notice").split(".")[0]


def _note(crowd: Crowd, page: Page, number: int, answer: str, seconds: float) -> None:
    try:
        shown = page.content()
    except Error:
        shown = ""
    with crowd.lock:
        crowd.answers[answer] += 1
        crowd.seconds.append(seconds)
        crowd.crossed += sum(word in shown for other, word in crowd.words.items() if other != number)


def _left(crowd: Crowd, place: Path) -> int:
    """Files of the app, its log included, in which a word of anybody's rows was left."""
    files = [place / "log", *(each for name in ("home", "temp") for each in (place / name).rglob("*"))]
    held = [each.read_bytes() for each in files if each.is_file()]
    return sum(any(word.encode() in content for word in crowd.words.values()) for content in held)


def _growth(crowd: Crowd) -> float:
    """Memory of the last third over memory of the one before, as medians."""
    start, end = crowd.memory[0][0], crowd.memory[-1][0]
    thirds = [
        [rss for at, rss in crowd.memory if begin <= (at - start) / (end - start) < begin + 1 / 3 + 1e-9]
        for begin in (1 / 3, 2 / 3)
    ]
    return median(thirds[1]) / median(thirds[0])


def _by_minute(crowd: Crowd) -> list[int]:
    start = crowd.memory[0][0]
    return list({int((at - start) // 60): rss for at, rss in crowd.memory}.values())


def _table(crowd: Crowd, left: int, grown: float) -> str:
    lines = ["| answer of a run | runs |", "|---|---|"]
    lines += [f"| {answer} | {count} |" for answer, count in crowd.answers.most_common()]
    peak = max(rss for _, rss in crowd.memory) / 2**30
    lines += [
        "",
        f"seconds of a visit: median {median(crowd.seconds):.0f}, longest {max(crowd.seconds):.0f}",
        f"words seen on another's page: {crowd.crossed}; files with a word left: {left}",
        f"memory: at most {peak:.2f} GiB; last third over the one before: {grown:.3f}",
        "GiB at each minute's end: " + " ".join(f"{rss / 2**30:.2f}" for rss in _by_minute(crowd)),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
