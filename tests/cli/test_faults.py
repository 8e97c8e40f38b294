"""Faults of the machine as whoever types a command meets them: one line, an exit code, an unharmed ledger."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from mechanisms.accounting import PrivacyLedger
from mechanisms.cli.main import main
from mechanisms.errors import ModelUnavailable
from mechanisms.inference.models import conversion, weights
from tests.accounting.test_faults import no_room, one_line, run
from tests.conftest import ROOT
from tests.examples import BANK

COLUMNS = "--text-column text --label-column topic --labels Cards,Fraud --sizes counted --delta 1e-5 --epsilon 2"
SMALL = "--allow-left-out --recipe tokens --per-subset 1 --subsets 6 --tokens 2 --candidates 10"
WRITE = f"synthesize {BANK} {COLUMNS} {SMALL}".split()
NO_NETWORK = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
"""Nothing listens there."""


def typed(*arguments: str, limit: str = "", **settings: str) -> tuple[int, list[str]]:
    """Exit code, and lines on standard error, of a command in a process of its own; nothing went to standard output.

    Args:
        arguments: of the command.
        limit: a shell's command before it.
        settings: of the environment.
    """
    line = ["sh", "-c", f'{limit or ":"}; exec "$@"', "sh", sys.executable, "-m", "mechanisms", *arguments]
    environment = {**os.environ, **settings}
    ended = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    return ended.returncode, ended.stderr.splitlines()


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_the_ledger_stays(data_folder):
    run(PrivacyLedger())
    before = PrivacyLedger().snapshot("clinic", "record")
    cap = ("ledger", "cap", "clinic", "--epsilon", "9", "--delta", "1e-4")
    code, [line] = typed(*cap, limit="ulimit -f 8")
    assert code in (1, 2)
    assert "ledger" in line
    assert PrivacyLedger().snapshot("clinic", "record") == before
    assert main(list(cap)) == 0


@pytest.mark.nightly  # half a minute of the hub's own tries
def test_a_model_that_is_not_here_without_a_network_is_one_line_and_nothing_is_charged(data_folder, tmp_path):
    code, lines = typed(*WRITE, "--model", "nobody/nothing", HF_HOME=str(tmp_path / "hub"), **NO_NETWORK)
    assert code == 4
    assert len(lines) == 1
    assert "nobody/nothing" in lines[0]
    assert PrivacyLedger().names() == []


@pytest.fixture
def gguf(monkeypatch):
    """A model to be converted, so far as this test goes; how it would be kept is `kept`'s."""
    path = Path(tempfile.mkdtemp(), "model.gguf")  # where others may read it too
    path.parent.chmod(0o755)
    path.write_bytes(b"GGUF")
    part = SimpleNamespace(save_pretrained=lambda folder: Path(folder, "config.json").write_bytes(bytes(10**5)))
    model = SimpleNamespace(config=part, generation_config=part)
    monkeypatch.setattr(conversion, "_without_weights", lambda gguf: (model, part))
    monkeypatch.setattr(conversion, "_tensors", lambda *_: iter([("weight", torch.zeros(10**5))]))
    yield path
    shutil.rmtree(path.parent)


@pytest.mark.parametrize("most", [0, 50, 4096])
def test_a_cache_that_is_full_is_one_line_and_is_left_as_it_was(gguf, tmp_path, monkeypatch, most):
    cache = tmp_path / "cache"
    monkeypatch.setenv("DPICL_CACHE", str(cache))
    with no_room(most), pytest.raises(ModelUnavailable) as refused:
        conversion.converted(gguf)
    assert one_line(refused.value, str(cache))
    assert [path for path in cache.iterdir() if path.suffix != ".sha256"] == []
    assert conversion.converted(gguf).is_dir()  # a digest that was cut off would name another folder
    assert weights.remembered_digest(gguf) == weights.file_digest(gguf)
