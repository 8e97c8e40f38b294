"""A temporary folder for this process, which goes when the process ends; a killed one's goes when the next one starts.

An upload stays on the disk until a handler takes it, and some are never taken: Gradio deletes those when they are old
(`delete_cache`), as long as it lives.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
from pathlib import Path
from types import FrameType

_PREFIX = "dpicl-studio-"
_LOCK = "alive"


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
        """Use the folder, and delete it when the process is terminated."""
        tempfile.tempdir = str(self.path)
        os.environ["GRADIO_TEMP_DIR"] = str(self.path / "gradio")
        signal.signal(signal.SIGTERM, self._end)

    def remove(self) -> None:
        self._lock.close()
        shutil.rmtree(self.path, ignore_errors=True)

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
