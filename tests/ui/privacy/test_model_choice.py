"""The model's card in step 2, without a page: how loading goes, and what may be asked of the server."""

from __future__ import annotations

import asyncio
from typing import Any

import gradio as gr

from dpicl_ui.frame.guard import guarded
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Sessions
from dpicl_ui.privacy.model_choice import ModelChoice, there
from mechanisms.errors import ModelUnavailable
from mechanisms.inference.models import EMBEDDED, available_models, catalogue
from mechanisms.inference.models.catalogue import ModelNeeds
from tests.ui.frame.test_model_loader import OTHER, begun, shelf  # noqa: F401
from tests.ui.generate.recording import HOSTILE
from tests.ui.tabs import services
from tests.ui.test_drawing import tags
from tests.ui.trees import text_of


def choice(loader: ModelLoader) -> ModelChoice:
    async def built() -> ModelChoice:
        with gr.Blocks():
            return ModelChoice(services(Sessions(), None, loader))

    return asyncio.run(built())


def words(tree: Any) -> str:
    return " ".join(text_of(tree).split())


def test_what_is_here_comes_first_and_the_loaded_one_is_chosen(shelf):  # noqa: F811
    made = choice(begun())
    assert [name for _, name in made.name.choices] == [each.name for each in available_models()]
    assert made.name.value == EMBEDDED
    assert made.own.visible


def test_a_page_whose_model_is_locked_neither_asks_for_paths_nor_shows_the_operators(shelf):  # noqa: F811
    loader = begun("/models/secret/own", locked=True)
    loader.model().name = "own"
    made = choice(loader)
    assert not hasattr(made, "name")
    assert "/models" not in str(made.there.get_config())


def test_loading_tells_how_far_it_is_and_how_it_ended(shelf):  # noqa: F811
    made = choice(begun())
    *_, last = made._load(OTHER, "")
    assert words(last[made.there]).startswith(f"toy {OTHER} is loaded")
    assert "The model is loaded" in text_of(last[made.notice])
    shelf.missing = {"some/hub"}
    *_, last = made._load(OTHER, " some/hub ")
    assert words(last[made.there]).startswith(f"toy {OTHER} is loaded")
    assert "No some/hub here. The model before it is back" in text_of(last[made.there])
    assert last[made.notice] == []
    shelf.missing |= {OTHER}
    *_, last = made._load(EMBEDDED, "some/hub")
    assert "No model is loaded" in text_of(last[made.there])


def test_an_unloadable_choice_leaves_everything_as_it_is(shelf, monkeypatch):  # noqa: F811
    loader = begun()
    made = choice(loader)

    def missing(name: str) -> ModelNeeds:
        raise ModelUnavailable(f"Nothing at {name}.")

    monkeypatch.setattr(catalogue, "needs", missing)
    [shown] = guarded(made.notice, lambda: {made.load: None})(made._load)(EMBEDDED, HOSTILE)
    assert HOSTILE in text_of(shown[made.notice])
    assert "img" not in tags(shown[made.notice])
    assert made.load in shown
    assert loader.ready


def test_cards_say_how_a_model_is_asked(shelf):  # noqa: F811
    loader = begun()
    assert "plain text" in text_of(there(loader))
    model = loader.model()
    model.writing_turn = ([1], [2])  # type: ignore[misc]
    assert "chat template" in text_of(there(loader))
    assert "being" not in text_of(there(ModelLoader(HOSTILE)))
    assert "img" not in tags(there(ModelLoader(HOSTILE)))
