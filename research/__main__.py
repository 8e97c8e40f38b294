"""The experiments that are commands: `python -m research reproduce ...`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from mechanisms.cli.main import run_command
from research.attacks import command as attack
from research.measures import command as measure
from research.reproduction import command as reproduce
from research.reproduction import films


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(prog="python -m research", description="Experiments beside DP-ICL Studio.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for each in (attack, films, measure, reproduce):
        each.add_commands(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code is that of `mechanisms.cli.main.run_command`."""
    return run_command(parser().parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
