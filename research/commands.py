"""A benchmark that keeps its runs as lines, and its two commands: `run` measures, `table FILE` prints what is there."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from typing import Any

Act = Callable[[argparse.Namespace], None]


def lines(path: str) -> list[dict[str, Any]]:
    """What has been measured so far; nothing where there is no file yet."""
    return [json.loads(line) for line in open(path, encoding="utf-8")] if os.path.exists(path) else []


def run_and_table(about: str | None, run: Act, table: Act) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """The whole parser, and that of `run`, for the benchmark's own options; the parsed options have `act`."""
    parser = argparse.ArgumentParser(description=about)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("--out", required=True)
    one.set_defaults(act=run)
    shown = commands.add_parser("table")
    shown.add_argument("file")
    shown.set_defaults(act=table)
    return parser, one
