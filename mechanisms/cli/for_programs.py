"""What programs may ask for, over HTTP or MCP: public text and public numbers in, what is releasable out.

No ledger and no private row is behind these, and no file is read or written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mechanisms.accounting import PrivacyTarget
from mechanisms.cli.account import calibration
from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.reader import labelled
from mechanisms.inference import LanguageModel
from mechanisms.privacy_events import Composed
from mechanisms.sampling import EventOfSteps, SamplingPlan
from mechanisms.steps import mechanism_class

MOST_TEXTS, LONGEST_TEXT = 64, 10_000
"""Texts of one request, and characters of each."""
_LARGEST_SIZE = 10**9


def classified(written: DemoSet, model: LanguageModel, texts: Sequence[str]) -> list[dict[str, Any]]:
    """A label for each text behind a demo set, with all probabilities, as JSON.

    Raises:
        UsageError: the set gives no labels.
    """
    found = labelled(written, model, texts)
    probabilities = [dict(zip(written.labels, each.answer.tolist(), strict=True)) for each in found]
    return [{"label": max(each, key=lambda label: each[label]), "probabilities": each} for each in probabilities]


def checked_texts(texts: object) -> Sequence[str]:
    """The texts of a request.

    Raises:
        UsageError: they are none, too many or too long.
    """
    if isinstance(texts, list) and 1 <= len(texts) <= MOST_TEXTS:
        given = [each for each in texts if isinstance(each, str) and len(each) <= LONGEST_TEXT]
        if len(given) == len(texts):
            return given
    raise UsageError(f"Give a list of 1 to {MOST_TEXTS} texts of at most {LONGEST_TEXT} characters each.")


def calibrated(target: PrivacyTarget, size: int, mechanism: str, plan: SamplingPlan) -> dict[str, Any]:
    """The least noise for a target, for labels of a public size, as `calibrate` on the command line says it.

    Raises:
        UsageError: the mechanism has no noise, or the size is none.
        StudioError: no noise meets the target.
    """
    chosen = mechanism_class(mechanism)
    if chosen.not_private or not chosen.uses_private_rows:
        raise UsageError(f"There is nothing to calibrate: '{chosen.name}' has no noise.")
    if not 1 <= size <= _LARGEST_SIZE:
        raise UsageError(f"The size must lie between 1 and {_LARGEST_SIZE}.")

    def compose(event: EventOfSteps) -> Composed:
        return plan.compose(event, {"each label": size}, target.delta)

    return calibration(chosen().for_plan(plan), plan, compose, target)
