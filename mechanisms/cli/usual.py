"""What `synthesize` was not told, filled in as for the app and for Python."""

from __future__ import annotations

import argparse

from mechanisms.runs.defaults import usual_lengths, usual_recipe


def filled_in(options: argparse.Namespace) -> argparse.Namespace:
    """The options with a recipe and with lengths; M follows from the sizes, which may not be known yet."""
    labels = len(str(options.labels).split(","))
    records, outputs = options.schema is not None, bool(options.output_column or options.output_field)
    lengths = usual_lengths(labels, records, outputs)
    plain = not (records or outputs)
    usual: dict[str, object] = {
        "recipe": usual_recipe(labels, options.mechanism, options.shots_per_label, options.best_of, plain),
        "tokens": lengths.tokens,
        "max_record_tokens": lengths.max_record_tokens,
    }
    given = {name: value for name, value in vars(options).items() if value is not None or name not in usual}
    return argparse.Namespace(**usual | given)
