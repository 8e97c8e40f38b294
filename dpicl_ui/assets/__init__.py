"""Scripts and styles of the page, read from the files beside this one."""

from pathlib import Path


def asset(name: str) -> str:
    """The text of an asset."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
