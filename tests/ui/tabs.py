"""A tab as it is after a curator's choices, made without a page."""

from __future__ import annotations

import base64
from typing import Any

import pandas as pd

from dpicl_ui.data.state import Confirmed, DataState
from dpicl_ui.frame.sessions import Session
from dpicl_ui.generate.state import GenerateState, Made
from mechanisms.accounting import fingerprint
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import DemoSet
from mechanisms.records import Dataset


def confirm(session: Session, dataset: Dataset, measured: MeasuredSizes | None = None) -> Confirmed:
    """Step 1 done with a file that holds these records."""
    state = session.of(DataState)
    rows = [(each.text, each.label) for each in dataset.records]
    state.open(Table(pd.DataFrame(rows, columns=["text", "label"])), ("Text", "Label"))
    state.confirm(confirmed := Confirmed(state.read(ColumnMapping("text", "label")), dataset, measured))
    return confirmed


def write(session: Session, demo_set: DemoSet, of: Dataset) -> None:
    """Step 3 done."""
    session.of(GenerateState).made = Made(demo_set, fingerprint(of))


def downloaded(sink: dict[str, Any]) -> str:
    """The text of the file that the browser is told to save."""
    return base64.b64decode(sink["bytes"]).decode()
