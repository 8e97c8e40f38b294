"""`bench`: the engine beside plain loops and the machine's ceiling."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from mechanisms.audit.bench import Measured, bench
from mechanisms.cli.output import add_json, progress, show
from mechanisms.data.headers import guess_columns
from mechanisms.data.sources import EXAMPLES, name_of, read_table
from mechanisms.errors import DataError
from mechanisms.inference.engine.threads import fixed_thread_count
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.listing import default_name


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="write few tokens: under two minutes on two cores")
    parser.add_argument("--texts", metavar="FILE", help="public texts to measure on (default: the bundled messages)")
    parser.add_argument("--model", default=default_name())
    add_json(parser)
    parser.set_defaults(run=_bench)


def _bench(options: argparse.Namespace) -> None:
    model, texts = load_model(options.model, fixed_thread_count()), _texts(options)  # what it times takes turns
    found = []
    for measured in bench(model, texts, options.quick):
        found.append(measured)
        progress(_line(measured))
    document = {
        "model": model.name,
        "measured": [_plain(each) for each in found],
        "missed": [f"{each.setting}: {each.what}" for each in found if not each.holds],
    }
    if options.json:
        show(options, document)
    else:
        missed = document["missed"]
        progress("\nEverything asked for holds." if not missed else "\nMissed: " + "; ".join(map(str, missed)))


def _texts(options: argparse.Namespace) -> list[str]:
    file = options.texts or EXAMPLES[0].path
    table = read_table(file)
    text, _ = guess_columns(table)
    texts = [cell for cell in table.frame[text] if cell.strip()] if text else []
    if not texts:
        raise DataError(f"'{name_of(file)}' has no rows with text: give a file with a text column.")
    return texts


def _line(measured: Measured) -> str:
    asked = ""
    if measured.at_least is not None:
        asked = f"  (at least {measured.at_least:g}{'' if measured.holds else ': MISSED'})"
    if measured.at_most is not None:
        asked = f"  (at most {measured.at_most:g}{'' if measured.holds else ': MISSED'})"
    return f"{measured.setting}: {measured.what}: {measured.value:.4g} {measured.unit}{asked}"


def _plain(measured: Measured) -> dict[str, Any]:
    return {name: value for name, value in asdict(measured).items() if value is not None} | {"holds": measured.holds}


COMMANDS = {"bench": _add_options}
