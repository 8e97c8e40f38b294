"""Step 5: what is copied is what the app itself would ask, and runs as it is."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dpicl_ui.export import used
from mechanisms.errors import UsageError
from mechanisms.inference.prompts import QueryWords
from mechanisms.records import Demonstration
from tests.ui.generate.recording import HOSTILE, LABELS, demo_set

QUERY = "a text of mine"
TRICKY = f'{HOSTILE} \'quoted\' """ \\ {{braces}} \u202e \U0001f600'
SET = demo_set(*(Demonstration(f"{TRICKY} {label}", label) for label in LABELS))
EXPECTED = QueryWords(SET.template, SET.demonstrations).whole(QUERY)


def asked(code: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the code asks either library for, with a text of its own in place of the blank."""
    told: list[Any] = []

    def create(**request: Any) -> Any:
        told.append(request["messages"][0]["content"])
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content="News"))])

    def generate(prompt: str, **_: Any) -> Any:
        told.append(prompt)
        return [{"generated_text": "News"}]

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    monkeypatch.setitem(sys.modules, "openai", SimpleNamespace(OpenAI=lambda **_: client))
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(pipeline=lambda *_, **__: generate))
    exec(code.replace("[your text]", QUERY), {})
    return told


@pytest.mark.parametrize("which", [1, 2], ids=["an OpenAI-compatible client", "transformers"])
def test_six_lines_ask_what_the_app_would(which: int, monkeypatch: pytest.MonkeyPatch, capsys):
    code = used(SET)[which]
    assert len(code.splitlines()) == 6
    assert asked(code, monkeypatch) == [EXPECTED]
    assert capsys.readouterr().out == "News\n"


def test_the_prompt_is_the_same_with_a_blank():
    prompt, *_ = used(SET)
    assert prompt.replace("[your text]", QUERY).rstrip("\n") == EXPECTED


def test_a_set_that_promises_nothing_is_not_offered_for_copying():
    with pytest.raises(UsageError, match="not private"):
        used(replace(SET, certificate=replace(SET.certificate, private=False)))
