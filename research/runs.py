"""Runs on public research data that plays a private file: each is charged to a ledger that is thrown away."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from mechanisms import api
from mechanisms.accounting import Cap, PrivacyLedger
from mechanisms.demos.demo_set import DemoSet
from mechanisms.inference import Embedder, LanguageModel
from mechanisms.records import Dataset

_ROOM = 2.0
"""Of a ledger's cap, over what one run costs: each of the ledger's bounds has a part of delta only."""


def written(
    data: Dataset,
    model: LanguageModel,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    embedder: Embedder | None = None,
    **asked: Any,
) -> DemoSet:
    """The set of one run; `asked` are further settings of `mechanisms.api.plan`.

    Raises:
        StudioError: the run is refused, or the model cannot do it.
    """
    planned = api.plan(data, sizes="counted", epsilon=epsilon, delta=delta, **asked)
    kept: list[DemoSet] = []
    with tempfile.TemporaryDirectory() as folder:
        ledger = PrivacyLedger(Path(folder))
        ledger.set_cap(data.name, data.unit, Cap(_ROOM * epsilon, _ROOM * delta))
        run = api.run(planned, data, model, ledger, lambda made, _: kept.append(made), embedder=embedder)
        for _ in run:
            pass
    return kept[-1]
