"""Step 1 with a data set of the hub: what follows is what follows an upload."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.data.state import DataState
from dpicl_ui.data.step import DataStep
from dpicl_ui.frame.guard import guarded
from dpicl_ui.frame.sessions import CuratorLedger, Ledgers, OwnerLedgers, Sessions, TabLedgers
from mechanisms.accounting import PrivacyLedger
from mechanisms.accounts import Accounts
from mechanisms.errors import DataError
from tests.hub import Repository, lead_to, serving
from tests.ui.tabs import services
from tests.ui.trees import text_of

TAB: Any = SimpleNamespace(username=None, session_hash="tab")
TOKEN = "hf_of_the_curator"
ROWS = "".join(f"letter {i},{'ab'[i % 2]},u{i % 25}\n" for i in range(40))
FILES = {"train.csv": f"text,label,patient\n{ROWS}".encode()}


@pytest.fixture(autouse=True)
def _served(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with serving({"ada/letters": Repository(FILES), "ada/own": Repository(FILES, token=TOKEN)}) as hub:
        lead_to(hub.url, monkeypatch)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield


def step_of(ledgers: Ledgers) -> tuple[DataStep, Sessions]:
    sessions = Sessions()

    async def built() -> DataStep:
        with gr.Blocks():
            return DataStep(services(sessions, ledgers))

    return asyncio.run(built()), sessions


@pytest.fixture
def curators(tmp_path: Path) -> Ledgers:
    return CuratorLedger(PrivacyLedger(tmp_path))


def test_it_is_opened_as_an_upload_is(curators: Ledgers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    step, sessions = step_of(curators)
    asked, shown = step._fetch("ada/letters/train", TAB)
    assert list(asked) == [step.source.notice]
    fetched = sessions.of(TAB).of(DataState).columns
    assert fetched is not None

    path = tmp_path / "uploads" / "one" / "letters.csv"
    path.parent.mkdir(parents=True)
    path.write_bytes(FILES["train.csv"])
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    uploaded = step._upload(str(path), TAB)
    columns = sessions.of(TAB).of(DataState).columns
    assert columns is not None
    assert columns is not fetched
    assert fetched.mapping == columns.mapping
    assert fetched.mapping.unit == "patient"
    assert fetched.inspection.counts == columns.inspection.counts
    assert set(shown) == set(uploaded) - {step.source.upload}
    assert text_of(shown[step.preview]) == text_of(uploaded[step.preview])
    assert (shown[step.name], uploaded[step.name]) == ("ada/letters", "letters")


def test_a_fault_stands_where_that_of_an_upload_stands_and_the_open_file_stays(curators: Ledgers):
    step, sessions = step_of(curators)
    list(step._fetch("ada/letters/train", TAB))
    before = sessions.of(TAB).of(DataState).columns
    *_, shown = guarded(step.source.notice)(step._fetch)("ada/letters/dev", TAB)
    assert list(shown) == [step.source.notice]
    assert "one of these: train" in text_of(shown[step.source.notice])
    assert sessions.of(TAB).of(DataState).columns is before


def test_the_token_of_the_server_is_for_its_curator_alone(curators: Ledgers):
    step, sessions = step_of(curators)
    list(step._fetch("ada/own/train", TAB))
    assert sessions.of(TAB).of(DataState).columns is not None
    for others in (OwnerLedgers(Accounts()), TabLedgers()):
        step, sessions = step_of(others)
        with pytest.raises(DataError, match="public data sets alone"):
            list(step._fetch("ada/own/train", TAB))
        assert sessions.of(TAB).of(DataState).file is None
