"""A short run alone, beside one busy process, and beside three: how much longer it takes when cores are shared.

    python -m research.benchmarks.busy_neighbours [ROUNDS]

A run is the command `synthesize`: two demonstrations of 12 tokens from the bundled messages, in a process of its own.
Busy processes count in a loop. Settings and neighbours take turns in every round, so that a machine that slows down
slows all of them; the table has medians, and their ratio to the median of the number that stays, alone. Only a machine
with nothing else to do gives figures worth keeping: each run tells how many cores strangers used meanwhile, which are
processes that are none of this benchmark.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from statistics import median

import psutil

from mechanisms.data.sources import EXAMPLES
from mechanisms.inference.engine.threads import seconds_of_other_processes

NEIGHBOURS = (0, 1, 3)
AT_MOST = {0: 1.1, 1: 1.6, 3: 3.0}
"""What is asked of the number that follows the load."""
OPTIONS = (
    "--text-column message --label-column department --labels Cardiology,Dermatology --sizes counted --epsilon 4 "
    "--delta 1e-5 --recipe tokens --tokens 12 --candidates 50 --shots-per-label 1"
)
SETTINGS = ("DPICL_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
"""What a run does not inherit."""
FOLLOWS, STAYS, ONE = "follows the load", "stays (as before)", "one thread"


@dataclass(frozen=True)
class Run:
    """Seconds of a run, and cores that strangers used meanwhile."""

    seconds: float
    strangers: float


def settings() -> dict[str, dict[str, str]]:
    """Environments of the runs."""
    cores = str(psutil.cpu_count(logical=False) or 1)
    return {
        FOLLOWS: {},
        STAYS: {"DPICL_THREADS": cores},
        ONE: {"DPICL_THREADS": "1"},
    }


@contextmanager
def neighbours(count: int) -> Iterator[list[psutil.Process]]:
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield [psutil.Process(each.pid) for each in started]
    finally:
        for each in started:
            each.kill()
            each.wait()


def run(environment: dict[str, str], busy: int) -> Run:
    inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    line = [sys.executable, "-m", "mechanisms", "synthesize", str(EXAMPLES[0].path), *OPTIONS.split()]
    with tempfile.TemporaryDirectory() as folder, neighbours(busy) as beside:
        before, begun = used(beside), time.perf_counter()
        subprocess.run(line, check=True, capture_output=True, env={**inherited, **environment, "DPICL_HOME": folder})
        seconds = time.perf_counter() - begun
        return Run(seconds, (used(beside) - before) / seconds)


def used(busy: list[psutil.Process]) -> float:
    """Seconds that went neither to this process, nor to a run (a child that has ended), nor to a busy neighbour."""
    runs = psutil.Process().cpu_times()
    ours = [runs.children_user, runs.children_system]
    ours += [sum(each.cpu_times()[:2]) for each in busy]
    return float(seconds_of_other_processes() - sum(ours))


def main(rounds: int) -> None:
    found: dict[tuple[str, int], list[Run]] = defaultdict(list)
    for number in range(rounds):
        for count, (name, environment) in product(NEIGHBOURS, settings().items()):
            result = run(environment, count)
            found[name, count].append(result)
            told = f"{result.seconds:.1f} s; strangers {result.strangers:.2f} cores"
            print(f"round {number + 1}: {count} busy, {name}: {told}", file=sys.stderr)
    alone = median(each.seconds for each in found[STAYS, 0])
    print("| busy processes | threads | s, median (range) | times alone, as before | asked |\n|---|---|---|---|---|")
    for count, name in product(NEIGHBOURS, settings()):
        seconds = sorted(each.seconds for each in found[name, count])
        middle = median(seconds)
        asked = f"<= {AT_MOST[count]:g}" if name == FOLLOWS else ""
        print(
            f"| {count} | {name} | {middle:.1f} ({seconds[0]:.1f}-{seconds[-1]:.1f}) | {middle / alone:.2f} | {asked} |"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 5)
