"""The temporary folder of a process: nobody else's goes, and nothing of its own stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from dpicl_ui.server.temporary import TemporaryFolder, sweep
from tests.ui.visit import ROOT

LIVING = """
import sys, tempfile, time
from pathlib import Path
from dpicl_ui.server.temporary import TemporaryFolder
folder = TemporaryFolder(Path(sys.argv[1]))
folder.use()
tempfile.NamedTemporaryFile(delete=False).write(b"a private cell")
print(folder.path, flush=True)
time.sleep(600)
"""


def living(base: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", LIVING, str(base)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    with process.stdout as said:
        return process, Path(said.readline().strip())


def test_whoever_is_told_to_end_leaves_nothing(tmp_path):
    process, folder = living(tmp_path)
    assert any(folder.iterdir())
    process.terminate()
    assert process.wait(60) == -signal.SIGTERM
    assert not any(tmp_path.iterdir())


def test_whoever_was_killed_is_cleaned_up_by_the_next_and_whoever_lives_is_not(tmp_path):
    process, killed = living(tmp_path)
    other, alive = living(tmp_path)
    process.kill()
    process.wait(60)
    assert killed.exists()
    sweep(tmp_path)
    assert not killed.exists()
    assert len(list(alive.iterdir())) > 1
    other.terminate()
    other.wait(60)


def test_old_files_go_and_new_ones_stay(tmp_path):
    folder = TemporaryFolder(tmp_path)
    old, new = folder.path / "gradio" / "old.csv", folder.path / "new.csv"
    old.parent.mkdir()
    for path in (old, new):
        path.write_bytes(b"x")
    for path in (old, old.parent):
        os.utime(path, (1.0, 1.0))
    folder.remove_old(new.stat().st_mtime + 1)
    assert (old.exists(), new.exists()) == (False, True)
    os.utime(old.parent, (1.0, 1.0))
    folder.remove_old(new.stat().st_mtime + 1)
    assert not old.parent.exists()
    folder.remove()
    assert not any(tmp_path.iterdir())
