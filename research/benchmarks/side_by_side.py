"""One demonstration set a mechanism on AG News, side by side: writes docs/results/side_by_side.md.

    python -m research.benchmarks.side_by_side TRAIN.csv TEST.csv

Takes about 20 minutes on 2 cores. Every row of the tables is one `synthesize` and one `evaluate` command, shown.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

EPSILONS = (1, 8)
LIMIT = 100
COMMON = (
    "--labels World,Sports,Business,Technology --sizes counted --delta 1e-5 --recipe tokens --tokens 24 --subsets 100 "
    "--candidates 50 "
    "--text-field Article --label-field Topic"
)
INSTRUCTION = "Classify the news articles into the categories of World, Sports, Business, and Technology."
MECHANISMS = {
    "gaussian": "--mechanism gaussian",
    "gaussian behind pta": "--mechanism gaussian --transform pta",
    "noisy-max": "--mechanism noisy-max",
    "adadpsyn": "--mechanism adadpsyn",
    "blended-logits": "--mechanism blended-logits",
    "difference-clipping": "--mechanism difference-clipping",
}
OUT = Path(__file__).parents[2] / "docs" / "results" / "side_by_side.md"


def run(line: list[str]) -> Any:
    from mechanisms.cli.main import main

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main([*line, "--json"])
    if code:
        raise SystemExit(f"exit code {code}: {' '.join(line)}")
    return json.loads(printed.getvalue())


def section(epsilon: int, train: str, test: str, folder: Path) -> str:
    lines = [f"## Epsilon {epsilon}\n"]
    scores = []
    for number, (name, options) in enumerate(MECHANISMS.items()):
        demos = str(folder / f"{epsilon}-{number}.json")
        line = f"synthesize {train} {COMMON} {options} --epsilon {epsilon} --name side-{epsilon}-{number} --out {demos}"
        document = run([*line.split(), "--instruction", INSTRUCTION])
        report = run(f"evaluate {demos} --test {test} --limit {LIMIT}".split())
        scores.append((name, report))
        lines += [
            f"### {name}\n",
            f"Claimed epsilon {document['privacy']['epsilon']:.3f}, scheme {document['privacy']['scheme']}:\n",
            f"    synthesize agnews/train.csv {COMMON} {options} --epsilon {epsilon}\n",
            "| label | demonstration |\n|---|---|",
        ]
        lines += [f"| {d['label']} | {d['text'].replace('|', ' ')} |" for d in document["demonstrations"]]
        lines.append("")
        print(f"epsilon {epsilon}: {name} done", file=sys.stderr)
    lines.append(f"Accuracy on {LIMIT} test rows, raw / calibrated, with the calibrated 95% interval:\n")
    lines.append("| demonstrations | raw | calibrated | interval |\n|---|---|---|---|")
    arms = [("zero-shot", scores[0][1]["zero-shot"]), ("public-only", scores[0][1]["public-only"])]
    arms += [(name, report["private demonstrations"]) for name, report in scores]
    for name, card in arms:
        low, high = card["calibrated"]["interval"]
        raw, calibrated = card["raw"]["accuracy"], card["calibrated"]["accuracy"]
        lines.append(f"| {name} | {raw:.3f} | {calibrated:.3f} | {low:.3f} to {high:.3f} |")
    return "\n".join([*lines, ""])


def main() -> None:
    train, test = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DPICL_HOME"] = folder
        sections = [section(epsilon, train, test, Path(folder)) for epsilon in EPSILONS]
    OUT.write_text(
        "# One demonstration set a mechanism, side by side\n\n"
        "AG News (2,000 training rows a label, counts declared public), SmolLM2-135M-Instruct, one demonstration a\n"
        "label of 24 tokens, 100 expected unit rows, delta 1e-5. One draw each: read the intervals, not the digits.\n"
        "Made by `python -m research.benchmarks.side_by_side agnews/train.csv agnews/test.csv`.\n\n"
        + "\n".join(sections),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
