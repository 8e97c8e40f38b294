"""What an assistant is offered: sets that were named, answers as on the command line, nothing about private rows."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.shared.memory import create_connected_server_and_client_session as connected
from mcp.types import CallToolResult, TextContent

from mechanisms import confidence
from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.api import MOST_TEXTS
from mechanisms.cli.main import main
from mechanisms.cli.mcp import server
from mechanisms.demos.demo_set import DemoSet, to_text
from mechanisms.demos.signature import signed
from mechanisms.inference import LanguageModel
from mechanisms.records import Dataset, Demonstration, Record
from tests.cli.command import check_refusal
from tests.conftest import ROOT
from tests.toy_model import ToyModel
from tests.ui.generate.recording import LABELS, demo_set

pytestmark = pytest.mark.slow

TOOLS = {"sets", "demonstrations", "certificate", "classify", "evaluate", "calibrate", "plan"}
TARGET = {"epsilon": 1, "delta": 1e-5}
ROWS = ["the match ended late", "the vote was close"]


def written() -> DemoSet:
    labels = demo_set().labels
    return demo_set().with_demonstrations(
        tuple(Demonstration(text, label) for text, label in zip(ROWS, labels, strict=True))
    )


def asked(tool: str, model: Callable[[], LanguageModel] = ToyModel, **values: Any) -> CallToolResult:
    async def talk() -> CallToolResult:
        async with connected(server({"news": to_text(signed(written()))}, model)) as session:
            return await session.call_tool(tool, values)

    return asyncio.run(talk())


def answered(tool: str, **values: Any) -> Any:
    answer = asked(tool, **values)
    assert not answer.isError, answer.content
    document = answer.structuredContent
    return document["result"] if set(document) == {"result"} else document


def refusal(tool: str, **values: Any) -> str:
    answer = asked(tool, **values)
    [said] = answer.content
    assert answer.isError
    assert isinstance(said, TextContent)
    assert "\n" not in said.text
    return said.text


def test_what_is_asked_is_answered_as_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "demos.json").write_text(to_text(signed(written())), encoding="utf-8")
    main(["account", "--json", "--from", str(tmp_path / "demos.json")])
    assert answered("certificate", name="news") == json.loads(capsys.readouterr().out)
    main(
        [
            "calibrate",
            "--json",
            "--epsilon",
            "1",
            "--delta",
            "1e-5",
            "--size",
            "8000",
            "--subsets",
            "50",
            "--tokens",
            "20",
        ]
    )
    found = answered("calibrate", epsilon=1, delta=1e-5, size=8000, subsets=50, tokens=20)
    assert found == json.loads(capsys.readouterr().out)


def test_a_set_is_told_and_read():
    [told] = answered("sets")
    assert (told["name"], told["demonstrations"]) == ("news", 2)
    assert told["epsilon"] == written().certificate.claim.epsilon
    assert [each["text"] for each in answered("demonstrations", name="news")] == ROWS
    labels = [each["label"] for each in answered("classify", name="news", texts=ROWS)]
    assert set(labels) <= set(LABELS)
    found = answered("evaluate", name="news", texts=ROWS, labels=labels)
    assert (found["rows"], found["accuracy"], found["level"]) == (2, 1.0, confidence.LEVEL)
    turned = [next(other for other in LABELS if other != label) for label in labels]
    assert answered("evaluate", name="news", texts=ROWS, labels=turned)["accuracy"] == 0.0


@pytest.mark.parametrize(
    ("tool", "values", "words"),
    [
        ("classify", {"name": "/etc/passwd", "texts": ROWS}, "no set of that name"),
        ("classify", {"name": "news", "texts": []}, "1 to 64 texts"),
        ("classify", {"name": "news", "texts": ["one"] * (MOST_TEXTS + 1)}, "1 to 64 texts"),
        ("evaluate", {"name": "news", "texts": ROWS, "labels": ["News"]}, "one label for each"),
        ("evaluate", {"name": "news", "texts": ROWS, "labels": ["x", "y"]}, "No test row"),
        ("calibrate", TARGET | {"epsilon": -1, "size": 100}, "psilon"),
        (
            "plan",
            {"epsilon": 1, "delta": 1e-5, "size": 900, "max_prompt_tokens": 9, "mechanism": "x"},
            "othing to plan",
        ),
    ],
)
def test_what_cannot_be_is_said_in_one_line(tool: str, values: dict[str, Any], words: str):
    assert words in refusal(tool, **values)


def test_a_defect_quotes_nothing_of_what_was_asked():
    def broken() -> LanguageModel:
        raise ValueError("the match ended late")

    answer = asked("classify", broken, name="news", texts=ROWS)
    assert answer.isError
    assert ROWS[0] not in str(answer)


def test_whether_a_row_is_a_private_one_is_not_told_and_leaves_no_mark():
    """A mark stands in later certificates: for the price of one export an assistant would know who is in the data."""
    ledger, labels = PrivacyLedger(), LABELS
    private = fingerprint(Dataset("patients", labels, [Record(ROWS[0], labels[0]), Record("another", labels[1])]))
    ledger.rows.mark(private, "shown on a screen")
    before = ledger.rows.disclosures(private)
    asking = {"name": "news", "labels": list(labels)}
    of_a_member = answered("evaluate", texts=[ROWS[0], ROWS[1]], **asking)
    of_strangers = answered("evaluate", texts=["nobody's words", ROWS[1]], **asking)
    assert set(of_a_member) == set(of_strangers)
    assert ledger.rows.disclosures(private) == before


def test_a_client_starts_it_and_talks_to_it(tmp_path: Path):
    (tmp_path / "news.dpicl.json").write_text(to_text(signed(written())), encoding="utf-8")
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "mechanisms", "mcp", str(tmp_path / "news.dpicl.json")]
    )

    async def talk() -> tuple[set[str], CallToolResult]:
        async with stdio_client(started) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            return {each.name for each in (await session.list_tools()).tools}, await session.call_tool("sets")

    names, told = asyncio.run(talk())
    assert names == TOOLS
    assert told.structuredContent["result"][0]["name"] == "news"


def test_a_client_that_goes_is_no_defect(tmp_path: Path):
    (tmp_path / "news.dpicl.json").write_text(to_text(signed(written())), encoding="utf-8")
    command = [sys.executable, "-m", "mechanisms", "mcp", str(tmp_path / "news.dpicl.json")]
    ended = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_set_that_is_not_private_is_not_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    certificate = replace(written().certificate, private=False, reason="there is no noise")
    path = tmp_path / "shown.json"
    path.write_text(to_text(signed(replace(written(), certificate=certificate))), encoding="utf-8")
    check_refusal(capsys, f"mcp {path}", 2, "not private")
