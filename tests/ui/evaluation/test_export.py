"""Step 5: what is copied is what the app itself would ask, and runs as it is."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpicl_ui.export import DEMO_SET, ExportStep, by_directions, saved, used
from mechanisms.demos.demo_set import to_text
from mechanisms.demos.directions import Directions
from mechanisms.demos.signature import signed
from mechanisms.errors import UsageError
from mechanisms.exports.chat import conversation
from mechanisms.exports.export_format import ReleasedFile, format_named
from mechanisms.inference.prompts import QueryWords
from mechanisms.records import Dataset, Demonstration, Record
from tests.exports.sets import single
from tests.toy_embedder import ToyEmbedder
from tests.ui.generate.recording import HOSTILE, LABELS, demo_set
from tests.ui.tabs import in_page, owned, write

DATA = Dataset("d", LABELS, tuple(Record(each, each) for each in LABELS))
QUERY = "a text of mine"
TRICKY = f'{HOSTILE} \'quoted\' """ \\ {{braces}} \u202e \U0001f600'
SET = demo_set(*(Demonstration(f"{TRICKY} {label}", label) for label in LABELS))
EXPECTED = QueryWords(SET.template, SET.demonstrations).as_text(QUERY)


def asked(code: str, monkeypatch: pytest.MonkeyPatch, answer: str = "News") -> list[Any]:
    """What the code asks either library for, with a text of its own in place of the blank."""
    told: list[Any] = []

    def create(**request: Any) -> Any:
        told.append(request)
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=answer))])

    def generate(prompt: str, **_: Any) -> Any:
        told.append(prompt)
        return [{"generated_text": answer}]

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    monkeypatch.setitem(sys.modules, "openai", SimpleNamespace(OpenAI=lambda **_: client))
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(pipeline=lambda *_, **__: generate))
    exec(code.replace("[your text]", QUERY), {})
    return told


def test_six_lines_ask_what_the_app_would(monkeypatch: pytest.MonkeyPatch, capsys):
    *_, code = used(SET)
    assert len(code.splitlines()) == 6
    assert asked(code, monkeypatch) == [EXPECTED]
    assert capsys.readouterr().out == "News\n"


@pytest.mark.parametrize(
    ("which", "answer", "answers"),
    [
        (1, "News", lambda request: request["extra_body"]["structured_outputs"]["choice"]),
        (
            2,
            '{"label": "News"}',
            lambda request: request["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"],
        ),
    ],
    ids=["vLLM", "OpenAI"],
)
def test_six_lines_send_the_messages_and_allow_labels_alone(
    which: int, answer: str, answers: Any, monkeypatch: pytest.MonkeyPatch, capsys
):
    code = used(SET)[which]
    assert len(code.splitlines()) == 6
    [request] = asked(code, monkeypatch, answer)
    assert capsys.readouterr().out == "News\n"
    assert answers(request) == [*SET.labels]
    query = {"role": "user", "content": QUERY}
    assert request["messages"] == [*conversation(SET, SET.demonstrations), query]


def test_a_set_of_one_label_leaves_a_server_no_choice_to_make(monkeypatch: pytest.MonkeyPatch):
    for code in used(single("one"))[1:3]:
        [request] = asked(code, monkeypatch, "Letter")
        assert request["temperature"] == 0
        assert request.keys().isdisjoint({"extra_body", "response_format"})


def test_messages_stand_first_as_they_are_exported():
    [messages] = format_named("messages").write(ReleasedFile.read(to_text(signed(SET)))).values()
    assert used(SET)[0] == messages


def test_the_prompt_is_the_same_with_a_blank():
    *_, prompt, _ = used(SET)
    assert prompt.replace("[your text]", QUERY).rstrip("\n") == EXPECTED


# By directions, without a language model.

EMBEDDER = ToyEmbedder()
NAMED = (HOSTILE, TRICKY, "Sport")
DIRECTIONS = Directions.of(EMBEDDER, NAMED, EMBEDDER.embed(["minister vote", "rain wind", "goal match"]))
DIRECTED = replace(SET, labels=NAMED, words={TRICKY: ("wind", "rain", "storm")}, directions=DIRECTIONS)


class Transformer:
    """In place of the model of the library that the code imports."""

    def __init__(self, name: str) -> None:
        assert name == EMBEDDER.name

    def encode(self, texts: list[str], normalize_embeddings: bool) -> NDArray[np.float32]:
        assert normalize_embeddings
        return EMBEDDER.embed(texts)


@pytest.mark.parametrize("text", ["a vote", "some rain", "the goal", "none of the words", TRICKY])
def test_six_lines_find_the_label_that_the_directions_find(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    code, file = by_directions(DIRECTED), saved(DEMO_SET, DIRECTED)
    assert len(code.splitlines()) == 6
    (tmp_path / file.name).write_bytes(file.content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=Transformer))
    exec(code.replace("'[your text]'", repr(text)), {})
    [nearest] = DIRECTIONS.nearest([text], EMBEDDER)
    assert capsys.readouterr().out == f"{NAMED[nearest]}\n"


def test_directions_are_offered_where_a_set_has_them(tmp_path: Path):
    step = in_page(lambda: ExportStep(owned(tmp_path)))
    request: Any = SimpleNamespace(session_hash="one", username=None)
    for made in (SET, DIRECTED):
        write(step._app.session(request), made, DATA)
        shown = step._show(request)[step.by_directions].get_config()
        assert (shown["visible"], shown["value"]) == (made is DIRECTED, by_directions(made))


def test_the_prompt_says_the_words_of_a_label():
    *codes, prompt, _ = used(DIRECTED)
    assert f"{TRICKY}: texts about wind, rain, storm" in prompt
    assert all("texts about wind, rain, storm" in code for code in codes)
    assert not any("texts about" in code for code in used(SET))


def test_a_set_that_promises_nothing_is_not_offered_for_copying():
    with pytest.raises(UsageError, match="not private"):
        used(replace(SET, certificate=replace(SET.certificate, private=False)))
