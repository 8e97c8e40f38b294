"""`score`: a private accuracy of any set of demonstrations."""

from __future__ import annotations

import argparse
from typing import Any

from mechanisms import api
from mechanisms.cli.options import add_label_names, add_reading_options, add_settings, of_rows, spec_of
from mechanisms.cli.output import add_json, progress, show
from mechanisms.demos.findings import DEMONSTRATIONS
from mechanisms.inference.models.listing import default_name
from mechanisms.records import Dataset
from mechanisms.runs.score import ScoredSet, ScoreFound, ScoreRequest
from mechanisms.sampling import ADJACENCY

_OTHER_READER = "another model wrote the set: read here by {reader}, without what was measured for the other one"


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("csv", metavar="FILE")
    parser.add_argument("demos", metavar="DEMOS", help="a demo set, or JSON by hand with 'demonstrations' and 'task'")
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--label-column", default="label")
    add_label_names(parser)
    add_reading_options(parser)
    parser.add_argument("--unit-column", help="user id: the privacy unit becomes all rows of a user")
    parser.add_argument("--drop-duplicates", action="store_true")
    parser.add_argument("--name", help="the data set's name in the ledger (default: the file's name)")
    parser.add_argument("--epsilon", type=float, required=True, help="what the units that score pay")
    parser.add_argument(
        "--share",
        type=float,
        default=ScoreRequest.share,
        metavar="W",
        help="the part of the units that scores: in a recipe with roles, the scorers' (default: %(default)s)",
    )
    parser.add_argument(
        "--prototypes-epsilon",
        type=float,
        metavar="E",
        help="also score class means of embeddings, without a language model; the units that do not score pay E",
    )
    parser.add_argument("--model", default=default_name())
    add_settings(parser, ("delta", "max_record_tokens", "max_unit_records"))
    add_json(parser)
    parser.set_defaults(run=_score)


def _score(options: argparse.Namespace) -> None:
    scored = api.read_any(options.demos)
    request = ScoreRequest(spec_of(options), options.share, options.prototypes_epsilon)
    dataset = api.load(
        options.csv,
        scored.labels,
        text=options.text_column,
        label=options.label_column,
        user=options.unit_column,
        name=options.name,
        drop_duplicates=options.drop_duplicates,
        **of_rows(options),
    )
    for warning in api.recognise(dataset):
        progress(warning)
    model = api.load_model(options.model)
    if scored.model_sha256 not in (None, model.sha256):
        progress(_OTHER_READER.format(reader=model.name))
    found = api.score_as(request, scored, dataset, model)
    for name, arm in found.score.arms.items():
        if arm.wide:
            progress(f"{name}: too few rows to say much; raise --share or --epsilon")
    show(options, _document(found, request, scored, dataset))


def _document(found: ScoreFound, request: ScoreRequest, scored: ScoredSet, dataset: Dataset) -> dict[str, Any]:
    """A document like a demo set's `score`, with the cost, and with the sizes that weigh labels."""
    own = found.score.exported(without=DEMONSTRATIONS not in found.score.arms)
    return {
        **found.score.to_json(),
        "gains": {
            f"{own} over {name}": {"value": gain.accuracy, "interval": list(gain.interval)}
            for name, gain in found.score.gains.items()
        },
        "private": found.reason is None,
        **({"reason": found.reason} if found.reason else {}),
        "epsilon": found.claim.epsilon,
        "epsilon_check": found.claim.check,
        "delta": found.claim.delta,
        "unit": dataset.unit,
        "adjacency": ADJACENCY,
        "share": request.share,
        "event": found.event.to_json(),
        "public_inputs": list(found.public_inputs),
        **({} if scored.sizes is None else {"sizes": dict(scored.sizes), "weights": dict(scored.weights)}),
        "shown": list(api.disclosures(dataset)),
        "spent_before": {"epsilon": found.before.epsilon, "delta": found.before.delta},
    }


COMMANDS = {"score": _add_options}
