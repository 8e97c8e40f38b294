"""Every format is read by the library that it is for, in an environment of its own (`make formats`).

promptfoo is no Python: test_formats.py holds its tests against the documented shape.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mechanisms.exports.export_format import format_named
from mechanisms.inference.prompts import one_line
from tests.conftest import ROOT
from tests.exports.sets import KINDS, pairs_of

PYTHON = ROOT / ".venv-formats/bin/python"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (ROOT / ".venv-formats/ready").exists(),
        reason="exports were not loaded by datasets, dspy, langchain-core and openai: `make formats` sets them up",
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
from langchain_core.prompts import load_prompt
for path in paths:
    prompt = load_prompt(path)
    assert prompt.metadata["dpicl"]["private"] is True
    print(json.dumps(prompt.format(**{prompt.input_variables[0]: "{my} text"})))
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


def test_langchain(tmp_path: Path):
    kinds = (*WRITTEN, "none")
    for kind, prompt in zip(kinds, loaded(LANGCHAIN, files(tmp_path, "langchain", kinds)), strict=True):
        template = KINDS[kind].demo_set.template
        text, label = template.text, template.label
        shown = [f"{text}: {one_line(one)}\n{label}: {one_line(other)}" for one, other in pairs_of(kind)]
        assert prompt == "\n\n".join([template.instruction, *shown, f"{text}: {{my}} text\n{label}:"])


def test_datasets(tmp_path: Path):
    folders = []
    for kind in WRITTEN:
        folders.append(tmp_path / kind)
        folders[-1].mkdir()
        for name, written in format_named("hugging-face").write(KINDS[kind]).items():
            (folders[-1] / name).write_bytes(written.encode())
    for kind, rows in zip(WRITTEN, loaded(DATASETS, folders), strict=True):
        made = KINDS[kind].demo_set.demonstrations
        assert rows == [[each.text, each.label] for each in made]
