"""A tab as it is after a curator's choices, made without a page, and what stands in a tree of the page."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import gradio as gr
import pandas as pd

from dpicl_ui.data.state import ConfirmedData, DataState
from dpicl_ui.frame.model_loader import EmbedderLoader, ModelLoader
from dpicl_ui.frame.services import CuratorLedger, Services, Session, Sessions, StepBar
from dpicl_ui.frame.tree import Tree
from dpicl_ui.generate.state import GenerateState, WrittenSet
from dpicl_ui.page import BAR
from dpicl_ui.privacy.state import PlannedRun, PrivacyState
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.asking import Wording
from mechanisms.data.columns import ColumnMapping
from mechanisms.data.sizes import MeasuredSizes
from mechanisms.data.table import Table
from mechanisms.demos.demo_set import DemoSet
from mechanisms.records import Dataset
from mechanisms.runs.spec import RunSpec

M = TypeVar("M")


def in_page(make: Callable[[], M]) -> M:
    """What is made inside a page. In a loop: Blocks made outside of one open one of their own and never close it."""

    async def built() -> M:
        with gr.Blocks():
            return make()

    return asyncio.run(built())


def services(ledgers: Any = None, loader: Any = None, embedder: Any = None, sessions: Any = None) -> Services:
    """What a step needs, without a model or a ledger unless one is given; made inside a page."""
    loader = loader or ModelLoader("none")
    return Services(sessions or Sessions(), ledgers, loader, embedder or EmbedderLoader(loader), StepBar(BAR))


def owned(folder: Path) -> Services:
    """The same on a server of one owner, with a ledger in this folder."""
    return services(CuratorLedger(PrivacyLedger(folder)))


def lend(part: Any, **others: Any) -> None:
    """Give a part of the page other services."""
    part._app = replace(part._app, **others)


def confirm(
    session: Session, dataset: Dataset, measured: MeasuredSizes | None = None, wording: Wording | None = None
) -> ConfirmedData:
    """Step 1 done with a file that holds these records."""
    state = session.of(DataState)
    rows = [(each.text, each.label) for each in dataset.records]
    table = Table(pd.DataFrame(rows, columns=["text", "label"]))
    state.open(table, wording or Wording(), "Label", ("text", "label"))
    state.confirm(confirmed := ConfirmedData(state.inspect(ColumnMapping("text", "label")), dataset, measured))
    return confirmed


def planned(session: Session, **settings: Any) -> PlannedRun:
    """Step 2 done with these settings, on the data of step 1."""
    confirmed = session.of(DataState).confirmed
    assert confirmed is not None
    return session.of(PrivacyState).calibrate(RunSpec.of(**confirmed.spec_fields | settings), None)


def write(session: Session, demo_set: DemoSet, of: Dataset) -> None:
    """Step 3 done."""
    session.of(GenerateState).made = WrittenSet(demo_set, fingerprint(of))


def downloaded(sink: dict[str, Any]) -> str:
    """The text of the file that the browser is told to save."""
    return base64.b64decode(sink["bytes"]).decode()


# What stands in a tree of the page.


def text_of(tree: Tree | list[Tree]) -> str:
    """All its text."""
    if isinstance(tree, str):
        return tree
    children = tree if isinstance(tree, list) else tree["children"]
    return " ".join(text_of(child) for child in children)


def tags(tree: Tree | list[Tree]) -> set[str]:
    """The tags of all its elements."""
    if isinstance(tree, str):
        return set()
    if isinstance(tree, list):
        return set().union(*map(tags, tree))
    return {tree["tag"]}.union(*map(tags, tree["children"]))
