"""`score`: a private accuracy of any set of demonstrations."""

from __future__ import annotations

import argparse
from typing import Any

from mechanisms import api
from mechanisms.cli.options import add_settings, spec_of
from mechanisms.cli.output import add_json, progress, show
from mechanisms.cli.rows import add_private_rows, loaded_private
from mechanisms.demos.findings import DEMONSTRATIONS
from mechanisms.inference.models.listing import default_name
from mechanisms.records import Dataset
from mechanisms.runs.score import ScoredSet, ScoreFound, ScoreRequest
from mechanisms.sampling import ADJACENCY

_OTHER_READER = "another model wrote the set: read here by {reader}, without what was measured for the other one"


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("csv", metavar="FILE")
    parser.add_argument("demos", metavar="DEMOS", help="a demo set, or JSON by hand with 'demonstrations' and 'task'")
    add_private_rows(parser)
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
    spec = spec_of(options)
    dataset = loaded_private(options, scored.labels)
    for warning in api.recognise(dataset):
        progress(warning)
    model = api.load_model(options.model)
    if scored.model_sha256 not in (None, model.sha256):
        progress(_OTHER_READER.format(reader=model.name))
    found = api.score(
        scored,
        dataset,
        epsilon=options.epsilon,
        delta=spec.delta,
        share=options.share,
        max_record_tokens=spec.max_record_tokens,
        max_unit_records=spec.max_unit_records,
        prototypes_epsilon=options.prototypes_epsilon,
        model=model,
    )
    for name, arm in found.score.arms.items():
        if arm.wide:
            progress(f"{name}: too few rows to say much; raise --share or --epsilon")
    show(options, _document(found, options.share, scored, dataset))


def _document(found: ScoreFound, share: float, scored: ScoredSet, dataset: Dataset) -> dict[str, Any]:
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
        "share": share,
        "event": found.event.to_json(),
        "public_inputs": list(found.public_inputs),
        **({} if scored.sizes is None else {"sizes": dict(scored.sizes), "weights": dict(scored.weights)}),
        "shown": list(api.disclosures(dataset)),
        "spent_before": {"epsilon": found.before.epsilon, "delta": found.before.delta},
    }


COMMANDS = {"score": _add_options}
