"""The commands and the Python of README and docs/reference.md, run as printed on bundled data: on a toy, and with the
real model in `make nightly`."""

from __future__ import annotations

import ast
import re
import shlex

import pytest

from mechanisms.accounting import PrivacyLedger
from mechanisms.cli.main import main
from mechanisms.demos.demo_set import loads
from mechanisms.demos.signature import Signature, check_signature
from mechanisms.runs.verification import verify
from tests.conftest import ROOT

PROGRAM = [".venv/bin/python", "-m", "mechanisms"]


def blocks(kind: str, *pages: str) -> list[str]:
    """What stands in the fenced blocks of a kind, page after page."""
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in pages]
    return [block for text in texts for block in re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)]


def commands(*pages: str) -> list[list[str]]:
    """Words of each command in the `sh` blocks; `make` sets up what the others need."""
    lines = "".join(blocks("sh", *pages)).replace("\\\n", " ").splitlines()
    found = [shlex.split(line, comments=True) for line in lines]
    return [words for words in found if words and words[0] != "make"]


@pytest.fixture
def model(request):
    if request.param == "toy":
        request.getfixturevalue("toy_models")


REAL = pytest.param("real", marks=pytest.mark.nightly)


COMMANDS = {"synthesize", "account", "evaluate", "query", "plan", "score", "answer", "ledger"}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["toy", REAL], indirect=True)
def test_every_command_of_the_pages_works(model, tmp_path, monkeypatch, capsys):
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)
    found = commands("README.md", "docs/reference.md")
    assert {words[3] for words in found} >= COMMANDS
    for words in found:
        assert words[:3] == PROGRAM
        code = main(words[3:])
        out, err = capsys.readouterr()
        assert code == 0, f"{shlex.join(words)}: {err}"
        assert out or "--out" in words


@pytest.mark.slow
@pytest.mark.parametrize("model", ["toy", REAL], indirect=True)
def test_the_python_of_the_readme_works_and_is_charged(model, tmp_path, monkeypatch, capsys):
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)
    [program] = blocks("python", "README.md")
    exec(compile(program, "README.md", "exec"), {})
    promise, answers = capsys.readouterr().out.splitlines()
    assert "epsilon" in promise
    [label] = ast.literal_eval(answers)
    written = loads((tmp_path / "from_python.json").read_text(encoding="utf-8"))
    assert label in written.labels
    assert verify(written).problems == ()
    assert check_signature((tmp_path / "from_python.json").read_text(encoding="utf-8")) is Signature.VALID
    charged = PrivacyLedger().snapshot("clinic_messages", "user:patient").epsilon
    assert charged == pytest.approx(written.certificate.claim.epsilon)
    assert 3.9 < charged <= 4
