"""Do `calibrate` and `account` answer soon, whatever they are asked? Every case in a process of its own, with a limit.

    python -m research.benchmarks.accountants run --out accountants.jsonl
    python -m research.benchmarks.accountants run --out accountants.jsonl --fresh --cases 40
    python -m research.benchmarks.accountants table accountants.jsonl

A case is an epsilon, a delta, tokens, a mechanism, a scheme and rows of a label of --size units; its noise is
calibrated, and then accounted (the mechanism's usual noise where nothing meets the target). A process is forked from
one that has imported the program; the time that a start takes is measured and counts. With --fresh each is a command
of its own. Lines are kept, and runs that were cut off go on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from mechanisms.cli.main import main as dpicl
from mechanisms.discovery import parameters
from mechanisms.sampling import Scheme
from mechanisms.steps import mechanism_class, mechanism_names
from research.commands import lines, run_and_table

LIMIT, PATIENCE = 10.0, 6.0
"""Seconds of the processor; by the clock so many times as long."""
EPSILONS = (1e-6, 1e-4, 1e-2, 1.0, 8.0, 100.0)
DELTAS = (1e-3, 1e-5, 1e-9, 1e-12, 1e-18)
TOKENS = (1, 24, 1000, 100_000)
ROWS = {"unit rows": (), "subsets": ("--per-subset", "2")}
ANSWER, SENTENCE, DEFECT, LATE = "answer", "sentence", "defect", "late"
OUTCOMES = {0: ANSWER, 2: SENTENCE, 3: SENTENCE}

Case = dict[str, Any]


def cases(size: int) -> list[Case]:
    """All of them."""
    names = [name for name in mechanism_names() if mechanism_class(name).calibrated]
    fields = ("mechanism", "scheme", "rows", "tokens", "epsilon", "delta")
    grid = product(names, [each.value for each in Scheme], ROWS, TOKENS, EPSILONS, DELTAS)
    return [dict(zip(fields, values, strict=True), size=size) for values in grid]


def plan(case: Case) -> list[str]:
    """The options of mechanism and plan."""
    named = {name: case[name] for name in ("mechanism", "scheme", "tokens", "delta", "size")}
    given = [part for name, value in named.items() for part in (f"--{name}", str(value))]
    return [*given, *ROWS[case["rows"]], "--json"]


def noise(case: Case, found: dict[str, Any] | None) -> list[str]:
    """The options of a mechanism's parameters: as they were calibrated, or as they usually are."""
    mechanism = mechanism_class(case["mechanism"])
    values = {each.flag: (found or {}).get(each.flag.replace("-", "_"), each.default) for each in parameters(mechanism)}
    return [part for flag, value in values.items() for part in (f"--{flag}", str(value))]


# A command in a process of its own. On a machine that others use too, seconds are those of the processor.


@dataclass(frozen=True)
class Start:
    """Seconds, of the processor and by the clock, that a command takes which has nothing to compute."""

    seconds: float
    wall: float


def started(arguments: Sequence[str]) -> Case:
    """What a command of its own prints, its code and its seconds."""
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([sys.executable, "-m", "mechanisms", *arguments], stdout=out, stderr=out)
        status, usage = _waited(process.pid)
        out.seek(0)
        return _found(status, usage, begun, out.read())


def forked(arguments: Sequence[str], start: Start) -> Case:
    """The same in a process that has imported the program; its start counts as it was measured."""
    begun = time.monotonic() - start.wall
    with tempfile.TemporaryFile("w+") as out:
        pid = os.fork()
        if pid == 0:
            with redirect_stdout(out), redirect_stderr(out):
                code = dpicl(list(arguments))
            out.flush()
            os._exit(code)
        status, usage = _waited(pid)
        out.seek(0)
        found = _found(status, usage, begun, out.read())
    return {**found, "seconds": round(found["seconds"] + start.seconds, 2)}


def _waited(pid: int) -> tuple[int, Any]:
    """Exit status and use of the processor of a process, which is stopped where it takes too long."""
    until = time.monotonic() + PATIENCE * LIMIT
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return status, usage
        if time.monotonic() > until or _used(pid) > LIMIT:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _used(pid: int) -> float:
    """Seconds of the processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _found(status: int, usage: Any, begun: float, text: str) -> Case:
    outcome = LATE if os.WIFSIGNALED(status) else OUTCOMES.get(os.waitstatus_to_exitcode(status), DEFECT)
    return {
        "outcome": outcome,
        "seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "wall": round(time.monotonic() - begun, 2),
        "text": text.strip(),
    }


def start_of_a_command() -> Start:
    """Measured."""
    found = started(["account", "--mechanism", "gaussian", "--delta", "1e-5", "--rate", "1"])
    return Start(found["seconds"], found["wall"])


def tried(case: Case, ran: Callable[[Sequence[str]], Case]) -> list[Case]:
    """A case's two commands."""
    calibrated = ran(["calibrate", "--epsilon", str(case["epsilon"]), *plan(case)])
    found = json.loads(calibrated["text"]) if calibrated["outcome"] == ANSWER else None
    accounted = ran(["account", *noise(case, found), *plan(case)])
    return [_line(case, "calibrate", calibrated), _line(case, "account", accounted)]


def _line(case: Case, command: str, found: Case) -> Case:
    text = found.pop("text")
    if found["outcome"] == ANSWER:
        told = json.loads(text)
        shown = {name: told[name] for name in ("epsilon_check", "remark") if name in told} | {
            "claimed": told["epsilon"]
        }
    else:
        shown = {"sentence": text} if text else {}
    late = {"outcome": LATE} if found["seconds"] > LIMIT else {}
    return {**case, "command": command, **found, **late, **shown}


def run(options: argparse.Namespace) -> None:
    """Try the cases that the file lacks."""
    known = set() if options.fresh else {_key(line) for line in lines(options.out)}
    left = [case for case in cases(options.size) if _key(case) not in known]
    random.Random(options.seed).shuffle(left)
    start = start_of_a_command()
    ran = started if options.fresh else partial(forked, start=start)
    with open(options.out, "a", encoding="utf-8") as file:
        for case in left[: options.cases]:
            file.writelines(json.dumps({**line, "fresh": options.fresh}) + "\n" for line in tried(case, ran))
            file.flush()


def _key(line: Case) -> tuple[Any, ...]:
    return tuple(line[name] for name in ("mechanism", "scheme", "rows", "tokens", "epsilon", "delta", "size"))


def table(options: argparse.Namespace) -> None:
    """Outcomes and slowest times by mechanism, scheme and rows; then the sentences, and the slowest cases."""
    found = lines(options.file)
    groups = defaultdict(list)
    for line in found:
        groups[line["mechanism"], line["scheme"], line["rows"]].append(line)
    print(f"| mechanism | scheme | rows | {ANSWER} | {SENTENCE} | {DEFECT} | {LATE} | slowest, s |")
    print("|---|---|---|---|---|---|---|---|")
    for names, of in sorted(groups.items()):
        counts = Counter(line["outcome"] for line in of)
        numbers = [str(counts[each]) for each in (ANSWER, SENTENCE, DEFECT, LATE)]
        print(f"| {' | '.join([*names, *numbers])} | {max(line['seconds'] for line in of):.1f} |")
    for sentence, count in Counter(line["sentence"] for line in found if "sentence" in line).most_common():
        print(f"\n{count}: {sentence}")
    print()
    for line in sorted(found, key=lambda each: -each["seconds"])[:10]:
        print(json.dumps(line))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser, running = run_and_table(__doc__, run, table)
    running.add_argument("--size", type=int, default=8000, help="units of the label")
    running.add_argument("--cases", type=int, help="so many, drawn at random (default: all)")
    running.add_argument("--fresh", action="store_true", help="each as a command of its own")
    running.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.act(options)
