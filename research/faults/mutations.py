"""Mutated CSV, JSON Lines, demo-set, run, schema and settings files: is every answer a result or one clear line?

    python -m research.faults.mutations [--count 20000] [--seed 1] [--keep FOLDER]

Seeds, mutations and readers are those of `tests/mutating.py`. A reader may take 2 s of processor time for a file, and
the whole process 1 GiB of address space more than it had at its start. Ends with 1 where any file broke a reader.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from pathlib import Path

import psutil

from tests.mutating import GOOD, TARGETS, outcomes

SECONDS = 2.0
ROOM = 2**30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the files that broke a reader")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["DPICL_HOME"] = home
        for kind in TARGETS:  # libraries load what they need with the first file
            outcomes(kind, 1, options.seed, 60.0)
        most = psutil.Process().memory_info().vms + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        each = options.count // len(TARGETS)
        found = {kind: outcomes(kind, each, options.seed, SECONDS, options.keep) for kind in TARGETS}
    print("| file | answer | files |\n|---|---|---|")
    for kind, answers in found.items():
        for answer, count in sorted(answers.items()):
            print(f"| {kind} | {answer} | {count} |")
    print(f"peak of memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB", file=sys.stderr)
    return 0 if all(answer in GOOD for answers in found.values() for answer in answers) else 1


if __name__ == "__main__":
    sys.exit(main())
