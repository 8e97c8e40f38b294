"""Beside InvisibleInk's package: the same model, rows and epsilon, its texts and ours (docs/results/invisibleink.md).

    python -m research.benchmarks.invisibleink write MODEL TRAIN.csv ours.jsonl --arms b8 planned public
    python -m research.benchmarks.invisibleink table TEST.csv theirs.jsonl ours.jsonl
    python -m research.benchmarks.invisibleink account --clip 2.1803

The package runs apart, in an environment of its own; all that is read of it is its texts, a JSON line each: `arm`,
`text`, `tokens`, `wall_seconds`, `cpu_seconds`. `write` appends lines of the same kind. Models compute in float32.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, claim, fingerprint
from mechanisms.inference import LanguageModel
from mechanisms.inference.models import catalogue
from mechanisms.inference.models.embeddings import load_embedder
from mechanisms.inference.prompts import GenerationPrompt, first_tokens
from mechanisms.privacy_events import ZCDP, Composed
from mechanisms.records import Dataset, default_template
from mechanisms.runs.events import DemoCompleted, TokenReleased
from mechanisms.runs.planner import Task, cost, options, ranked
from mechanisms.runs.request import MIN_TOKENS, SynthesisRequest
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import TokenMechanism, mechanism_class
from research.benchmarks.worth import rows_of
from research.commands import lines
from research.measures.linear_classifier import LinearClassifier
from research.measures.perplexity import MAX_TOKENS, perplexity

LABEL, BATCH, TARGET, RECORD_TOKENS = "World", 8, PrivacyTarget(10.0, 1e-5), 64
TEMPLATE = default_template((LABEL,), "Article", "Topic")
B8, PLANNED, PUBLIC = "b8", "planned", "public"
RESAMPLES = 10_000


def write(given: argparse.Namespace) -> None:
    """The texts of each arm: one run, one label, `--texts` demonstrations of at most `--tokens` tokens."""
    with patch.object(catalogue, "best_dtype", lambda _: torch.float32):
        model = catalogue.load_model(given.model)
    records = [each for each in rows_of(Path(given.train)) if each.label == LABEL]
    for arm in given.arms:
        plan, mechanism = _settings(arm, model, len(records), given.texts, given.tokens)
        print(f"{arm}: {mechanism} with {plan}")
        with tempfile.TemporaryDirectory() as home:
            _written(arm, Dataset(f"agnews-{arm}", (LABEL,), records), plan, mechanism, model, Path(home), given.out)


def _settings(
    arm: str, model: LanguageModel, size: int, texts: int, tokens: int
) -> tuple[SamplingPlan, TokenMechanism]:
    """Batches of eight rows of their own for each text; or what the planner finds for as many tokens of a prompt."""
    batches = SamplingPlan(Scheme.DISJOINT, BATCH, tokens=tokens, shots=texts)
    if arm != PLANNED:
        return batches, mechanism_class("difference-clipping" if arm == B8 else "public")()
    prompt = GenerationPrompt(model, TEMPLATE, LABEL, RECORD_TOKENS, 1)
    task = Task(size, tokens, len(prompt.prefix) + prompt.length, shots=texts)
    budget = cost(batches, task, TARGET.delta)
    best = ranked(list(options(mechanism_class("gaussian")(), task, TARGET, budget, points=1)))[0]
    return best.plan, best.mechanism


def _written(
    arm: str,
    dataset: Dataset,
    plan: SamplingPlan,
    mechanism: TokenMechanism,
    model: LanguageModel,
    home: Path,
    out: str,
) -> None:
    request = SynthesisRequest(
        labels=dataset.labels,
        template=TEMPLATE,
        plan=plan,
        mechanism=mechanism,
        target=TARGET,
        sizes=dataset.counted_sizes(),
        content=fingerprint(dataset).content,
        candidates=50,
        max_record_tokens=RECORD_TOKENS,
        min_tokens=min(MIN_TOKENS, plan.tokens),
    ).calibrated()
    wall, cpu = time.perf_counter(), time.process_time()
    told = list(synthesize(dataset, request, model, PrivacyLedger(home)))
    shared = {
        "wall_seconds": round((time.perf_counter() - wall) / plan.shots, 1),
        "cpu_seconds": round((time.process_time() - cpu) / plan.shots, 1),
    }
    done = [each for each in told if isinstance(each, DemoCompleted)]
    with open(out, "a", encoding="utf-8") as file:
        for each in done:
            steps = sum(isinstance(event, TokenReleased) and event.number == each.number for event in told)
            line = {"arm": arm, "epsilon": request.claim().epsilon, "label": LABEL, "text": each.demonstration.text}
            file.write(json.dumps(line | {"tokens": steps} | shared, ensure_ascii=False) + "\n")


def table(given: argparse.Namespace) -> None:
    """One line an arm; real test rows of the label beside them, for what fidelity and perplexity are of real text."""
    test = rows_of(Path(given.test))
    embedder, reader = load_embedder(), catalogue.load_model(given.reader)
    classifier = LinearClassifier(embedder.embed([each.text for each in test]), [each.label for each in test])
    print("| texts of | texts | tokens | CPU seconds a token | a text | label fidelity | perplexity |")
    print("|---|---|---|---|---|---|---|")
    arms: dict[str, list[dict[str, Any]]] = {}
    for file in given.files:
        for line in lines(file):
            arms.setdefault(line["arm"], []).append(line)
    # The classifier was trained on the test rows, so that it says nothing of them; their perplexity is their own.
    arms["real rows"] = [{"text": each.text} for each in test if each.label == LABEL][: given.real]
    for arm, found in arms.items():
        texts = [each["text"] for each in found if each["text"].strip()]
        fidelity = "-" if arm == "real rows" else _fidelity(classifier, embedder, found)
        cells = [*_speed(found), fidelity, _perplexity(reader, texts)]
        print(f"| {arm} | {len(found)} |", " | ".join(cells), "|")


def _speed(found: Sequence[dict[str, Any]]) -> tuple[str, str, str]:
    if "tokens" not in found[0]:
        return "-", "-", "-"
    tokens, seconds = sum(each["tokens"] for each in found), sum(each["cpu_seconds"] for each in found)
    return str(tokens), f"{seconds / tokens:.2f}", f"{seconds / len(found):.1f}"


def _fidelity(classifier: LinearClassifier, embedder: Any, found: Sequence[dict[str, Any]]) -> str:
    accuracy = classifier.accuracy(embedder.embed([each["text"] for each in found]), [LABEL] * len(found))
    low, high = accuracy.interval
    return f"{accuracy.correct} of {accuracy.total}, {low:.2f} to {high:.2f}"


def _perplexity(reader: LanguageModel, texts: Sequence[str]) -> str:
    """Of all tokens of all texts, and the middle 95% of the same when texts are drawn with replacement."""
    counts = np.array([len(first_tokens(reader, text, MAX_TOKENS)) - 1 for text in texts])
    surprise = np.array([math.log(perplexity(reader, [text])) for text in texts]) * counts
    pick = random.Random(0)
    drawn = np.array([pick.choices(range(len(texts)), k=len(texts)) for _ in range(RESAMPLES)])
    spread = np.exp(surprise[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    low, high = np.quantile(spread, [0.025, 0.975])
    return f"{math.exp(surprise.sum() / counts.sum()):.0f}, {low:.0f} to {high:.0f}"


def account(given: argparse.Namespace) -> None:
    """What a run costs for several neighbours, by our accountants: rho of a text is T/2 (C / B)^2 at temperature 1."""
    plan = SamplingPlan(Scheme.DISJOINT, BATCH, tokens=given.tokens, shots=given.texts)
    mechanism = mechanism_class("difference-clipping")().for_plan(plan)
    sizes = {LABEL: given.size}
    found = mechanism.calibrate(lambda event: plan.compose(event, sizes, TARGET.delta), TARGET)
    print(found, claim(plan.compose(found.event, sizes, TARGET.delta), TARGET.delta))
    rho = given.tokens / 2 * (given.clip / BATCH) ** 2
    for neighbours, times in (
        ("a row becomes the public prompt", 1),
        ("a row becomes any other row", 4),
        ("a row leaves, later rows move up", 4 * given.texts),
    ):
        event = Composed("row", (("each", (ZCDP(times * rho),)),))
        print(f"{neighbours}: rho {times * rho:.3f}", claim(event, TARGET.delta))


def main() -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    writing = commands.add_parser("write")
    for name in ("model", "train", "out"):
        writing.add_argument(name)
    writing.add_argument("--arms", nargs="+", choices=(B8, PLANNED, PUBLIC), default=(B8, PLANNED, PUBLIC))
    writing.set_defaults(run=write)
    reading = commands.add_parser("table")
    reading.add_argument("test")
    reading.add_argument("files", nargs="+")
    reading.add_argument("--reader", default="gemma-3-270m")
    reading.add_argument("--real", type=int, default=40, help="real rows to read")
    reading.set_defaults(run=table)
    counting = commands.add_parser("account")
    counting.add_argument("--clip", type=float, required=True, help="the package's clipping norm")
    counting.add_argument("--size", type=int, default=2000)
    counting.set_defaults(run=account)
    for each in (writing, counting):
        each.add_argument("--texts", type=int, default=16)
        each.add_argument("--tokens", type=int, default=48)
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
