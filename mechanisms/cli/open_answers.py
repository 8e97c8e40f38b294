"""`query` and `evaluate` where demonstrations have outputs: answers that are text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mechanisms import confidence
from mechanisms.cli.output import progress
from mechanisms.cli.scoring import in_json
from mechanisms.demos.demo_set import DemoSet, longest_output
from mechanisms.evaluation.completions import answering
from mechanisms.evaluation.evaluate import Progress, arms_of
from mechanisms.evaluation.open_answers import OpenScorecard, evaluate_open
from mechanisms.inference import LanguageModel
from mechanisms.records import Record
from mechanisms.runs.public_demonstrations import public_demonstrations


def answer_of(demo_set: DemoSet, model: LanguageModel, text: str) -> str:
    """What the model says to a text behind the set's demonstrations."""
    [answer] = answering(model, demo_set.template, demo_set.demonstrations, longest_output(demo_set)).answers([text])
    return answer


def answered(demo_set: DemoSet, model: LanguageModel, rows: Sequence[Record]) -> dict[str, Any]:
    """How well the model answers the rows zero-shot, behind public demonstrations, and behind the set's."""
    document: dict[str, Any] = {"level": confidence.LEVEL}
    arms = arms_of(demo_set, public_demonstrations(demo_set, model))
    for result in evaluate_open(model, demo_set.template, arms, rows, longest_output(demo_set)):
        match result:
            case Progress(done, total):
                progress(f"{done} of {total}")
            case OpenScorecard(name, exact, f1):
                document |= {"rows": exact.total, name: {"exact": in_json(exact), "f1": in_json(f1)}}
    return document
