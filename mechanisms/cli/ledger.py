"""`ledger` and `models`: spending and caps of data sets, and the models that `--model` accepts on this machine."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mechanisms import api
from mechanisms.accounting import Cap, PrivacyLedger
from mechanisms.cli.options import add_device, add_json, model_progress, progress, show
from mechanisms.errors import UsageError
from mechanisms.inference.models import device_here, memory_of
from mechanisms.inference.models.listed import available_models, choose_default, default_name, published_as
from mechanisms.records import privacy_unit


def _add_ledger(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    shown = verbs.add_parser("show", help="spend of one data set, or of all")
    shown.add_argument("name", nargs="?")
    cap = verbs.add_parser("cap", help="set what a data set may spend in all; fix it before the first run")
    cap.add_argument("name")
    cap.add_argument("--epsilon", type=float, required=True)
    cap.add_argument("--delta", type=float, required=True)
    cap.add_argument("--unit-column", metavar="COLUMN", help="of users: their cap, not that of single rows")
    export = verbs.add_parser("export", help="every run of every data set")
    for verb, run in ((shown, _show), (cap, _cap), (export, _export)):
        add_json(verb)
        verb.set_defaults(run=run)


def _snapshots(ledger: PrivacyLedger, name: str | None = None) -> list[dict[str, Any]]:
    known = [(each, unit) for each, unit in ledger.names() if name in (None, each)]
    if name is not None and not known:
        raise UsageError(f"The ledger knows no data set '{name}'.")
    return [ledger.snapshot(each, unit).to_json() for each, unit in known]


def _show(options: argparse.Namespace) -> None:
    show(options, {"data_sets": _snapshots(PrivacyLedger(), options.name)})


def _cap(options: argparse.Namespace) -> None:
    name = options.name.strip()  # runs strip the name, too: the cap must apply to the same data set
    if not name or (options.unit_column is not None and not options.unit_column.strip()):
        raise UsageError("Give the data set's name, and the column of users where it has one: neither may be empty.")
    ledger, unit = PrivacyLedger(), privacy_unit(options.unit_column)
    ledger.set_cap(name, unit, Cap(options.epsilon, options.delta))
    show(options, ledger.snapshot(name, unit).to_json())


def _export(options: argparse.Namespace) -> None:
    ledger = PrivacyLedger()
    names = list(dict.fromkeys(name for name, _ in ledger.names()))
    runs = {name: ledger.history(name) for name in names}
    caps = {name: ledger.caps(name) for name in names}
    show(options, {"data_sets": _snapshots(ledger), "caps": caps, "runs": runs})


def _add_models(parser: argparse.ArgumentParser) -> None:
    verbs = "fetch: fetch and convert one; use: fetch one and make it the default of this installation"
    parser.add_argument("verb", nargs="?", choices=("list", "fetch", "use"), default="list", help=verbs)
    words = f"a listed model, a folder, a GGUF file or a hub id (default: {default_name()})"
    parser.add_argument("model", nargs="?", metavar="NAME", default=default_name(), help=words)
    add_device(parser)
    add_json(parser)
    parser.set_defaults(run=_models)


def _models(options: argparse.Namespace) -> None:
    if options.verb != "list":
        model = api.load_model(options.model, model_progress(options.model))
        api.prepare_words(lambda share: progress(f"placing common words: {share:.0%}"))
        if options.verb == "use":
            path = Path(options.model).expanduser()
            choose_default(str(path.resolve()) if path.exists() else options.model)
        known = published_as(model.sha256)
        about = {"published": known} if known else {}
        show(options, {"name": model.name, "sha256": model.sha256, **about, "device": model.arithmetic})
        return
    listed = available_models()
    found = [asdict(each) | {"memory": memory_of(each.name), "times": each.times} for each in listed]
    if options.json:
        show(options, {"device": device_here(), "default": default_name(), "models": found})
        return
    print(f"Device: {device_here()}\nDefault: {default_name()}\n\n{'model':39}  memory   time  what it is")
    for each in found:
        missing = "; damaged on this machine" if each["damaged"] else "; to be fetched: models use NAME"
        about = each["description"] + ("" if each["available"] else missing)
        print(f"{each['name']:39} {each['memory'] / 1e9:4.1f} GB {each['times']:5.1f}x  {about}")
    print("\ntime: times the embedded model's, by size alone; none but the embedded one was measured")


COMMANDS = {"ledger": _add_ledger, "models": _add_models}
