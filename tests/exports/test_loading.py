"""Every format is read by the library that it is for, in an environment of its own (`make formats`).

promptfoo and Ollama are no Python: test_formats.py reads what is for them by their documented rules.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mechanisms.exports.chat import conversation, inert
from mechanisms.exports.export_format import format_named
from tests.conftest import ROOT
from tests.exports.sets import KINDS, pairs_of

PYTHON = ROOT / ".venv-formats/bin/python"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (ROOT / ".venv-formats/ready").exists(),
        reason="exports were not loaded by the libraries that they are for: `make formats` sets them up",
    ),
]
WRITTEN = ("labelled", "single", "staged", "worded")
OPENAI = """
from typing import List
from pydantic import ConfigDict, TypeAdapter
from openai.types.chat import ChatCompletionMessageParam
messages = TypeAdapter(List[ChatCompletionMessageParam])
for path in paths:
    lines = [json.loads(line) for line in open(path, encoding="utf-8")]
    read = [[each["content"] for each in messages.validate_python(line["messages"])] for line in lines]
    print(json.dumps([each[1:] for each in read]))
"""
DSPY = """
import dspy
for path in paths:
    asked = json.load(open(path, encoding="utf-8"))["signature"]["fields"]
    names = [field["description"][2:-1] for field in asked]
    program = dspy.Predict(" -> ".join(names))
    program.load(path)
    messages = dspy.ChatAdapter().format(program.signature, program.demos, {names[0]: "?"})
    assert program.signature.instructions in messages[0]["content"]
    print(json.dumps([[demo[name] for name in names] for demo in program.demos]))
"""
LANGCHAIN = """
from langchain_core.prompts import ChatPromptTemplate
for path in paths:
    said = json.load(open(path, encoding="utf-8"))
    filled = ChatPromptTemplate.from_messages(said, template_format="jinja2").format_messages(text="{{my}} <text>")
    print(json.dumps([each.content for each in filled]))
"""
MLFLOW = """
from mlflow.entities.model_registry import PromptVersion
for path in paths:
    prompt = PromptVersion("p", 1, json.load(open(path, encoding="utf-8")))
    assert prompt.variables == {"text"}
    print(json.dumps([each["content"] for each in prompt.format(text="{{my}} <text>")]))
"""
LANGFUSE = """
from langfuse.api import CreateChatPromptRequest, Prompt_Chat
from langfuse.model import ChatPromptClient
for path in paths:
    body = json.load(open(path, encoding="utf-8"))
    assert CreateChatPromptRequest.model_validate(body).name == body["name"]
    prompt = ChatPromptClient(Prompt_Chat.model_validate(body | {"version": 1}))
    assert prompt.variables == ["text"]
    print(json.dumps([each["content"] for each in prompt.compile(text="{{my}} <text>")]))
"""
CROISSANT = """
import mlcroissant
for path in paths:
    read = mlcroissant.Dataset(path + "/croissant.json")
    assert not read.metadata.issues.errors
    rows = read.records("demonstrations")
    print(json.dumps([[cell.decode() for cell in row.values()] for row in rows]))
"""
DATASETS = """
import datasets
for path in paths:
    rows = datasets.load_dataset(path, split="train", cache_dir=path + "-cache")
    print(json.dumps([list(row.values()) for row in rows]))
"""


def loaded(script: str, paths: list[Path]) -> list[Any]:
    """What the library says of each file, in one process: these libraries take seconds to import."""
    program = f"import json, sys\npaths = sys.argv[1:]\n{script}"
    environment = {"HOME": str(paths[0].parent), "HF_HUB_OFFLINE": "1", "PYTHONUTF8": "1", "DSPY_CACHEDIR": "cache"}
    command = [str(PYTHON), "-c", program, *map(str, paths)]
    done = subprocess.run(command, cwd=paths[0].parent, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def files(folder: Path, name: str, kinds: tuple[str, ...]) -> list[Path]:
    paths = []
    for kind in kinds:
        paths.append(folder / f"{kind}.json")
        [written] = format_named(name).write(KINDS[kind]).values()
        paths[-1].write_bytes(written.encode())
    return paths


def as_lists(pairs: list[tuple[str, str]]) -> list[list[str]]:
    return [list(pair) for pair in pairs]


def test_openai(tmp_path: Path):
    assert loaded(OPENAI, files(tmp_path, "openai", WRITTEN)) == [as_lists(pairs_of(kind)) for kind in WRITTEN]


def test_dspy(tmp_path: Path):
    assert loaded(DSPY, files(tmp_path, "dspy", (*WRITTEN, "none"))) == [
        as_lists(pairs_of(kind)) for kind in (*WRITTEN, "none")
    ]


FILLED = {"langchain": (LANGCHAIN, "messages"), "mlflow": (MLFLOW, "messages"), "langfuse": (LANGFUSE, "langfuse")}


@pytest.mark.parametrize("tool", FILLED)
def test_a_tool_fills_the_blank_of_the_messages_and_nothing_else(tool: str, tmp_path: Path):
    script, name = FILLED[tool]
    kinds = (*WRITTEN, "none", "about")
    for kind, read in zip(kinds, loaded(script, files(tmp_path, name, kinds)), strict=True):
        said = [
            inert(each["content"]) for each in conversation(KINDS[kind].demo_set, KINDS[kind].demo_set.demonstrations)
        ]
        # Jinja writes every line end as one.
        assert [line_ends(each) for each in read] == [*map(line_ends, said), "{{my}} <text>"]


def line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def test_datasets_and_croissant(tmp_path: Path):
    folders, kinds = [], (*WRITTEN, "about")
    for kind in kinds:
        folders.append(tmp_path / kind)
        folders[-1].mkdir()
        for name, written in format_named("hugging-face").write(KINDS[kind]).items():
            (folders[-1] / name).write_bytes(written.encode())
    for script in (DATASETS, CROISSANT):
        for kind, rows in zip(kinds, loaded(script, folders), strict=True):
            assert [tuple(row[:2]) for row in rows] == pairs_of(kind)
