"""Likeness of public drafts to real rows, by the words that an owner gives for text, label and length.

    python -m research.benchmarks.wordings DATA [--drafts 32] [--rows 400] [--runs 2]

For each task: the general words "Text" and "Label", the words that step 1 proposes as chips, and these with the length
of a text. "tstr" is the accuracy of a logistic regression on embeddings of the drafts, tested on real rows; "cover" the
mean cosine similarity of a real row to the nearest draft of its label. Nothing private is released: rows are read to
measure only.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

from mechanisms.inference.language_model import Embedder, LanguageModel
from mechanisms.inference.models import load_embedder, load_model
from mechanisms.noise import SecureRandomness
from mechanisms.records import Record, default_template
from mechanisms.runs.defaults import draft_tokens_of_texts
from mechanisms.runs.drafts import write_drafts
from research.measures.linear_classifier import LinearClassifier

TASKS = {
    "agnews": ("Article", "Topic"),
    "sst2": ("Review", "Sentiment"),
    "trec": ("Question", "Kind"),
}
"""Data sets, and what their owner would call a text and its label."""


def rows_of(path: Path, most: int) -> list[Record]:
    """At most so many rows of a file, spread over it."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [Record(row["text"], row["label"]) for row in csv.DictReader(file)]
    return rows[:: max(1, len(rows) // most)][:most]


def likeness(
    model: LanguageModel, embedder: Embedder, rows: list[Record], words: tuple[str, str], length: int | None, count: int
) -> tuple[float, float]:
    """The figures "tstr" and "cover" of drafts under some words."""
    labels = tuple(sorted({row.label for row in rows}))
    template = default_template(labels, *words)
    tokens = draft_tokens_of_texts(length)
    drafts = list[tuple[str, str]]()
    for label in labels:
        taken = [text for _, text in drafts]
        written = write_drafts(model, template, label, labels, count, tokens, SecureRandomness(), taken=taken)
        drafts += [(label, text) for text in written]
    made, real = (embedder.embed(texts) for texts in ([text for _, text in drafts], [row.text for row in rows]))
    classifier = LinearClassifier(made, [label for label, _ in drafts])
    own = np.array([label for label, _ in drafts]) == np.array([row.label for row in rows])[:, None]
    cover = np.where(own, real @ made.T, -np.inf).max(axis=1).mean()
    return classifier.accuracy(real, [row.label for row in rows]).value, float(cover)


def main() -> None:
    """Print a table, a line for each task and wording."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--drafts", type=int, default=32)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    model, embedder = load_model(), load_embedder()
    print("| task | words | drafts of | tstr | cover |\n|---|---|---|---|---|")
    for task, owner in TASKS.items():
        rows = rows_of(options.data / task / "test.csv", options.rows)
        length = int(np.median([len(row.text.split()) for row in rows]))
        for words, declared in ((("Text", "Label"), None), (owner, None), (owner, length)):
            found = [likeness(model, embedder, rows, words, declared, options.drafts) for _ in range(options.runs)]
            tstr, cover = (" / ".join(f"{each[i]:.3f}" for each in found) for i in (0, 1))
            print(
                f"| {task} | {', '.join(words)} | {draft_tokens_of_texts(declared)} tokens | {tstr} | {cover} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
