"""A temporary folder for this process, whose files are deleted when they are old and when the process ends.

An upload stays on the disk until a handler takes it, and some are never taken. A killed process leaves its folder; the
next process that starts deletes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

_PREFIX = "dpicl-studio-"
_LOCK = "alive"
_OLD, _LOOK = 600.0, 120.0
"""Seconds after which an untouched file is deleted, and seconds between two checks."""


class TemporaryFolder:
    """The folder for temporary files of this process and of Gradio, locked as long as the process lives.

    Args:
        base: the parent folder; None for the system's temporary folder.
    """

    def __init__(self, base: Path | None = None) -> None:
        base = base or Path(tempfile.gettempdir())
        base.mkdir(parents=True, exist_ok=True)
        sweep(base)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        self._lock = (self.path / _LOCK).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def use(self) -> None:
        """Use the folder, delete old files every two minutes, and delete all of it when the process is terminated."""
        tempfile.tempdir = str(self.path)
        os.environ["GRADIO_TEMP_DIR"] = str(self.path / "gradio")
        threading.Thread(target=self._keep_clean, daemon=True).start()
        signal.signal(signal.SIGTERM, self._end)

    def remove(self) -> None:
        """Delete the folder."""
        self._lock.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def remove_old(self, now: float) -> None:
        """Delete files that were not touched for ten minutes, and Gradio's empty folders."""
        for path in sorted(self.path.rglob("*"), reverse=True):  # files before their folder
            with suppress(OSError):  # already deleted, or a folder that is not empty
                if path.name == _LOCK or now - path.stat().st_mtime <= _OLD:
                    continue
                if path.is_dir():
                    path.rmdir()
                else:
                    path.unlink()

    def _keep_clean(self) -> None:
        while True:
            time.sleep(_LOOK)
            self.remove_old(time.time())

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.remove()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


def sweep(base: Path) -> None:
    """Delete the folders of processes that no longer live."""
    for folder in base.glob(f"{_PREFIX}*"):
        try:
            with (folder / _LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # its process lives, it is being made, or it belongs to another account
