"""`export`: a demo set in another tool's format, from its file alone."""

from __future__ import annotations

import argparse

from mechanisms.api import export
from mechanisms.cli.output import add_json, check_apart, progress, show
from mechanisms.exports.export_format import Released, format_named, format_names
from mechanisms.files import text_of


def _add_options(parser: argparse.ArgumentParser) -> None:
    listed = "; ".join(f"{name}: {format_named(name).title}" for name in format_names())
    parser.epilog = f"Formats: {listed}."
    parser.add_argument("demos", metavar="DEMOS", help="a demo set, as `synthesize` and the app write it")
    parser.add_argument("--format", required=True, choices=format_names(), metavar="NAME", help="see below")
    parser.add_argument(
        "--out", required=True, metavar="PATH", help="a file; a format of several files makes a folder, or a .zip"
    )
    add_json(parser)
    parser.set_defaults(run=_export)


def _export(options: argparse.Namespace) -> None:
    released = Released.read(text_of(options.demos))
    chosen = format_named(options.format)
    check_apart(options.out, but=(options.demos,))
    written = [str(path) for path in export(released.text, chosen.name, options.out)]
    for said in filter(None, (chosen.caution(released.demo_set), chosen.reading(released.demo_set))):
        progress(said)
    show(options, {"format": chosen.name, "files": written, "digest": released.digest})


COMMANDS = {"export": _add_options}
