"""One model at a time: the old one goes first, comes back where the new one cannot be had, and is never torn away."""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dpicl_ui.frame.model_loader import AT_START, EmbedderLoader, ModelLoader
from dpicl_ui.privacy.step import ModelChoice
from mechanisms.errors import ModelUnavailable, UsageError
from mechanisms.inference.engine.threads import computing
from mechanisms.inference.models import embedder as embedder_module
from mechanisms.inference.models import loading
from mechanisms.inference.models.embedder import SentenceEmbedder, load_embedder
from mechanisms.inference.models.listed import EMBEDDED, ModelListing, available_models
from mechanisms.inference.models.loading import ModelNeeds, load_model
from mechanisms.runs import work as run_work
from mechanisms.runs.work import Speed
from tests.toy_embedder import ToyEmbedder
from tests.toy_model import ToyModel
from tests.ui.generate.recording import HOSTILE
from tests.ui.tabs import in_page, services, tags, text_of

pytestmark = pytest.mark.slow


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
    monkeypatch.setattr(loading, "load_model", held.load)
    monkeypatch.setattr(run_work, "measure_speed", lambda model: Speed(1e-4, 1e-4, 1e-3))
    monkeypatch.setattr(loading, "needs", lambda name: ModelNeeds(1000, on_disk=True))
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


def test_what_fails_brings_the_old_one_back(shelf):
    loader = begun()
    shelf.missing = {OTHER}
    loader.choose(OTHER)
    assert loader.model().name == f"toy {EMBEDDED}"
    assert (loader.name, loader.problem, loader.refusal) == (EMBEDDED, None, f"No {OTHER} here.")
    loader.choose("another")
    assert loader.model().name == "toy another"
    assert loader.refusal is None


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


def test_one_model_is_loaded_at_a_time(shelf):
    loader, free = begun(), threading.Event()
    shelf.meanwhile = free.wait
    loader.choose(OTHER)
    with pytest.raises(UsageError, match="being loaded"):
        loader.choose(EMBEDDED)
    free.set()
    assert loader.model().name == f"toy {OTHER}"


@pytest.mark.parametrize("name", [EMBEDDED, OTHER, AT_START, "/etc/passwd"])
def test_a_locked_model_stays(shelf, name):
    loader = begun(OTHER, locked=True)
    with pytest.raises(UsageError, match="locked"):
        loader.choose(name)
    assert shelf.asked == [OTHER]


def test_the_largest_that_fits_and_takes_about_five_minutes_is_offered(shelf, monkeypatch):
    """Among those that write of everything under a licence that asks nothing; fetched before the old one goes."""
    sizes = {"same": 1000, "next": 2000, "fits": 4000, "files": 5000, "slow": 9000}
    listed = [ModelListing(name, name, size, True, offered=name != "files") for name, size in sizes.items()]
    monkeypatch.setattr(loading, "available_models", lambda: listed)
    monkeypatch.setattr(loading, "free_memory", lambda: (10**9, 0))
    memory = {name: ModelNeeds(size, on_disk=True) for name, size in sizes.items()} | {EMBEDDED: ModelNeeds(1000, True)}
    monkeypatch.setattr(loading, "needs", lambda name: memory[name])
    per_run = 130_000 * 5e-4 + 22_500 * 5e-4
    monkeypatch.setattr(run_work, "measure_speed", lambda model: Speed(5e-4, 5e-4, 1e-3))
    loader = begun()
    offer = loader.offer()
    assert (offer.present, offer.better.name, offer.memory) == (1000, "fits", memory["fits"].memory)
    assert offer.seconds == pytest.approx(4 * per_run)
    assert offer.seconds < 330 < 9 * per_run
    monkeypatch.setattr(loading, "free_memory", lambda: (memory["next"].memory, 0))
    assert loading.better_writer(1000, 10**6).name == "next"
    monkeypatch.setattr(loading, "free_memory", lambda: (0, 0))
    assert loading.better_writer(1000, 10**6) is None
    assert begun(locked=True).offer() is None


def test_what_cannot_be_fetched_leaves_the_present_model(shelf, monkeypatch):
    loader = begun()

    def offline(*args):
        raise ModelUnavailable("Connect to the hub.")

    monkeypatch.setattr(loading, "fetched", offline)
    with pytest.raises(ModelUnavailable, match="Connect"):
        [*loader.fetched(OTHER)]
    assert loader.title == f"toy {EMBEDDED}"
    assert shelf.asked == [EMBEDDED]


@pytest.mark.parametrize("closed", [False, True], ids=["stopped", "page closed"])
def test_fetching_can_be_stopped_and_leaves_the_present_model(shelf, monkeypatch, closed):
    loader, ended = begun(), threading.Event()

    def endless(name, tell, freed):
        try:
            while True:
                tell("fetching it")
                time.sleep(0.01)
        finally:
            ended.set()

    monkeypatch.setattr(loading, "fetched", endless)
    progress = loader.fetched(OTHER)
    assert "fetching it" in words(next(progress))
    assert loader.fetching
    if closed:
        progress.close()
    else:
        loader.stop_fetching()
        with pytest.raises(ModelUnavailable, match="was stopped"):
            list(progress)
    assert ended.is_set()
    assert not loader.fetching
    assert loader.title == f"toy {EMBEDDED}"
    assert shelf.asked == [EMBEDDED]
    monkeypatch.setattr(loading, "fetched", lambda name, tell, freed: tell("fetching it"))
    [*loader.fetched(OTHER), *loader.changed(OTHER)]
    assert loader.title == f"toy {OTHER}"


class ComputingEmbedder(ToyEmbedder):
    embed = computing(ToyEmbedder.embed)


def test_nothing_is_embedded_while_a_model_is_read(shelf, monkeypatch):
    """transformers sets torch's default numbers for the whole process meanwhile."""
    assert {each.__code__ for each in (SentenceEmbedder._vector, load_model, load_embedder)} == {
        computing(len).__code__
    }
    monkeypatch.setattr(loading, "load_model", computing(shelf.load))
    monkeypatch.setattr(embedder_module, "load_embedder", ComputingEmbedder)
    loader, reading, free = begun(), threading.Event(), threading.Event()
    embedder, found = EmbedderLoader(loader).embedder(), list[Any]()

    def read() -> None:
        reading.set()
        free.wait()

    shelf.meanwhile = read
    loader.choose(OTHER)
    assert reading.wait(60)
    other = threading.Thread(target=lambda: found.append(embedder.embed(["a text"])), daemon=True)
    other.start()
    other.join(0.05)
    embedded_meanwhile = [*found]
    free.set()
    other.join(60)
    assert embedded_meanwhile == []
    assert np.array_equal(found[0], ToyEmbedder().embed(["a text"]))


# The model's card in step 2.


def words(tree: Any) -> str:
    return " ".join(text_of(tree).split())


def choice(loader: ModelLoader) -> ModelChoice:
    return in_page(lambda: ModelChoice(services(loader=loader)))


def loaded(made: ModelChoice, *chosen: str) -> tuple[str, str]:
    """What stands there in the end, and the notice."""
    *_, fetched = made._fetch(*chosen)
    last = functools.reduce(dict.__or__, made._load(fetched[made.fetched]))
    return words(last[made.there]), words(last[made.notice])


def test_what_is_here_comes_first_and_the_loaded_one_is_chosen(shelf):
    made = choice(begun())
    assert [name for _, name in made.name.choices] == [each.name for each in available_models()]
    assert made.name.value == EMBEDDED


def test_a_page_whose_model_is_locked_neither_asks_for_paths_nor_shows_the_operators(shelf):
    loader = begun("/models/secret/own", locked=True)
    loader.model().name = "own"
    made = choice(loader)
    assert not hasattr(made, "name")
    assert "/models" not in str(made.there.get_config())


def test_loading_tells_how_far_it_is_and_how_it_ended(shelf):
    made = choice(begun())
    there, notice = loaded(made, OTHER, "")
    assert there.startswith(f"toy {OTHER} is loaded. It is prompted in plain text")
    assert notice == "The model is loaded."
    shelf.missing = {"some/hub"}
    there, notice = loaded(made, OTHER, " some/hub ")
    assert there.startswith(f"toy {OTHER} is loaded")
    assert "No some/hub here. The previous model is loaded again" in there
    assert notice == ""
    shelf.missing |= {OTHER}
    assert "No model is loaded" in loaded(made, EMBEDDED, "some/hub")[0]
    assert "img" not in tags(ModelLoader(HOSTILE).status())
