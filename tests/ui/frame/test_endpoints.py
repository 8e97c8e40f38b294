"""What programs may ask for: three endpoints, no handler of the page, and one clear sentence where it cannot be."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import gradio as gr
import pytest

from dpicl_ui.frame.model_loader import Loaded, ModelLoader
from dpicl_ui.frame.sessions import CuratorLedger, Ledgers, TabLedgers
from dpicl_ui.page import LARGEST_SET, build
from mechanisms.accounting import PrivacyLedger
from mechanisms.api import LONGEST_TEXT, MOST_TEXTS
from mechanisms.cli.main import main
from mechanisms.demos.demo_set import to_text
from mechanisms.demos.signature import signed
from mechanisms.runs.forecast import ModelSpeed
from tests.toy_model import ToyModel
from tests.ui.generate.recording import demo_set

PUBLIC = {"/classify", "/check_certificate", "/calibrate"}


def built(ledgers: Ledgers) -> gr.Blocks:
    loader = ModelLoader("none")
    loader._loaded = Loaded(ToyModel(), ModelSpeed(1e-3, 1e-3, 1e-3), 0)
    loader._done.set()

    async def made() -> gr.Blocks:
        return build(ledgers, loader)

    return asyncio.run(made())


def named(page: gr.Blocks) -> set[str]:
    return set(page.get_api_info()["named_endpoints"])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> gr.Blocks:
    return built(CuratorLedger(PrivacyLedger(tmp_path_factory.mktemp("home"))))


def asked(page: gr.Blocks, name: str, *values: Any) -> Any:
    [endpoint] = [each for each in page.fns.values() if each.api_name == name.removeprefix("/")]
    return endpoint.fn(*values)


def test_programs_are_offered_three_endpoints_and_no_handler_of_the_page(page: gr.Blocks):
    assert named(page) == PUBLIC
    assert not page.get_api_info()["unnamed_endpoints"]
    offered = [each for each in page.fns.values() if each.api_visibility != "private"]
    assert {f"/{each.api_name}" for each in offered} == PUBLIC
    assert all(each.queue for each in offered)
    ids = {each.api_name: (each.concurrency_id, each.concurrency_limit) for each in offered}
    assert ids["classify"] == ("model", 1)
    assert ids["check_certificate"] == ids["calibrate"] == ("calibrate", 2)


def test_strangers_programs_are_offered_nothing():
    assert named(built(TabLedgers())) == set()


@pytest.mark.slow
def test_a_program_asks_and_is_answered_as_on_the_command_line(page: gr.Blocks, tmp_path, capsys):
    text = to_text(signed(demo_set()))
    answers = asked(page, "/classify", text, ["one", "two"])
    assert [set(each["probabilities"]) for each in answers] == [set(demo_set().labels)] * 2
    assert all(each["label"] == max(each["probabilities"], key=each["probabilities"].get) for each in answers)
    (tmp_path / "demos.json").write_text(text, encoding="utf-8")
    main(["account", "--json", "--from", str(tmp_path / "demos.json")])
    assert asked(page, "/check_certificate", text) == json.loads(capsys.readouterr().out)
    line = "calibrate --json --epsilon 1 --delta 1e-5 --size 8000 --subsets 50 --tokens 20"
    main(line.split())
    found = asked(page, "/calibrate", 1.0, 1e-5, 8000, "gaussian", 50, 20)
    assert found == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("/classify", ("{", ["one"]), "demo set"),
        ("/classify", (7, ["one"]), "text of its file"),
        ("/classify", ("x" * (LARGEST_SET + 1), ["one"]), "text of its file"),
        ("/classify", ("SET", []), "1 to 64 texts"),
        ("/classify", ("SET", "one"), "1 to 64 texts"),
        ("/classify", ("SET", [1]), "1 to 64 texts"),
        ("/classify", ("SET", ["one"] * (MOST_TEXTS + 1)), "1 to 64 texts"),
        ("/classify", ("SET", ["x" * (LONGEST_TEXT + 1)]), "1 to 64 texts"),
        ("/check_certificate", ("[]",), "demo set"),
        ("/calibrate", ("much", 1e-5, 100), "epsilon needs a number"),
        ("/calibrate", (1, 2, 100), "elta"),
        ("/calibrate", (1, 1e-5, 0), "size must lie"),
        ("/calibrate", (1, 1e-5, 100, "public"), "nothing to calibrate"),
        ("/calibrate", (1, 1e-5, 100, "nothing"), "nothing"),
        ("/calibrate", (1, 1e-5, 100, "gaussian", 2.5), "whole number"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(page: gr.Blocks, name: str, values: tuple[Any, ...], words: str):
    given = [to_text(signed(demo_set())) if each == "SET" else each for each in values]
    with pytest.raises(gr.Error, match=words) as refused:
        asked(page, name, *given)
    assert "\n" not in str(refused.value)
    assert not refused.value.print_exception  # a traceback in the log may quote the request
