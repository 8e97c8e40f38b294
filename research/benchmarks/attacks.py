"""The table of research/docs/attacks.md: each attack at epsilon 1, 8 and infinity, beside planted rows.

    python -m research.benchmarks.attacks run DATA --runs 3 --out attacks.jsonl
    python -m research.benchmarks.attacks table attacks.jsonl

Every line is one call of the command line, as a curator would make it, in a data folder of its own: `synthesize` with
`gaussian` (100 expected rows, 30 tokens a demonstration; `non-private`, the mean without noise, at infinity) and then
`audit mia` on AG News and sst2 or `audit extract` on Enron's e-mails; `audit canary` on AG News; `audit run`. Lines are
kept, and a run that was cut off goes on.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.audit.extraction import PATTERNS
from mechanisms.audit.membership import NOTHING, REFERENCES, RELEASED, ROWS, WORDS
from research.benchmarks.worth import TASKS
from research.benchmarks.worth_table import cell
from research.commands import lines, run_and_table

EPSILONS = 1.0, 8.0, math.inf
ATTACKED = "agnews", "sst2"
MAIL, ADDRESS = "E-mail", PATTERNS[0].name
AUDITED = "vote", "gaussian"


def run(options: argparse.Namespace) -> None:
    data = Path(options.data)
    known = {_key(each) for each in lines(options.out)}
    for number in range(options.runs):
        for attack, on, epsilon in _cells():
            line = {"attack": attack, "on": on, "epsilon": str(epsilon), "run": number, "model": options.model}
            if _key(line) in known:
                continue
            with tempfile.TemporaryDirectory() as folder:
                found = Attack(data, Path(folder), options.model).of(attack, on, epsilon)
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(line | {"found": found}) + "\n")
            print(line, flush=True)


def _cells() -> Iterator[tuple[str, str, float]]:
    for epsilon in EPSILONS:
        yield from (("mia", task, epsilon) for task in ATTACKED)
        yield "extract", "enron_aeslc", epsilon
        yield "canary", "agnews", epsilon
    for epsilon in EPSILONS[:-1]:
        yield from (("run", name, epsilon) for name in AUDITED)


def _key(line: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(line[name] for name in ("attack", "on", "epsilon", "run", "model"))


TOKENS = ("--recipe", "tokens", "--sizes", "counted")


class Attack:
    """One attack, from private rows to its figures, in a folder of its own."""

    def __init__(self, data: Path, folder: Path, model: str) -> None:
        self._data, self._folder, self._model = data, folder, model

    def of(self, attack: str, on: str, epsilon: float) -> Any:
        if attack == "run":
            return self._told("audit", "run", on, "--epsilon", str(epsilon))
        rows, labels = self._rows(on)
        if attack == "canary":
            return self._told("audit", "canary", rows, *self._plan(labels, epsilon), "--model", self._model)
        demos = str(self._folder / "demos.json")
        self._told("synthesize", rows, *self._plan(labels, epsilon), *TOKENS, "--out", demos)
        held_out = ("--held-out", str(self._data / on / "test.csv")) if attack == "mia" else ()
        return self._told("audit", attack, rows, demos, *held_out, "--model", self._model)

    def _rows(self, on: str) -> tuple[str, Sequence[str]]:
        """The private file and its labels; e-mails are all of one kind."""
        path = self._data / on / "train.csv"
        if on in TASKS:
            return str(path), TASKS[on].labels or ()
        mails = self._folder / "mails.csv"
        with path.open(encoding="utf-8", newline="") as given, mails.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("text", "label"))
            writer.writerows((" ".join(row["text"].split()), MAIL) for row in csv.DictReader(given))
        return str(mails), (MAIL,)

    @staticmethod
    def _plan(labels: Sequence[str], epsilon: float) -> Sequence[str]:
        shots = ("--shots", "4") if len(labels) == 1 else ()
        mechanism = "gaussian" if math.isfinite(epsilon) else "non-private"  # which promises nothing, whatever is asked
        asked = str(epsilon if math.isfinite(epsilon) else 1)
        given = ("--labels", ",".join(labels), "--epsilon", asked, "--delta", "1e-5", "--mechanism", mechanism)
        return *given, "--tokens", "30", "--candidates", "50", *shots

    def _told(self, *arguments: str) -> Any:
        home = os.environ | {"DPICL_HOME": str(self._folder / "home")}
        command = [sys.executable, "-m", "mechanisms", *arguments, "--json"]
        done = subprocess.run(command, env=home, stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout)


def table(options: argparse.Namespace) -> None:
    """Means over runs, and half of their 95% interval."""
    found = list(lines(options.file))
    for attack, heads, row in (
        ("mia", ("planted: area", "area", "TPR at 1% FPR", "allowed", "area over references"), _membership),
        ("extract", ("planted: answers with an address", "answers", "standing in prompts"), _extraction),
        ("canary", ("no demonstrations: bits", "planted: bits", "bits", "most bits", "verbatim"), _canaries),
        ("run", ("proved", "guesses", "right"), _one_run),
    ):
        print(f"\n| {attack}: data, model, epsilon | runs |", " | ".join(heads), "|")
        print("|---|---|" + "---|" * len(heads))
        groups: dict[str, list[Sequence[float | None]]] = {}
        for line in (each for each in found if each["attack"] == attack):
            groups.setdefault(f"{line['on']}, {line['model']}, {line['epsilon']}", []).append(row(line["found"]))
        for key, rows in groups.items():
            print(f"| {key} | {len(rows)} |", " | ".join(cell(column) for column in zip(*rows, strict=True)), "|")


def _membership(found: Any) -> Sequence[float | None]:
    of = found[RELEASED][WORDS]
    rates = of["tpr_at_1%_fpr"], of["tpr_at_1%_fpr_allowed"]
    return found[ROWS][WORDS]["auc"], of["auc"], *rates, found[RELEASED][REFERENCES]["auc"]


def _extraction(found: Any) -> Sequence[float | None]:
    of = found[RELEASED][ADDRESS]
    return found[ROWS][ADDRESS]["answers_with_private_item"], of["answers_with_private_item"], of["standing_in_prompts"]


def _canaries(found: Any) -> Sequence[float | None]:
    none, planted, of = (found[shown] for shown in (NOTHING, ROWS, RELEASED))
    bits = [float(np.mean(each["exposure_bits"])) for each in (none, planted, of)]
    return *bits, of["most_bits"], of["verbatim"]


def _one_run(found: Any) -> Sequence[float | None]:
    return found["epsilon_lower_bound"], found["guesses"], found["correct"]


def main() -> None:
    parser, one = run_and_table(__doc__, run, table)
    one.add_argument("data")
    one.add_argument("--model", default="embedded")
    one.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
