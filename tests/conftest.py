"""Every test runs in a data folder of its own; real data and the real model are fixtures."""

from __future__ import annotations

import csv
import gc
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, settings

from mechanisms.records import Record

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("DPICL_DATA", ROOT.parent / "shared" / "data"))

# Bits are compared from run to run: the number of threads must not follow the load. Beside another busy process,
# several threads are slower than one; the apps that tests start inherit the number.
if "OMP_NUM_THREADS" not in os.environ:
    cores = psutil.cpu_count(logical=False) or 1
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    os.environ["OMP_NUM_THREADS"] = str(max(1, cores // workers))


# What runs while tests are collected, outside of any fixture, has no business in the account's own ledger either.
_COLLECTING = tempfile.TemporaryDirectory(prefix="dpicl-tests-")
os.environ["DPICL_HOME"] = _COLLECTING.name

# How long an example takes is the machine's matter: a busy one fails no test.
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")


LONGEST = (
    "tests/test_readme.py", "tests/lies", "tests/ui/test_browser.py", "tests/ui/server/test_two_tabs.py",
    "tests/inference/test_cluster.py", "tests/cli/test_cli.py",
    "tests/inference/engine", "tests/replay", "tests/certificates",
)  # fmt: skip
"""What takes minutes comes first, so that at the end no process waits long for another one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {each: place for place, each in enumerate(LONGEST)}
    items.sort(key=lambda item: next((places[each] for each in LONGEST if item.nodeid.startswith(each)), len(places)))


def pytest_sessionstart() -> None:
    """What collecting makes stays to the end: no search for garbage need look through it, then or later."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def nightly_but(cases: Iterable[Any], every: int) -> list[Any]:
    """Parameters of which one in `every` is tried by `make test`, and the others by `make nightly`."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=() if i % every == 0 else pytest.mark.nightly
        )
        for i, case in enumerate(cases)
    ]


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("DPICL_HOME", str(folder))
    return folder


@pytest.fixture
def one_key(data_folder: Path) -> None:
    """Who has which place follows from a key: the same in every run."""
    data_folder.mkdir(exist_ok=True)
    (data_folder / "key").write_bytes(b"k" * 32)


@pytest.fixture(autouse=True)
def computing_thread() -> Iterator[None]:
    """What an app's models set for its process ends with the test."""
    yield
    if threads := sys.modules.get("mechanisms.inference.engine.threads"):
        threads._one.clear()


@pytest.fixture
def any_text_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate refuses nothing: what a toy model writes is no text."""
    from mechanisms.runs.text import Gate

    monkeypatch.setattr(Gate, "reason", lambda gate, text: None)


@pytest.fixture
def toy_models(monkeypatch: pytest.MonkeyPatch, any_text_passes: None) -> None:
    """Toys in place of the models that commands and Python load."""
    from tests.baselines.toys import SpeakingModel
    from tests.toy_embedder import ToyEmbedder

    monkeypatch.setattr("mechanisms.cli.synthesize.opened", lambda *_: nullcontext(SpeakingModel()))
    monkeypatch.setattr("mechanisms.api.load_model", lambda *_: SpeakingModel())
    monkeypatch.setattr("mechanisms.api.default_model", SpeakingModel)
    for module in ("api", "cli.synthesize"):
        monkeypatch.setattr(f"mechanisms.{module}.load_embedder", ToyEmbedder)


@pytest.fixture(scope="session")
def real_data() -> Callable[[str, str], list[Record]]:
    """Rows of a research data set, e.g. `real_data("agnews", "train")`; skips where the data is not at hand."""

    def rows(name: str, split: str) -> list[Record]:
        path = DATA / name / f"{split}.csv"
        if not path.exists():
            pytest.skip(f"REAL DATA MISSING: {name}/{split}.csv is not under DPICL_DATA")
        with path.open(encoding="utf-8", newline="") as file:
            return [Record(row["text"], row["label"]) for row in csv.DictReader(file)]

    return rows


@pytest.fixture(scope="session")
def embedded_model():
    """The real model, loaded once."""
    from mechanisms.inference.models.listed import EMBEDDED
    from mechanisms.inference.models.loading import load_model

    return load_model(EMBEDDED)


@pytest.fixture(scope="session")
def random_model():
    """The small model of random weights, loaded once."""
    from mechanisms.inference.models.loading import load_model
    from tests.small_model import small_model

    return load_model(small_model())


@pytest.fixture
def small_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The small model is the one that is taken where none is named."""
    from mechanisms.inference.models import default_model
    from tests.small_model import small_model

    monkeypatch.setenv("DPICL_MODEL", small_model())
    yield
    default_model.cache_clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of lies: what each pretends, the test that found it, and whether that one is of `make quick`."""
    reports = [each for kind in ("passed", "failed") for each in terminalreporter.getreports(kind)]
    tried = [each for each in reports if "::test_a_lie_is_found[" in each.nodeid and each.when == "call"]
    found = [value for each in tried for name, value in each.user_properties if name == "lie"]
    if tried:
        terminalreporter.section("planted lies")
        for says, killer, tier in found:
            terminalreporter.line(f"{says} | {killer.removeprefix('tests/')} | {tier}")
        terminalreporter.line(f"{len(found)} of {len(tried)} found")
