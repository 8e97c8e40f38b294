"""How soon and in how much memory a large CSV starts to generate: 1,000,000 rows, about 200 MB.

    python -m research.benchmarks.large_file [ROWS]

Writes a synthetic file into a temporary folder, removed afterwards: 4 labels, 333,333 users, accents, CJK, emoji,
quoted cells of several lines, and hostile cells. Two processes of their own, so that each has its own peak of memory:
every phase of the data path alone, and the command `synthesize` until its first token is released.
"""

from __future__ import annotations

import csv
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LABELS = ("World", "Sports", "Business", "Technology")
WORDS = [
    "the", "market", "court", "team", "season", "science", "déjà", "café", "naïve", "Zürich", "crème", "government",
    "reported", "network", "energy", "coach", "“quoted”", "player’s", "–", "update", "research", "minister", "company",
]  # fmt: skip
HOSTILE = (
    "日本経済", "Привет мир", "🎉🚀", "=cmd|' /C calc'!A0", "<script>alert(1)</script>", 'he said "no"', "two\nlines",
    "a;b|c\td", "\u202eabc", "NA", "'; DROP TABLE x; --", "\r\n\r\n", "\u200b", "x" * 2000,
)  # fmt: skip
OPTIONS = (
    "--labels World,Sports,Business,Technology --sizes counted --epsilon 1 --delta 1e-7 "
    "--recipe tokens --tokens 30 --candidates 50"
)


def write_csv(path: Path, rows: int) -> None:
    """Every fourth row has a hostile piece of text; every second one is plain ASCII, as in most files."""
    draw = random.Random(1)
    sentences = [" ".join(draw.choices(WORDS, k=26)) for _ in range(5000)]
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "label", "user"])
        for i in range(rows):
            text = f"{draw.choice(sentences)} {i} {draw.choice(HOSTILE) if i % 4 == 0 else ''}"
            if i % 2:
                text = text.encode("ascii", "ignore").decode()
            table.writerow([text, draw.choice(LABELS), f"u{draw.randrange(max(1, rows // 3))}"])


def first_token(path: str, started: float) -> None:
    """The command itself; ends the process at the first token."""
    from mechanisms.cli import main as command
    from mechanisms.cli import synthesize
    from mechanisms.inference.engine.transformers_model import TransformersModel
    from mechanisms.runs import writer
    from mechanisms.runs.request import SynthesisRequest

    print(f"interpreter and imports: {time.time() - started:.2f} s; {peak()}", flush=True)
    for owner, name in (
        (synthesize, "read_table"),
        (synthesize, "to_dataset"),
        (synthesize, "fingerprint"),
        (SynthesisRequest, "calibrated"),
        (TransformersModel, "open"),
    ):
        setattr(owner, name, shown(name, getattr(owner, name)))

    def released(**named):
        print(f"process start to first token: {time.time() - started:.1f} s; {peak()}", flush=True)
        os._exit(0)

    writer.TokenReleased = released
    raise SystemExit(command.main(["synthesize", path, *OPTIONS.split()]))


def shown(name, work):
    return lambda *values, **named: timed(f"  {name}", lambda: work(*values, **named))


def phases(path: str, started: float) -> None:
    """The data path alone, as the app walks it."""
    from mechanisms.accounting import fingerprint
    from mechanisms.data.columns import ColumnMapping, inspect, to_dataset
    from mechanisms.data.sources import read_table

    table = timed("read_table", lambda: read_table(Path(path)))
    for name, user in (("record", None), ("user", "user")):
        mapping = ColumnMapping("text", "label", user)
        timed(f"inspect, unit is the {name}", lambda m=mapping: inspect(table, m))
        dataset = timed("  to_dataset", lambda m=mapping: to_dataset(table, m, "large", LABELS))
        timed("  counted_sizes", dataset.counted_sizes)
        timed("  fingerprint", lambda d=dataset: fingerprint(d))
    print(f"all phases: {time.time() - started:.1f} s; {peak()}")


def timed(name, work):
    begun = time.perf_counter()
    result = work()
    print(f"{name}: {time.perf_counter() - begun:.2f} s; {peak()}", flush=True)
    return result


def peak() -> str:
    return f"peak RSS {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.csv"
        write_csv(path, rows)
        print(f"{rows:,} rows, {path.stat().st_size:,} bytes; load of the machine {os.getloadavg()[0]:.1f}", flush=True)
        for task in ("phases", "first_token"):
            line = [sys.executable, "-m", "research.benchmarks.large_file", task, str(path), str(time.time())]
            subprocess.run(line, check=True, env={**os.environ, "DPICL_HOME": folder})


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["first_token", path, started]:
            first_token(path, float(started))
        case ["phases", path, started]:
            phases(path, float(started))
        case rest:
            main(int(rest[0]) if rest else 1_000_000)
