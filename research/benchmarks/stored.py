"""Real label log-probabilities under the sets that recipes make, read once and stored, for research.benchmarks.planner.

    python -m research.benchmarks.stored DATA FOLDER agnews sst2 trec --repeats 2

A repeat writes fresh drafts, lets private rows vote as the proposed recipe does at epsilon 1, and keeps the sets that
then compete. The model reads the same private and public rows under each of them. One file a set, so that a reading
that was cut off goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mechanisms.accounting import PrivacyLedger
from mechanisms.inference.models.catalogue import load_model
from mechanisms.noise import Floats, Integers
from mechanisms.records import Demonstration, default_template
from mechanisms.runs.events import CandidateSet, SetsMade
from mechanisms.runs.judging import Reader
from mechanisms.runs.recipe import Kind
from mechanisms.runs.run import synthesize
from research.benchmarks.worth import TASKS, Bench

EPSILON = 1.0
"""Of the recipe whose rows vote."""


@dataclass(frozen=True)
class Rows:
    """What the model makes of rows: log-probabilities, shape (sets, rows, labels), and each row's label."""

    scores: Floats
    truth: Integers


@dataclass(frozen=True)
class Stored:
    """One task and one repeat.

    Attributes:
        sets: that compete, in a public order.
        contextual: what contextual calibration adds under each, shape (sets, labels).
        private: rows that calibrate, choose and score are drawn from.
        test: public rows, read for the truth alone.
    """

    task: str
    labels: tuple[str, ...]
    sets: tuple[CandidateSet, ...]
    contextual: Floats
    private: Rows
    test: Rows


def read(options: argparse.Namespace) -> None:
    os.environ["DPICL_HOME"] = tempfile.mkdtemp()
    model, folder = load_model(options.model), Path(options.folder)
    folder.mkdir(exist_ok=True)
    for repeat in range(options.repeats):
        for name in options.tasks:
            bench = Bench(Path(options.data), name, model, options.tests, None)
            place = folder / f"{name}-{repeat}.json"
            if not place.exists():
                place.write_text(json.dumps(_to_json(made(bench))), encoding="utf-8")
            for candidate in sets_of(place):
                read_set(bench, candidate, folder, options.rows)


def made(bench: Bench) -> Sequence[CandidateSet]:
    """The sets of a new run, which is then stopped."""
    request = bench.request(EPSILON, Kind.VOTE)
    for event in synthesize(bench.dataset, request, bench.model, PrivacyLedger(), embedder=bench.embedder):
        if isinstance(event, SetsMade):
            return event.sets
    raise AssertionError("a recipe that chooses makes sets")


def read_set(bench: Bench, candidate: CandidateSet, folder: Path, rows: int) -> None:
    place = _scores_of(folder, bench.dataset.name, candidate)
    if place.exists():
        return
    started = time.perf_counter()
    private = random.Random(2).sample(list(bench.dataset.records), rows)  # the same under every set
    classifier = Reader(bench.model, bench.labels, bench.task.tokens).under(candidate)
    np.savez(
        place,
        contextual=classifier.contextual,
        private=classifier.log_probabilities([each.text for each in private]),
        test=classifier.log_probabilities([each.text for each in bench.test]),
        private_truth=bench.truth(private),
        test_truth=bench.truth(bench.test),
    )
    print(f"{bench.dataset.name}, {candidate.name}: {time.perf_counter() - started:.0f} s", flush=True)


def _to_json(sets: Sequence[CandidateSet]) -> list[object]:
    return [[each.name, each.template.text, [[d.label, d.text] for d in each.demonstrations]] for each in sets]


def sets_of(place: Path) -> tuple[CandidateSet, ...]:
    """The sets of a repeat, FOLDER/TASK-REPEAT.json."""
    task = TASKS[place.stem.rsplit("-", 1)[0]]
    assert task.labels is not None
    own, plain = default_template(task.labels, task.text, task.label), default_template(task.labels)
    words = {own.text: own, plain.text: plain}
    return tuple(
        CandidateSet(name, tuple(Demonstration(text, label) for label, text in demonstrations), words[text])
        for name, text, demonstrations in json.loads(place.read_text(encoding="utf-8"))
    )


def _scores_of(folder: Path, task: str, candidate: CandidateSet) -> Path:
    """Sets of one prompt share a file: those without demonstrations are the same in all repeats."""
    prompt = json.dumps(_to_json([candidate])[0])
    return folder / f"{task}-{hashlib.sha256(prompt.encode()).hexdigest()[:12]}.npz"


def all_stored(folder: Path) -> Iterator[Stored]:
    """The repeats that have been read to their end, task by task."""
    for place in sorted(folder.glob("*.json")):
        name = place.stem.rsplit("-", 1)[0]
        sets, labels = sets_of(place), TASKS[name].labels
        files = [_scores_of(folder, name, each) for each in sets]
        if labels is None or not all(each.exists() for each in files):
            continue
        found = [dict(np.load(each)) for each in files]
        rows = {of: Rows(np.stack([each[of] for each in found]), found[0][f"{of}_truth"]) for of in ("private", "test")}
        contextual = np.stack([each["contextual"] for each in found])
        yield Stored(name, labels, sets, contextual, rows["private"], rows["test"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("folder")
    parser.add_argument("tasks", nargs="+", choices=[name for name, task in TASKS.items() if task.labels])
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--tests", type=int, default=300)
    read(parser.parse_args())


if __name__ == "__main__":
    main()
