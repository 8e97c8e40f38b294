"""The model's card in step 2, without a page: what another model needs, and what may be asked of the server."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import gradio as gr

from dpicl_ui.frame.guard import guarded
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Sessions
from dpicl_ui.privacy.model_choice import ModelChoice, there, would_need
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.errors import ModelUnavailable
from mechanisms.inference.models import needs
from mechanisms.inference.models.listing import EMBEDDED, GEMMA, available_models
from mechanisms.inference.models.needs import ModelNeeds
from tests.ui.frame.test_model_loader import begun, shelf  # noqa: F401
from tests.ui.generate.recording import HOSTILE
from tests.ui.privacy.test_form import DATASET
from tests.ui.privacy.test_state import FIRST
from tests.ui.tabs import confirm, services
from tests.ui.test_drawing import tags
from tests.ui.trees import text_of

TAB: Any = SimpleNamespace(username=None, session_hash="tab")


def choice(loader: ModelLoader) -> ModelChoice:
    async def built() -> ModelChoice:
        with gr.Blocks():
            return ModelChoice(services(Sessions(), None, loader))

    return asyncio.run(built())


def words(tree: Any) -> str:
    return " ".join(text_of(tree).split())


def test_what_is_here_comes_first_and_the_loaded_one_is_chosen(shelf):  # noqa: F811
    made = choice(begun(GEMMA))
    assert [name for _, name in made.name.choices] == [each.name for each in available_models()]
    assert made.name.value == GEMMA
    assert made.own.visible


def test_a_page_whose_model_is_locked_neither_asks_for_paths_nor_shows_the_operators(shelf):  # noqa: F811
    loader = begun("/models/secret/own", locked=True)
    loader.model().name = "own"
    made = choice(loader)
    assert not hasattr(made, "name")
    assert "/models" not in str(made.there.get_config())


def test_another_models_needs_and_time_are_told_before_it_is_loaded(shelf, monkeypatch):  # noqa: F811
    loader = begun()
    made, sizes = choice(loader), {EMBEDDED: 1000, GEMMA: 200_000_000}
    monkeypatch.setattr(needs, "needs", lambda name: ModelNeeds(sizes.get(name), name in sizes))
    monkeypatch.setattr(needs, "available_memory", lambda: 20 * 10**9)
    assert "The planned run" not in text_of(made._look(TAB, GEMMA, "")[made.needs])
    session = made._app.session(TAB)
    confirm(session, DATASET)
    session.of(PrivacyState).calibrate(FIRST, loader.speed)
    there_now, other, unknown = (
        text_of(made._look(TAB, *asked)[made.needs]) for asked in ((EMBEDDED, ""), (GEMMA, ""), (EMBEDDED, "some/hub"))
    )
    assert "The planned run takes about" in there_now
    assert "guessed" not in there_now
    assert f"need {needs.in_gigabytes(ModelNeeds(sizes[GEMMA], True).memory)} of memory, here 20 GB are free" in other
    assert "guessed by its size" in other
    assert "AG News" not in there_now + unknown
    assert "not known before" in unknown
    assert "The planned run" not in unknown
    assert shelf.asked == [EMBEDDED]


def test_loading_tells_how_far_it_is_and_how_it_ended(shelf):  # noqa: F811
    made = choice(begun())
    *_, last = made._load(GEMMA, "")
    assert words(last[made.there]).startswith(f"toy {GEMMA} is loaded")
    assert "The model is loaded" in text_of(last[made.needs])
    shelf.missing = {"some/hub"}
    *_, last = made._load(GEMMA, " some/hub ")
    assert words(last[made.there]).startswith(f"toy {GEMMA} is loaded")
    assert "No some/hub here. The model before it is back" in text_of(last[made.there])
    assert last[made.needs] == []
    shelf.missing |= {GEMMA}
    *_, last = made._load(EMBEDDED, "some/hub")
    assert "No model is loaded" in text_of(last[made.there])


def test_an_unloadable_choice_leaves_everything_as_it_is(shelf, monkeypatch):  # noqa: F811
    loader = begun()
    made = choice(loader)

    def missing(name: str) -> ModelNeeds:
        raise ModelUnavailable(f"Nothing at {name}.")

    monkeypatch.setattr(needs, "needs", missing)
    [shown] = guarded(made.needs, made._ready)(made._load)(EMBEDDED, HOSTILE)
    assert HOSTILE in text_of(shown[made.needs])
    assert "img" not in tags(shown[made.needs])
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
    assert "converted once" in text_of(would_need("1 GB", "2 GB", None, False, converted=False))
