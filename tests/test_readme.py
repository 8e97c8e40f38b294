"""The README's commands run as they are printed, in their order, on the bundled data and the real model."""

from __future__ import annotations

import re
import shlex

import pytest

from mechanisms.cli.main import main
from tests.conftest import ROOT

PROGRAM = [".venv/bin/python", "-m", "mechanisms"]


def commands() -> list[list[str]]:
    """Words of each command in the README's `sh` blocks; `make` sets up what the others need."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    found = [shlex.split(line, comments=True) for line in lines]
    return [words for words in found if words and words[0] != "make"]


@pytest.mark.slow
def test_every_command_of_the_readme_works(tmp_path, monkeypatch, capsys):
    (tmp_path / "assets").symlink_to(ROOT / "assets")
    monkeypatch.chdir(tmp_path)
    found = commands()
    assert {words[3] for words in found} >= {"synthesize", "evaluate", "query", "account", "plan", "answer", "ledger"}
    for words in found:
        assert words[:3] == PROGRAM
        code = main(words[3:])
        out, err = capsys.readouterr()
        assert code == 0, f"{shlex.join(words)}: {err}"
        assert out or "--out" in words
