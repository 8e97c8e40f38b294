"""`python -m tests.baselines write|compare [NAME...]`."""

from __future__ import annotations

import sys

from tests.baselines.cases import CASES
from tests.baselines.record import EXPECTED, compared, recorded, written


def main(verb: str = "", *names: str) -> int:
    chosen = [case for case in CASES if not names or case.name in names]
    if verb not in ("write", "compare") or len(chosen) < len(names):
        sys.stderr.write("usage: python -m tests.baselines write|compare [NAME...]\n")
        return 2
    failed = 0
    for case in chosen:
        if verb == "write":
            EXPECTED.mkdir(exist_ok=True)
            (EXPECTED / f"{case.name}.json").write_text(written(recorded(case)), encoding="utf-8")
            continue
        first = next(compared(case), None)
        failed += first is not None
        sys.stdout.write(f"{case.name}: {first or 'as it was'}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
