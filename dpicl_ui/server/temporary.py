"""A temporary folder of this process alone: what nobody took out of it goes while it runs, when it ends, or later.

Uploads are on the disk until a handler takes them, and some no handler ever takes. A process that was killed leaves its
folder; the next one that starts removes it.
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
"""Seconds after which a file that was not touched is nobody's, and between two looks for such."""


class TemporaryFolder:
    """Where this process and Gradio put files from now on; locked as long as the process lives.

    Args:
        base: where it is made; None: the system's folder for such.
    """

    def __init__(self, base: Path | None = None) -> None:
        base = base or Path(tempfile.gettempdir())
        base.mkdir(parents=True, exist_ok=True)
        sweep(base)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        self._lock = (self.path / _LOCK).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def use(self) -> None:
        """Put files here, remove old ones every few minutes, and all of them when the process is told to end."""
        tempfile.tempdir = str(self.path)
        os.environ["GRADIO_TEMP_DIR"] = str(self.path / "gradio")
        threading.Thread(target=self._keep_clean, daemon=True).start()
        signal.signal(signal.SIGTERM, self._end)

    def remove(self) -> None:
        """Nothing is left of it."""
        self._lock.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def remove_old(self, now: float) -> None:
        """Remove files that nobody touched for ten minutes, and the folders that Gradio made for them."""
        for path in sorted(self.path.rglob("*"), reverse=True):  # what is in a folder comes before it
            with suppress(OSError):  # it is gone, or is a folder with something in it
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
    """Remove the folders of processes that no longer live."""
    for folder in base.glob(f"{_PREFIX}*"):
        try:
            with (folder / _LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # it lives, is being made, or is another account's
