"""`models`: the models that `--model` accepts, what each needs on this machine, and which is the default."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from mechanisms.cli.output import add_json, show
from mechanisms.inference.models import ModelListing, available_models, choose_default, default_name


def _add_options(parser: argparse.ArgumentParser) -> None:
    verbs = "fetch: fetch and convert one; use: fetch one and make it the default of this installation"
    parser.add_argument("verb", nargs="?", choices=("list", "fetch", "use"), default="list", help=verbs)
    parser.add_argument("--model", default=default_name(), help="which one to fetch or use")
    add_json(parser)
    parser.set_defaults(run=_models)


def _models(options: argparse.Namespace) -> None:
    from mechanisms import api  # takes seconds
    from mechanisms.inference.engine.device import chosen_device

    if options.verb == "list":
        found = [_told(each) for each in available_models()]
        document: dict[str, Any] = {"device": str(chosen_device()), "default": default_name(), "models": found}
        if options.json:
            show(options, document)
            return
        print(f"Device: {document['device']}\nDefault: {document['default']}\n")
        print(f"{'model':38} {'memory':>8} {'time':>6}  what it is (time: times the embedded model, by size alone)")
        for each in found:
            about = each["description"] + ("" if each["available"] else "; to be fetched: models fetch --model NAME")
            print(f"{each['name']:38} {each['memory'] / 1e9:5.1f} GB {each['times']:5.1f}x  {about}")
        return
    model = api.load_model(options.model)
    if options.verb == "use":
        choose_default(options.model)
    show(options, {"name": model.name, "sha256": model.sha256, "device": str(chosen_device())})


def _told(listing: ModelListing) -> dict[str, Any]:
    from mechanisms.inference.models.catalogue import needs

    memory = needs(listing.name).memory
    return asdict(listing) | {"memory": memory, "times": round(listing.times, 1)}


COMMANDS = {"models": _add_options}
