"""A hostile client at the app's door: malformed requests and connections that hang up, beside a neighbour who asks.

    python -m benchmarks.hostile_door --requests 5000 --heartbeats 1200

Prints the neighbour's slowest answer, the size of the log, tracebacks in it, what the process grew by, and the files
that are left after SIGTERM. `make nightly` runs it with `--hold`, which fails where a figure is out of bounds.
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
from dataclasses import asdict, dataclass
from pathlib import Path

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


SLOWEST, LARGEST_LOG = 2.0, 10**6
"""Seconds that a neighbour may wait, and bytes of the log."""


@dataclass
class Found:
    """What a hostile client did to the others, and what it left.

    Attributes:
        slowest: seconds of the neighbour's slowest answer.
        answers: how many the neighbour got.
        log: bytes of the server's log.
        tracebacks: in the log.
        grown: bytes that the process's memory grew by.
        left: files in the temporary folder after SIGTERM.
    """

    slowest: float
    answers: int
    log: int
    tracebacks: int
    grown: int
    left: list[str]

    @property
    def held(self) -> bool:
        """Whether the door held."""
        return self.slowest <= SLOWEST and self.log <= LARGEST_LOG and not self.tracebacks and not self.left


def attack(requests: int, heartbeats: int) -> Found:
    """Serve the app, be hostile to it, and end it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = serve(folder, port := free_port(), DPICL_MODEL="no-such-model", OMP_NUM_THREADS="1")
        try:
            before = _memory(server.pid)
            with _neighbour(port) as waits:
                malformed(port, requests)
                hang_up(port, heartbeats)
                time.sleep(2)
            grown = _memory(server.pid) - before
        finally:
            server.terminate()
            server.wait(60)
        log = (folder / "log").read_bytes()
        left = [path.name for path in (folder / "temp").rglob("*") if path.is_file()]
        return Found(max(waits), len(waits), len(log), log.count(b"Traceback"), grown, left)


@contextlib.contextmanager
def _neighbour(port: int) -> Iterator[list[float]]:
    """Somebody who looks at the page ten times a second; gives the waits."""
    waits, done = list[float](), threading.Event()

    def look() -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            while not done.is_set():
                begun = time.monotonic()
                client.get("/gradio_api/app_id").raise_for_status()
                waits.append(time.monotonic() - begun)
                done.wait(0.1)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield waits
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


def _memory(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(status.split("VmRSS:")[1].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--heartbeats", type=int, default=1200)
    parser.add_argument("--hold", action="store_true", help="fail where a figure is out of bounds")
    options = parser.parse_args()
    found = attack(options.requests, options.heartbeats)
    print(json.dumps(asdict(found), indent=1))
    if options.hold and not found.held:
        sys.exit("the door did not hold")


if __name__ == "__main__":
    main()
