"""Processes that are killed (SIGKILL) at random moments of runs, answers and votes: what does the ledger hold then?

    python -m research.faults.kills [--kills 200] [--seed 1]

Runs and votes are then gone on with, killed once more, and gone on with to their end. The work and the checks are those
of `tests/killing.py`; the first check that fails ends the benchmark. It prints at which moments the kills came,
and how runs and votes went on. A kill ends a process, not the machine: what a loss of power leaves rests on SQLite's
`synchronous=FULL` and on the disk.
"""

from __future__ import annotations

import argparse

from tests.killing import ENDS, MOMENTS, WORK, kill


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the moments; the noise has none")
    options = parser.parse_args()
    found = kill(options.kills, options.seed)
    for title, columns in (("killed", MOMENTS), ("then", ENDS)):
        print(f"| {title} | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
        for kind in WORK:
            print(f"| {kind} | {' | '.join(str(found[kind, column]) for column in columns)} |")


if __name__ == "__main__":
    main()
