"""Whole runs on toy models, as they were told."""

from __future__ import annotations

from functools import cache
from typing import Any

from mechanisms.accounting import PrivacyLedger
from mechanisms.noise import SecureRandomness
from mechanisms.runs.events import RunEvent
from mechanisms.runs.recipe import Division, Kind, Stage
from mechanisms.runs.run import synthesize
from mechanisms.runs.run_file import to_lines
from mechanisms.sampling import SamplingPlan
from tests.recipes.running import Embedding, Log, Reading, data, ledger, planned, recipe, rows
from tests.synthesis.test_synthesize import dataset, request
from tests.toy_model import ToyModel

KINDS = ("tokens", "vote", "both")
SECRET = "secret"
"""In every private text of the recipes' runs."""


@cache
def told(kind: str) -> tuple[Any, ...]:
    """Everything that a run tells its curator, clean values and progress included."""
    if kind == "tokens":
        wanted = request(plan=SamplingPlan(subsets=6, tokens=5, shots=2), kept=1)
        return tuple(synthesize(dataset(), wanted, ToyModel(), PrivacyLedger(), SecureRandomness(), curator=True))
    records = data(rows(60))
    wanted = planned(records, recipe(Kind(kind), Division.ROLES, rounds=2 if kind == "vote" else 1))
    return tuple(
        synthesize(
            records, wanted, Reading(Log()), ledger(), SecureRandomness(), curator=True, embedder=Embedding(Log())
        )
    )


@cache
def recorded(kind: str) -> tuple[RunEvent, ...]:
    """What of it may be recorded."""
    private = ("PrivateDiagnostics", "StageProgress", "Drafting")
    return tuple(event for event in told(kind) if type(event).__name__ not in private)


@cache
def recipe_told(kind: Kind, division: Division, *without: Stage) -> tuple[RunEvent, ...]:
    """What a recipe of any kind told, without some of its stages; no curator looked."""
    records = data(rows(60))
    wanted = planned(records, recipe(kind, division, without))
    told = synthesize(records, wanted, Reading(Log()), ledger(), SecureRandomness(), embedder=Embedding(Log()))
    return tuple(event for event in told if type(event).__name__ not in ("StageProgress", "Drafting"))


@cache
def file_of(kind: str) -> str:
    return to_lines(recorded(kind))
