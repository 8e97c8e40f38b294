"""The size of the project: files and lines of the program and its tests, words of its documentation.

python -m research.size
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = ("app.py", "dpicl_ui", "mechanisms")
BESIDE = ("research", "tests")


def sources(place: str) -> list[Path]:
    """The Python files of a folder, or the file itself."""
    path = ROOT / place
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def lines(paths: list[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def row(name: str, files: int, count: int, what: str) -> None:
    print(f"{name:<24}{files:>6} files{count:>9,} {what}")


def main() -> None:
    for place in (*PROGRAM, *BESIDE):
        found = sources(place)
        row(place, len(found), lines(found), "lines")
        rooms = sorted(each for each in (ROOT / place).glob("*/") if sources(str(each.relative_to(ROOT))))
        for room in rooms if place in PROGRAM else []:
            inside = sources(str(room.relative_to(ROOT)))
            row(f"  {room.name}", len(inside), lines(inside), "lines")
    program = [path for place in PROGRAM for path in sources(place)]
    row("program", len(program), lines(program), "lines")
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    for name, some in (("README and CONTRIBUTING", pages[:2]), ("docs", pages[2:])):
        row(name, len(some), sum(len(page.read_text(encoding="utf-8").split()) for page in some), "words")


if __name__ == "__main__":
    main()
