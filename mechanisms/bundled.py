"""Files that come with the software: `assets/` of a checkout, which an installation keeps inside this package."""

from pathlib import Path

_HERE = Path(__file__).parent
_FOLDER = next(folder for folder in (_HERE / "assets", _HERE.parent / "assets") if folder.is_dir())


def bundled(name: str) -> Path:
    """Where a bundled file lies, e.g. `bundled("examples/clinic_messages.csv")`."""
    return _FOLDER / name
