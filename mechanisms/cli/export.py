"""`export`: a demo set in the shape of another tool, from its file alone."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mechanisms.cli.output import add_json, check_apart, progress, read, show
from mechanisms.errors import AccountingError, UsageError
from mechanisms.exports.export_format import Released, packed
from mechanisms.exports.registry import format_named, format_names
from mechanisms.kept_file import keep
from mechanisms.runs.verification import verify


def add_commands(commands: Any) -> None:
    """Register the command."""
    listed = "; ".join(f"{name}: {format_named(name).title}" for name in format_names())
    parser = commands.add_parser("export", help="a demo set in the shape of another tool", epilog=f"Formats: {listed}.")
    parser.add_argument("demos", metavar="DEMOS", help="a demo set, as `synthesize` and the app write it")
    parser.add_argument("--format", required=True, choices=format_names(), metavar="NAME", help="see below")
    parser.add_argument(
        "--out", required=True, metavar="PATH", help="a file; a format of several files makes a folder, or a .zip"
    )
    add_json(parser)
    parser.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> None:
    released = Released.read(read(options.demos))
    chosen = format_named(options.format)
    files = chosen.write(released)
    if problems := verify(released.demo_set).problems:
        raise AccountingError(f"The certificate is refused, so nothing is written. {problems[0]}")
    check_apart(options.out, but=(options.demos,))
    for said in filter(None, (chosen.caution(released.demo_set), chosen.reading(released.demo_set))):
        progress(said)
    written = _write(Path(options.out), files)
    show(options, {"format": chosen.name, "files": written, "digest": released.digest})


def _write(path: Path, files: Mapping[str, str]) -> list[str]:
    if len(files) == 1 or path.suffix == ".zip":
        keep(path, packed(files))
        return [str(path)]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"Cannot make the folder '{path}': choose another place for --out.") from error
    for name, text in files.items():
        keep(path / name, text)
    return [str(path / name) for name in files]
