"""`models`: the models that `--model` accepts on this machine."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from mechanisms import api
from mechanisms.cli.output import add_json, show
from mechanisms.inference.models import available_models, default_name


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="?", choices=("list", "fetch"), default="list")
    parser.add_argument("--model", default=default_name(), help="which model to fetch and convert")
    add_json(parser)
    parser.set_defaults(run=_models)


def _models(options: argparse.Namespace) -> None:
    if options.verb == "fetch":
        model = api.load_model(options.model)
        show(options, {"name": model.name, "sha256": model.sha256})
        return
    show(options, {"models": [asdict(each) for each in available_models()]})


COMMANDS = {"models": _add_options}
