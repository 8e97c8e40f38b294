"""What programs may ask the server for: public text and public numbers in, what is releasable out.

No row, ledger or page is behind these, and no file is read or written. A set is given as the text of its file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gradio as gr
from gradio.events import api

from dpicl_ui.frame.guard import MODEL, in_one_line
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.numbers import number, whole
from mechanisms import api as studio
from mechanisms.accounting import PrivacyTarget
from mechanisms.demos.demo_set import loads
from mechanisms.errors import UsageError
from mechanisms.runs.defaults import MECHANISM
from mechanisms.sampling import SamplingPlan

LARGEST_SET = 2**20
"""Characters of a set."""
_ACCOUNTING: dict[str, Any] = {"concurrency_limit": 2, "concurrency_id": "calibrate"}


def add_endpoints(loader: ModelLoader) -> None:
    """Register them in the `gr.Blocks` that is being built; each takes its turn in the app's queue."""

    def classify(demos: str, texts: list[str]) -> list[dict[str, Any]]:
        """Labels of texts behind a demo set, each with its probabilities."""
        return studio.probabilities(loads(_set(demos)), loader.model(), studio.checked_texts(texts))

    api(_answering(classify), api_name="classify", **MODEL)
    api(_answering(check_certificate), api_name="check_certificate", **_ACCOUNTING)
    api(_answering(calibrate), api_name="calibrate", **_ACCOUNTING)


def check_certificate(demos: str) -> dict[str, Any]:
    """What the certificate of a demo set states, recomputed; `problems` names what does not fit."""
    return studio.certificate_check(_set(demos))


def calibrate(
    epsilon: float,
    delta: float,
    size: int,
    mechanism: str = MECHANISM,
    subsets: int = SamplingPlan.subsets,
    tokens: int = SamplingPlan.tokens,
    shots: int = SamplingPlan.shots,
) -> dict[str, Any]:
    """The least noise for a privacy target, for labels of a public size, with a row for each sampled record."""
    plan = SamplingPlan(subsets=whole("subsets", subsets), tokens=whole("tokens", tokens), shots=whole("shots", shots))
    target = PrivacyTarget(number("epsilon", epsilon), number("delta", delta))
    return studio.calibrate(target, whole("The size", size), str(mechanism), plan)


def _answering(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def answer(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            # Gradio would log the traceback, which may quote the request, and tell the program nothing.
            raise gr.Error(in_one_line(error), print_exception=False) from None

    return answer


def _set(demos: object) -> str:
    if not isinstance(demos, str) or len(demos) > LARGEST_SET:
        raise UsageError(f"Give the demo set as the text of its file, at most {LARGEST_SET} characters.")
    return demos
