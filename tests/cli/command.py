"""The command line, called in this process."""

from __future__ import annotations

from collections.abc import Callable

from mechanisms.cli.main import main
from tests.examples import BANK

__all__ = ["BANK", "run"]


def run(capsys, line: str, *extra: str, program: Callable[[list[str]], int] = main) -> tuple[int, str, str]:
    try:
        code = program([*line.split(), *extra])
    except SystemExit as stop:  # argparse
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def check_refusal(capsys, line: str, code: int, message: str, program: Callable[[list[str]], int] = main) -> None:
    """One line on stderr that says what is wrong, nothing on stdout, and the exit code."""
    found, out, err = run(capsys, line, program=program)
    last = err.strip().splitlines()[-1]
    assert (found, out) == (code, "")
    assert message in last
    assert "Traceback" not in err
