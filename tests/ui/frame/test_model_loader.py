"""One model at a time: the old one goes first, comes back where the new one cannot be had, and is never torn away."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dpicl_ui.frame.model_loader import AT_START, EmbedderLoader, ModelLoader
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference.models import EMBEDDED, catalogue, embeddings
from mechanisms.inference.models.catalogue import ModelNeeds
from mechanisms.runs import stage as run_stage
from mechanisms.runs.stage import Speed
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel

pytestmark = pytest.mark.slow

GB = 10**9
OTHER = "other/model"


class Shelf:
    """Models by name; what is asked of it, and whether an older one was still there then."""

    def __init__(self) -> None:
        self.made: list[weakref.ref[ToyModel]] = []
        self.asked: list[str] = []
        self.beside: list[int] = []
        self.missing: set[str] = set()
        self.meanwhile: Callable[[], Any] = lambda: None

    def load(self, name: str, tell: Callable[[str], None]) -> ToyModel:
        self.asked.append(name)
        self.beside.append(sum(each() is not None for each in self.made))
        tell("reading it")
        self.meanwhile()
        if name in self.missing:
            raise ModelUnavailable(f"No {name} here.")
        model = ToyModel()
        model.name = f"toy {name}"
        self.made.append(weakref.ref(model))
        return model


@pytest.fixture
def shelf(monkeypatch) -> Iterator[Shelf]:
    held = Shelf()
    monkeypatch.setattr(catalogue, "load_model", held.load)
    monkeypatch.setattr(run_stage, "measure", lambda model: Speed(1e-4, 1e-4, 1e-3))
    monkeypatch.setattr(catalogue, "needs", lambda name: ModelNeeds(1000, on_disk=True))
    return held


def begun(name: str = EMBEDDED, locked: bool = False) -> ModelLoader:
    loader = ModelLoader(name, locked)
    loader.start()
    loader.wait()
    return loader


def test_the_old_model_is_gone_before_the_new_one_is_read(shelf):
    loader = begun()
    assert loader.title == f"toy {EMBEDDED}"
    for name in ("a/hub-id", OTHER):
        loader.choose(name)
        loader.wait()
        assert (loader.name, loader.title, loader.problem, loader.refusal) == (name, f"toy {name}", None, None)
    assert shelf.asked == [EMBEDDED, "a/hub-id", OTHER]
    assert shelf.beside == [0, 0, 0]


def test_a_model_is_measured_anew(shelf):
    loader = begun()
    before, seen = loader.speed, []
    shelf.meanwhile = lambda: seen.append((loader.ready, loader.speed, loader.settled, loader.stage))
    loader.choose(OTHER)
    loader.wait()
    assert seen == [(False, None, False, "reading it")]
    assert loader.speed is not None
    assert loader.speed is not before


def test_what_fails_brings_the_old_one_back(shelf):
    loader = begun()
    shelf.missing = {OTHER}
    loader.choose(OTHER)
    assert loader.model().name == f"toy {EMBEDDED}"
    assert (loader.name, loader.problem, loader.refusal) == (EMBEDDED, None, f"No {OTHER} here.")
    loader.choose("another")
    assert loader.model().name == "toy another"
    assert loader.refusal is None


def test_where_the_old_one_fails_too_the_page_says_that_there_is_none(shelf):
    loader = begun()
    shelf.missing = {OTHER, EMBEDDED}
    loader.choose(OTHER)
    loader.wait()
    assert (loader.ready, loader.problem) == (False, f"No {EMBEDDED} here.")
    with pytest.raises(ModelUnavailable, match="No embedded here"):
        loader.model()
    shelf.missing = set()
    loader.choose(EMBEDDED)
    assert loader.model().name == f"toy {EMBEDDED}"


def test_a_model_in_use_is_not_replaced(shelf):
    loader = begun()
    held = loader.model()
    with pytest.raises(UsageError, match="still in use"):
        loader.choose(OTHER)
    assert loader.model() is held
    assert loader.speed is not None
    assert shelf.asked == [EMBEDDED]
    del held
    loader.choose(OTHER)
    assert loader.model().name == f"toy {OTHER}"


def test_what_cannot_fit_is_refused_while_the_old_model_stays(shelf, monkeypatch):
    sizes = {EMBEDDED: 2 * GB, OTHER: 5 * GB}
    monkeypatch.setattr(catalogue, "needs", lambda name: Sized(sizes[name]))
    loader = begun()
    held = weakref.ref(loader.model())
    monkeypatch.setattr(catalogue, "available_memory", lambda: 3 * GB - 1)
    with pytest.raises(ModelUnavailable, match="choose a smaller one"):
        loader.choose(OTHER)
    gc.collect()
    assert loader.model() is held()
    monkeypatch.setattr(catalogue, "available_memory", lambda: 3 * GB)  # with what the old one leaves
    loader.choose(OTHER)
    assert loader.model().name == f"toy {OTHER}"


class Sized:
    def __init__(self, memory: int) -> None:
        self.memory = memory


def test_one_model_is_loaded_at_a_time(shelf):
    loader, free = begun(), threading.Event()
    shelf.meanwhile = free.wait
    loader.choose(OTHER)
    with pytest.raises(UsageError, match="being loaded"):
        loader.choose(EMBEDDED)
    free.set()
    assert loader.model().name == f"toy {OTHER}"


def test_the_model_of_the_start_comes_back_without_being_named(shelf):
    loader = begun("/models/own")
    loader.choose(OTHER)
    loader.wait()
    loader.choose(AT_START)
    loader.wait()
    assert loader.name == "/models/own"
    assert ModelLoader("/models/own").title == "own"


@pytest.mark.parametrize("name", [EMBEDDED, OTHER, AT_START, "/etc/passwd"])
def test_a_locked_model_stays(shelf, name):
    loader = begun(OTHER, locked=True)
    with pytest.raises(UsageError, match="locked"):
        loader.choose(name)
    assert shelf.asked == [OTHER]


def test_nothing_is_embedded_while_a_model_is_read(shelf, monkeypatch):
    monkeypatch.setattr(embeddings, "load_embedder", ToyEmbedder)
    loader, reading, free = begun(), threading.Event(), threading.Event()
    embedder, found = EmbedderLoader(loader).embedder(), list[Any]()

    def read() -> None:
        reading.set()
        free.wait()

    shelf.meanwhile = read
    loader.choose(OTHER)
    reading.wait()
    other = threading.Thread(target=lambda: found.append(embedder.embed(["a text"])))
    other.start()
    other.join(0.05)
    assert found == []
    free.set()
    other.join()
    assert np.array_equal(found[0], ToyEmbedder().embed(["a text"]))
