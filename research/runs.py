"""Runs on public research data that stands in for a private file; each is charged to a temporary ledger."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from mechanisms import api
from mechanisms.accounting import Cap, PrivacyLedger
from mechanisms.demos.demo_set import DemoSet
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.records import Dataset, Demonstration
from mechanisms.runs.driver import drive
from mechanisms.runs.events import DemoCompleted, TokenReleased
from mechanisms.runs.plan import Plan, plan_for, solved_flag
from mechanisms.runs.spec import RunSpec
from mechanisms.steps import mechanism_class
from mechanisms.steps.noisy_vector import AS_RELEASED, NoisyVector

_ROOM = 2.0
"""A ledger's cap over the cost of one run, because each of the ledger's bounds has only a part of delta."""


@contextmanager
def _ledger(data: Dataset, epsilon: float, delta: float) -> Iterator[PrivacyLedger]:
    with tempfile.TemporaryDirectory() as folder:
        ledger = PrivacyLedger(Path(folder))
        ledger.set_cap(data.name, data.unit, Cap(_ROOM * epsilon, _ROOM * delta))
        yield ledger


def written(
    data: Dataset,
    model: LanguageModel,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    embedder: Embedder | None = None,
    **asked: Any,
) -> DemoSet:
    """The set of one run, as for export; `asked` has further fields of `mechanisms.runs.spec.RunSpec`.

    Raises:
        StudioError: the run is refused, or the model cannot do it.
    """
    planned = api.plan(data, sizes="counted", epsilon=epsilon, delta=delta, **asked)
    kept: list[DemoSet] = []
    with _ledger(data, epsilon, delta) as ledger:
        for _ in drive(planned, data, model, embedder, ledger, keep=lambda made, _: kept.append(made)):
            pass
    return kept[-1]


class Texts(NamedTuple):
    """Unedited texts written token by token, by label and number.

    Attributes:
        epsilon: the run's claim; infinite without a guarantee.
        noise: the calibrated parameter; None if there is none.
    """

    demonstrations: tuple[Demonstration, ...]
    epsilon: float
    noise: float | None = None


def texts_planned(
    data: Dataset,
    *,
    mechanism: str,
    parameters: Mapping[str, float | int | bool] | None = None,
    candidates: int | None = 16,
    solve: bool = True,
    **asked: Any,
) -> Plan:
    """The plan of a run that writes token by token as in the papers.

    The token is the argmax of the released noisy vector, all K tokens are candidates, and a text may end at once.
    Labels have their own names in the prompt.

    Args:
        parameters: further parameters of the mechanism and its transform.
        candidates: K; None: the whole vocabulary, which an owner's settings do not allow and which costs the same.
        solve: whether to calibrate the noise to epsilon; otherwise it is among the parameters.
        asked: further fields of `mechanisms.runs.spec.RunSpec`.

    Raises:
        StudioError: the run is refused.
    """
    reading = {"temperature": 0, "top-p": 1.0, "prior-deviation": AS_RELEASED}
    vector = issubclass(mechanism_class(mechanism), NoisyVector)
    usual: dict[str, Any] = {
        "sizes": "counted",
        "label_words": {label: label for label in data.labels},
        "candidate_top_p": 1.0,
        "min_tokens": 0,
        "recipe": "tokens",
        "mechanism": mechanism,
        "parameters": {**(reading if vector else {}), **(parameters or {})},
        **({} if candidates is None else {"candidates": candidates}),
    }
    found = plan_for(RunSpec.of(**usual | asked), data)
    found = found.calibrated() if solve else found
    if candidates is None:
        found = replace(found, spec=found.spec.model_copy(update={"candidates": sys.maxsize}))
    return found


def texts_written(data: Dataset, model: LanguageModel, **asked: Any) -> Texts:
    """The unedited texts of one run: none is refused, and no last sentence is completed. `asked` is as in
    `texts_planned`.

    Raises:
        StudioError: the run is refused, or the model cannot do it.
    """
    planned = texts_planned(data, **asked)
    found: dict[tuple[str, int], str] = {}
    left = len(data.labels) * planned.sampling.written
    claimed = planned.claim().epsilon
    with (
        _ledger(data, planned.spec.epsilon, planned.spec.delta) as ledger,
        closing(drive(planned, data, model, None, ledger)) as events,
    ):
        for event in events:
            if isinstance(event, TokenReleased):
                found[event.label, event.number] = " ".join(event.text.split())
            left -= isinstance(event, DemoCompleted)
            if not left:  # from here on public drafts would replace refused texts
                break
    demonstrations = tuple(Demonstration(text, label) for (label, _), text in found.items())
    noise = planned.spec.parameters.get(solved_flag(planned.spec.mechanism) or "")
    return Texts(demonstrations, claimed, None if noise is None else float(noise))
