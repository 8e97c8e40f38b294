"""Structured records: do they all parse and validate, how long do they take, and who decides their tokens?

    python -m research.benchmarks.structured movies.jsonl

The file is JSON Lines with the properties of `MOVIE`; research/docs/open_answers.md has what was measured.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import jsonschema

from mechanisms.accounting import PrivacyLedger, PrivacyTarget, fingerprint
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.sources import KIND, RECORD, read_records
from mechanisms.inference.models.catalogue import load_model
from mechanisms.noise import SecureRandomness
from mechanisms.records import Dataset, PromptTemplate
from mechanisms.runs.events import DemoCompleted
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.run import synthesize
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class, mechanism_names

GENRES = ("Action", "Adventure", "Animated", "Comedy", "Crime", "Documentary", "Drama", "Fantasy", "Horror", "Musical")
MORE = ("Mystery", "Romance", "Science Fiction", "Short", "Silent", "Sports", "Thriller", "War", "Western")
MOVIE = RecordSchema(
    {
        "type": "object",
        "properties": {
            "title": {"type": "string", "minLength": 1, "maxLength": 60},
            "year": {"type": "integer", "minimum": 1900, "maximum": 2029},
            "genres": {"type": "array", "items": {"enum": [*GENRES, *MORE]}, "minItems": 1, "maxItems": 2},
            "extract": {"type": "string", "minLength": 20, "maxLength": 200},
        },
        "required": ["title", "year", "genres", "extract"],
    }
)
LABEL, DELTA = "Movie", 1e-5


def main() -> None:
    options = _options()
    table = read_records(Path(options.file), MOVIE, LABEL)
    dataset = to_dataset(table, ColumnMapping(RECORD, KIND), "movies", (LABEL,))
    request = _request(options, dataset).calibrated()
    model = load_model(options.model)
    _ = model.vocabulary  # read once, and not counted here
    with tempfile.TemporaryDirectory() as folder:
        ledger = PrivacyLedger(Path(folder))
        started = time.perf_counter()
        told = list(synthesize(dataset, request, model, ledger, SecureRandomness()))
        seconds = time.perf_counter() - started
    done = [event for event in told if isinstance(event, DemoCompleted)]
    print(json.dumps(_report(done, request, seconds) | {"model": model.name}, indent=2, ensure_ascii=False))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--mechanism", default="gaussian", choices=mechanism_names())
    parser.add_argument("--records", type=int, default=4)
    parser.add_argument("--subsets", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--max-record-tokens", type=int, default=80)
    return parser.parse_args()


def _request(options: argparse.Namespace, dataset: Dataset) -> SynthesisRequest:
    return SynthesisRequest(
        labels=dataset.labels,
        template=PromptTemplate("Write one JSON record of the given kind.", "JSON record", "Kind"),
        plan=SamplingPlan(Scheme.PER_DEMONSTRATION, options.subsets, tokens=options.tokens, shots=options.records),
        mechanism=mechanism_class(options.mechanism)(),
        target=PrivacyTarget(options.epsilon, DELTA),
        sizes=dataset.counted_sizes(),
        content=fingerprint(dataset).content,
        candidates=50,
        max_record_tokens=options.max_record_tokens,
        schema=MOVIE,
    )


def _report(done: list[DemoCompleted], request: SynthesisRequest, seconds: float) -> dict[str, object]:
    validator = jsonschema.Draft202012Validator(MOVIE.document)
    parsed = [_parsed(event.demonstration.text) for event in done]
    counts = [event.tokens for event in done if event.tokens]
    total = sum(each.charged + each.forced + each.rest for each in counts)
    shares = {what: sum(getattr(each, what) for each in counts) / total for what in ("charged", "forced", "rest")}
    return {
        "records": len(done),
        "parse": sum(each is not None for each in parsed) / len(done),
        "validate": sum(validator.is_valid(each) for each in parsed) / len(done),
        "seconds_a_record": seconds / len(done),
        "tokens_a_record": total / len(done),
        "shares_of_tokens": shares,
        "epsilon": request.claim().epsilon,
        "signal_to_noise": request.mechanism.signal_to_noise(request.plan),
        "texts": [event.demonstration.text for event in done],
    }


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


if __name__ == "__main__":
    main()
