"""`score`: a private accuracy of any set of demonstrations."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.cli.label_names import add_label_names, label_names
from mechanisms.cli.output import add_json, progress, show
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.sizes import WHETHER_MET, WHETHER_SHOWN
from mechanisms.data.sources import name_of, read_source
from mechanisms.demos.findings import DEMONSTRATIONS
from mechanisms.files import text_of
from mechanisms.inference.models.catalogue import load_model
from mechanisms.inference.models.embeddings import load_embedder
from mechanisms.inference.models.listing import EMBEDDED
from mechanisms.records import Dataset
from mechanisms.runs.request import FILE_FORMAT, LABEL_SET
from mechanisms.runs.score import ScoreFound, ScoreRequest, read_set, score_set, with_choice
from mechanisms.sampling import Adjacency

_OTHER_READER = "another model wrote the set: read here by {reader}, without what was measured for the other one"


def add_commands(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("score", help="a private accuracy of a set of demonstrations, on rows of a file")
    parser.add_argument("csv", metavar="FILE")
    parser.add_argument("demos", metavar="DEMOS", help="a demo set, or JSON by hand with 'demonstrations' and 'task'")
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--label-column", default="label")
    add_label_names(parser)
    parser.add_argument("--unit-column", help="user id: the privacy unit becomes all rows of a user")
    parser.add_argument("--drop-duplicates", action="store_true")
    parser.add_argument("--name", help="the data set's name in the ledger (default: the file's name)")
    parser.add_argument("--epsilon", type=float, required=True, help="what the units that score pay")
    parser.add_argument("--delta", type=float, required=True, help="failure probability of the claim, well under 1/n")
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
    parser.add_argument("--max-record-tokens", type=int, default=ScoreRequest.max_record_tokens)
    parser.add_argument("--max-unit-records", type=int, default=ScoreRequest.max_unit_records)
    parser.add_argument("--model", default=EMBEDDED)
    add_json(parser)
    parser.set_defaults(run=_score)


def _score(options: argparse.Namespace) -> None:
    scored = with_choice(read_set(text_of(options.demos)))
    request = ScoreRequest(
        target=PrivacyTarget(options.epsilon, options.delta),
        by_user=options.unit_column is not None,
        share=options.share,
        max_record_tokens=options.max_record_tokens,
        max_unit_records=options.max_unit_records,
        prototypes_epsilon=options.prototypes_epsilon,
    )
    table, ledger = read_source(options.csv), PrivacyLedger()
    mapping = ColumnMapping(options.text_column, options.label_column, options.unit_column, options.drop_duplicates)
    mapping = replace(mapping, label_names=label_names(options))
    dataset = to_dataset(table, mapping, (options.name or name_of(options.csv)).strip(), scored.labels)
    for warning in (*table.remarks, *ledger.rows.recognise(fingerprint(dataset))):
        progress(warning)
    embedder = None if request.prototypes_epsilon is None else load_embedder()
    model = load_model(options.model)
    if scored.as_read_by(model) is not scored and scored.model_sha256 is not None:
        progress(_OTHER_READER.format(reader=model.name))
    found = score_set(dataset, scored, request, model, ledger, embedder)
    for line in _remarks(found):
        progress(line)
    show(options, _document(found, request, dataset, ledger))


def _remarks(found: ScoreFound) -> list[str]:
    wide = [name for name, arm in found.score.arms.items() if arm.wide]
    return [f"{name}: too few rows to say much; raise --share or --epsilon" for name in wide]


def _document(found: ScoreFound, request: ScoreRequest, dataset: Dataset, ledger: PrivacyLedger) -> dict[str, Any]:
    """The shape of a demo set's `score`, with what it cost."""
    shown, score = ledger.rows.marks(fingerprint(dataset)), found.score
    own = score.exported(without=DEMONSTRATIONS not in score.arms)
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
        "adjacency": Adjacency.ADD_OR_REMOVE.value,
        "share": request.share,
        "event": found.event.to_json(),
        "public_inputs": [LABEL_SET, FILE_FORMAT, WHETHER_SHOWN, WHETHER_MET],
        "shown": list(shown),
        "spent_before": {"epsilon": found.before.epsilon, "delta": found.before.delta},
    }
