"""`query` and `evaluate` where a set is of one kind of text, without outputs: how texts go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mechanisms import confidence
from mechanisms.cli.output import progress
from mechanisms.demos.demo_set import DemoSet
from mechanisms.evaluation.completions import completing, surprises
from mechanisms.evaluation.evaluate import arms_of
from mechanisms.inference import LanguageModel
from mechanisms.records import Record
from mechanisms.runs.public_demonstrations import public_demonstrations


def completion_of(demo_set: DemoSet, model: LanguageModel, beginning: str) -> str:
    """How the model goes on with a text behind the set's demonstrations."""
    [rest] = completing(model, demo_set, demo_set.demonstrations).answers([beginning])
    return rest


def perplexities(demo_set: DemoSet, model: LanguageModel, rows: Sequence[Record]) -> dict[str, Any]:
    """How surprised the model is by the rows' texts zero-shot, behind public demonstrations, and behind the set's."""
    document: dict[str, Any] = {"level": confidence.LEVEL}
    arms = arms_of(demo_set, public_demonstrations(demo_set, model))
    for done, found in enumerate(surprises(model, demo_set, arms, [row.text for row in rows]), start=1):
        progress(f"{done} of {len(arms)} prompts")
        interval = [round(bound, 3) for bound in found.interval]
        document |= {"rows": found.texts, found.name: {"perplexity": round(found.perplexity, 3), "interval": interval}}
    return document
