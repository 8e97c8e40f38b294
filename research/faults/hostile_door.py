"""A hostile client at the app's door: malformed requests, connections that hang up, and presses that fill the queue.

    python -m research.faults.hostile_door --requests 5000 --heartbeats 1200 --presses 60

A neighbour asks meanwhile, from an address of its own. Prints its slowest answer, how often the queue had no place for
it and how often for the client, the size of the log, tracebacks in it, what the process grew by, and the files that are
left after SIGTERM. `make nightly` runs it with `--hold`, which fails where a figure is out of bounds. It asks no other
server than the one it starts, at 127.0.0.1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.ui.visit import free_port, serve

BODIES = (
    b'{"data": [1' + b"0" * 400 + b', 1e-5, 100], "session_hash": "x"}',
    b'{"data": [[1], null, {"a": [null]}], "fn_index": 3, "session_hash": "y"}',
    b'{"data": ["\\ud800"], "fn_index": 5, "session_hash": "z"}',
    b'{"data": null, "fn_index": 100000, "session_hash": "w"}',
    b'{"data": [], "fn_index": "x", "session_hash": ["v"]}',
    b'{"data": [], "fn_index": -1, "event_data": {"row": null}, "session_hash": "u"}',
    b'{"data": ' + b"[" * 3000 + b"]" * 3000 + b"}",
    b'{"session_hash": 1}',
    b"\xff\xfe{",
    b"",
)
PATHS = ("queue/join", "run/calibrate", "call/calibrate", "call/classify", "cancel", "reset", "api/nothing")
PRESS = b'{"data": [1.0, 1e-5, 5000, "svt-public"]}'
"""One that takes a second or so."""
NEIGHBOUR = {"x-forwarded-for": "10.0.0.2"}
"""The server believes this machine, as a proxy on it, whom it asks for."""
SLOWEST, LARGEST_LOG, LARGEST_GROWTH = 2.0, 10**6, 10**8
"""Seconds that a neighbour may wait, bytes of the log, and bytes that the process may grow by."""


@dataclass
class Neighbour:
    """Somebody else: seconds of each answer, and how often a press found no place."""

    waits: list[float] = field(default_factory=list)
    turned_away: int = 0


@dataclass
class Found:
    """What a hostile client did to the others, and what it left.

    Attributes:
        slowest: seconds of the neighbour's slowest answer.
        answers: how many the neighbour got.
        turned_away: presses of the neighbour for which there was no place.
        refused: presses of the client for which there was none.
        log: bytes of the server's log.
        tracebacks: in the log.
        grown: bytes that the process's memory grew by, once it had answered some of each.
        left: files in the temporary folder after SIGTERM.
    """

    slowest: float
    answers: int
    turned_away: int
    refused: int
    log: int
    tracebacks: int
    grown: int
    left: list[str]

    @property
    def held(self) -> bool:
        """Whether the door held."""
        small = self.log <= LARGEST_LOG and self.grown <= LARGEST_GROWTH
        return self.slowest <= SLOWEST and small and not (self.turned_away or self.tracebacks or self.left)


def attack(requests: int, heartbeats: int, presses: int) -> Found:
    """Serve the app, be hostile to it, and end it."""
    settings = {"DPICL_MODEL": "no-such-model", "OMP_NUM_THREADS": "1", "FORWARDED_ALLOW_IPS": "127.0.0.1"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = serve(folder, port := free_port(), **settings)
        try:
            with _neighbour(port):
                malformed(port, 100)
                hang_up(port, 100)
                press(port, 2)  # the first one loads the accountants
            before = _settled(server.pid)
            with _neighbour(port) as neighbour:
                malformed(port, requests)
                hang_up(port, heartbeats)
                refused = press(port, presses)
                time.sleep(2)
            grown = _memory(server.pid) - before
        finally:
            server.terminate()
            server.wait(60)
        log = (folder / "log").read_bytes()
        left = [path.name for path in (folder / "temp").rglob("*") if path.is_file()]
        waits = neighbour.waits
        tracebacks = log.count(b"Traceback")
        return Found(max(waits), len(waits), neighbour.turned_away, refused, len(log), tracebacks, grown, left)


@contextlib.contextmanager
def _neighbour(port: int) -> Iterator[Neighbour]:
    """Somebody who looks at the page, and presses something on it, a few times a second."""
    found, done = Neighbour(), threading.Event()

    def timed(client: httpx.Client, method: str, path: str, **sent: Any) -> int:
        begun = time.monotonic()
        status = client.request(method, path, **sent).status_code
        found.waits.append(time.monotonic() - begun)
        return status

    def ask() -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=NEIGHBOUR, timeout=120) as client:
            listeners = client.get("/config").json()["dependencies"]
            [pressed] = [each["id"] for each in listeners if each["api_name"] == "check_certificate"]
            asked = {"data": ["{}"], "fn_index": pressed, "session_hash": "neighbour"}
            while not done.is_set():
                timed(client, "GET", "/gradio_api/app_id")
                found.turned_away += timed(client, "POST", "/gradio_api/queue/join", json=asked) != 200
                done.wait(0.25)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def malformed(port: int, count: int) -> None:
    """Requests that no page sends, and uploads that nobody takes."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/gradio_api/", timeout=120) as client:
        for number in range(count):
            if number % 50 == 0:
                field = random.choice(("files", "other"))
                client.post("upload", files={field: ("x.csv", b"text,label\n")})
            else:
                body = BODIES[number % len(BODIES)]
                with contextlib.suppress(httpx.TransportError):  # a refusal may close the line
                    client.post(PATHS[number % len(PATHS)], content=body, headers={"content-type": "application/json"})


def hang_up(port: int, count: int) -> None:
    """Open so many heartbeats under names that nobody has, 100 at a time, and close them."""
    for start in range(0, count, 100):
        lines = []
        for number in range(start, min(start + 100, count)):
            line = socket.create_connection(("127.0.0.1", port), timeout=120)
            line.sendall(f"GET /gradio_api/heartbeat/{number} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            lines.append(line)
        for line in lines:
            line.recv(64)
            line.close()


def press(port: int, count: int) -> int:
    """Press so often at once; gives how many were refused."""
    headers = {"content-type": "application/json"}
    limits = httpx.Limits(max_connections=None)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/gradio_api/", timeout=120, limits=limits) as client:

        def refused(number: int) -> bool:
            return client.post("call/calibrate", content=PRESS, headers=headers).status_code == 429

        with ThreadPoolExecutor(max(count, 1)) as threads:
            return sum(threads.map(refused, range(count)))


def _settled(process: int) -> int:
    """A process's memory, once it has imported what it imports in the background."""
    before, now = 0, _memory(process)
    while now > before + 2**20:
        time.sleep(5)
        before, now = now, _memory(process)
    return now


def _memory(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(status.split("VmRSS:")[1].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--heartbeats", type=int, default=1200)
    parser.add_argument("--presses", type=int, default=60)
    parser.add_argument("--hold", action="store_true", help="fail where a figure is out of bounds")
    options = parser.parse_args()
    found = attack(options.requests, options.heartbeats, options.presses)
    print(json.dumps(asdict(found), indent=1))
    if options.hold and not found.held:
        sys.exit("the door did not hold")


if __name__ == "__main__":
    main()
