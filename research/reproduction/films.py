"""`films`: records written as text, and how many of them parse and validate (Bhusal et al. 2026, table 4: Wiki-Movies).

A record is one line of JSON; nothing forces tokens to keep this form.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mechanisms import api
from mechanisms.cli.options import add_json, in_json, show
from mechanisms.data.disclosures import NO_NOISE
from mechanisms.evaluation.evaluate import Accuracy
from mechanisms.inference import LanguageModel
from mechanisms.inference.models.listed import EMBEDDED
from mechanisms.records import Dataset, Record
from research.reproduction.tasks import take_as_public
from research.runs import texts_written

LABEL = "film"
PUBLISHED = {
    "blended-logits (model not named)": {"parses": 84.2, "validates": 81.1},
    "Amin et al. 2024": {"parses": 80.6, "validates": 74.2},
}
"""Percent at epsilon 1."""


def add_commands(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("films", help="records as text: how many parse and validate, as in the papers")
    parser.add_argument("data", metavar="DATA", help="a folder with wikimovies/movies.jsonl; public data only")
    parser.add_argument("--model", default=EMBEDDED)
    parser.add_argument("--mechanism", default="blended-logits")
    parser.add_argument("--epsilon", type=float, default=1.0, help="of all records together; inf: no privacy")
    parser.add_argument("--records", type=int, default=10)
    parser.add_argument("--subsets", type=int, default=100, help="expected rows of a token")
    parser.add_argument("--tokens", type=int, default=64)
    add_json(parser)
    parser.set_defaults(run=_films)


def _films(options: argparse.Namespace) -> None:
    data = rows_of(Path(options.data) / "wikimovies" / "movies.jsonl")
    take_as_public("wikimovies", data.records, NO_NOISE)
    found = films(api.load_model(options.model), data, options)
    show(options, report(found) | {"published": PUBLISHED, "texts": list(found)})


def films(model: LanguageModel, data: Dataset, options: argparse.Namespace) -> Sequence[str]:
    """The texts of one run."""
    private = math.isfinite(options.epsilon)
    made = texts_written(
        data,
        model,
        epsilon=options.epsilon if private else 1.0,
        mechanism=options.mechanism if private else "non-private",
        kind="JSON",
        sentence="Write one {label} as a JSON object with title, year and genres.",
        shots=options.records,
        subsets=min(options.subsets, len(data.records)),
        tokens=options.tokens,
        candidates=100,
        max_record_tokens=options.tokens,
    )
    return [each.text for each in made.demonstrations]


def rows_of(path: Path) -> Dataset:
    """Films as JSON texts of title, year and genres."""
    films = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    texts = [
        json.dumps({name: each[name] for name in ("title", "year", "genres")}, ensure_ascii=False) for each in films
    ]
    return Dataset("films", (LABEL,), [Record(text, LABEL) for text in texts])


def report(texts: Sequence[str]) -> dict[str, Any]:
    """The number of texts that are JSON, and the number of these that are films."""
    parsed = [_parsed(text) for text in texts]
    counts = {"parses": sum(each is not None for each in parsed), "validates": sum(map(is_film, parsed))}
    return {"records": len(texts), **{name: in_json(Accuracy(count, len(texts))) for name, count in counts.items()}}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def is_film(document: Any) -> bool:
    """Whether a document has a title, a year and genres of the right types."""
    if not isinstance(document, dict) or not {"title", "year", "genres"} <= set(document):
        return False
    named = isinstance(document["title"], str) and isinstance(document["genres"], list)
    return named and type(document["year"]) is int and all(isinstance(each, str) for each in document["genres"])
