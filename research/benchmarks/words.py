"""The results of the stage "words", and the effect of its words on drafts: tables of research/docs/words.md.

    python -m research.benchmarks.words find DATA clinic --out words.jsonl
    python -m research.benchmarks.words drafts DATA clinic --unnamed --out drafts.jsonl
    python -m research.benchmarks.words table drafts.jsonl

`find` releases directions from a number of units per label at an epsilon, and reports the share of held-out rows that
lie furthest along their own label's direction, the weight of projections with the least log loss, the number of labels
with words, and the words. `drafts` writes 24 drafts per label: with the name alone, and with words, with and without
openings.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.metrics import log_loss

from mechanisms import api
from mechanisms.noise import SecureRandomness
from mechanisms.records import Dataset, Demonstration
from mechanisms.runs.drafts import DraftRequest, Nearness, write_drafts, write_samples
from mechanisms.runs.plan import Plan, plan_for
from mechanisms.runs.roles import divide
from mechanisms.runs.spec import OPENINGS, VOTE, WORDS, RunSpec, Split
from mechanisms.runs.stages.openings import OpeningsReleased
from mechanisms.runs.stages.words import WordsReleased
from mechanisms.runs.state import RunState
from mechanisms.runs.text import Gate
from research.benchmarks.worth import DELTA, TASKS, Bench
from research.lines import cell, done, keep, lines, markdown
from research.measures.linear_classifier import LinearClassifier

_DRAFTS = 24
_MOST = 0.98
"""The part of the rows that a stage reads, at most: the recipe wants some for the vote."""
_WEIGHTS = (4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 32.0)


def planned(bench: Bench, epsilon: float, units: int, stage: str) -> tuple[Plan, Dataset]:
    """A plan whose role for a stage has about so many units of each label."""
    share = min(_MOST, units * len(bench.labels) / len(bench.rows))
    shares = {stage: share, VOTE: 1 - share}
    dataset = Dataset(bench.name, bench.labels, bench.rows)
    spec = RunSpec.of(
        epsilon=epsilon, delta=DELTA, sizes="counted", split=Split.ROLES, shares=shares, score=False, recipe="vote",
        **bench.task.asked,
    )  # fmt: skip
    return plan_for(spec, dataset), dataset


def state_of(bench: Bench, plan: Plan, dataset: Dataset) -> RunState:
    return RunState(plan, divide(dataset, plan), bench.model, bench.embedder, SecureRandomness(), False, False)


def released(bench: Bench, epsilon: float, units: int, stage: str = WORDS) -> tuple[Any, RunState]:
    """A stage's release, and the state of a run after it."""
    plan, dataset = planned(bench, epsilon, units, stage)
    state = state_of(bench, plan, dataset)
    at_work = plan.stages[stage]
    [event] = (each for each in at_work.ask(state) if isinstance(each, WordsReleased | OpeningsReleased))
    at_work.take(state, event)
    return event, state


def find(options: argparse.Namespace) -> None:
    bench = Bench(Path(options.data), options.task, api.load_model("embedded"), 400, options.unnamed)
    for units in options.units:
        for epsilon in options.epsilons:
            key = {"task": options.task, "unnamed": options.unnamed, "units": units, "epsilon": epsilon}
            while done(options.out, key) < options.runs:
                event, state = released(bench, epsilon, units)
                assert state.directions is not None
                places = state.directions.places([each.text for each in bench.test], bench.embedder)
                losses = [log_loss(bench.truth, softmax(weight * places, axis=1)) for weight in _WEIGHTS]
                words = {label: [each.word for each in of] for label, of in event.words.items()}
                line = {
                    "nearest": float((places.argmax(axis=1) == bench.truth).mean()),
                    "weight": _WEIGHTS[int(np.argmin(losses))],
                    "labels with words": float(np.mean([bool(each) for each in words.values()])),
                    "names that speak": len(event.named) / len(bench.labels),
                    "words": words,
                }
                keep(options.out, key | line)


def line(bench: Bench, state: RunState, openings: Mapping[str, Mapping[str, float]], form: str) -> dict[str, Any]:
    """Drafts of every label, and what is measured of them."""
    wording, randomness = state.plan.spec.wording, SecureRandomness()
    gate = Gate(bench.model, write_samples(bench.model, wording, bench.labels[0], 24, randomness), wording)
    order = state.margins if form != "name" else Nearness(bench.embedder, wording, bench.labels)
    assert order is not None
    made: list[Demonstration] = []
    for label in bench.labels:
        words = state.words.get(label, ()) if form != "name" else ()
        begun = openings.get(label, {}) if "openings" in form else {}
        named = state.says(label) if form != "words, and the name" else True
        request = DraftRequest(wording, label, bench.labels, _DRAFTS, 40, begun, words, named)
        taken = [each.text for each in made]
        made += [
            Demonstration(text, label) for text in write_drafts(bench.model, request, gate, randomness, taken, order)
        ]
    told = {label: wording.named(label).casefold() for label in bench.labels}
    spoken = {"say the name": float(np.mean([told[each.label] in each.text.casefold() for each in made]))}
    return measured(bench, made) | spoken


def measured(bench: Bench, made: Sequence[Demonstration]) -> dict[str, Any]:
    """What texts are worth without any reader, and the texts."""
    texts, labels = [each.text for each in made], [each.label for each in made]
    vectors = bench.embedder.embed(texts)
    return {
        "own": bench.classifier.accuracy(vectors, labels).value,
        "coverage": bench.coverage(made),
        "tstr": LinearClassifier(vectors, labels).accuracy(bench.vectors, bench.rows_labels).value,
        "drafts": [[each.label, each.text] for each in made],
    }


def drafts(options: argparse.Namespace) -> None:
    bench = Bench(Path(options.data), options.task, api.load_model(options.model), 1, options.unnamed)
    for _ in range(options.runs):
        _, state = released(bench, options.epsilon, options.units[0])
        openings = released(bench, options.epsilon, 60, OPENINGS)[0].used
        for form in options.forms:
            key = {"task": options.task, "unnamed": options.unnamed, "model": options.model, "form": form}
            key |= {"units": options.units[0], "epsilon": options.epsilon}
            if done(options.out, key) < options.runs:
                keep(options.out, key | line(bench, state, openings, form) | {"words": state.words})


FORMS = ("name", "words", "words, and the name", "words and openings")
FOUND = ("nearest", "weight", "labels with words", "names that speak")
DRAFTED = ("own", "coverage", "tstr", "say the name")


def table(options: argparse.Namespace) -> None:
    """Means over runs, and half of their 95% interval."""
    read = lines(options.file)
    columns = DRAFTED if "drafts" in read[0] else FOUND
    keys = [name for name in ("task", "unnamed", "model", "form", "units", "epsilon") if name in read[0]]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for each in read:
        groups.setdefault(tuple(each[name] for name in keys), []).append(each)
    order = sorted(groups, key=lambda key: (list(TASKS).index(key[0]), str(key[1:])))
    rows = [[*key, len(groups[key]), *(cell(each[name] for each in groups[key]) for name in columns)] for key in order]
    print(markdown([*keys, "runs", *columns], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for act, units in ((find, [60, 240, 480]), (drafts, [240])):
        one = commands.add_parser(act.__name__)
        one.add_argument("data")
        one.add_argument("task", choices=TASKS)
        one.add_argument("--unnamed", action="store_true", help="call the labels Q1, Q2, ...")
        one.add_argument("--units", type=int, nargs="+", default=units, help="of each label, that the stage reads")
        one.add_argument("--runs", type=int, default=3)
        one.add_argument("--out", type=Path, required=True)
        one.set_defaults(act=act)
        if act is find:
            one.add_argument("--epsilons", type=float, nargs="+", default=[0.25, 1.0, 4.0])
        else:
            one.add_argument("--epsilon", type=float, default=1.0)
            one.add_argument("--model", default="embedded")
            one.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    shown = commands.add_parser("table")
    shown.add_argument("file", type=Path)
    shown.set_defaults(act=table)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
