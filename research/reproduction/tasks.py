"""The public data sets of the papers, which stand in for the private file, and the words of their prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mechanisms.accounting import PrivacyLedger, fingerprint
from mechanisms.data.columns import ColumnMapping, to_dataset
from mechanisms.data.disclosures import NO_NOISE, owners_of
from mechanisms.data.sources import read_table
from mechanisms.errors import UsageError
from mechanisms.records import Dataset, PromptTemplate, Record


@dataclass(frozen=True)
class Task:
    """A data set with its prompts.

    Attributes:
        title: its name in the papers.
        labels: in the papers' order. For `slots` those with demonstrations: the ten most common of the test file.
        instruction, text, label: the words of the classification prompt (Zhao et al. 2021, table 5; Tang et al. 2024,
            table 7).
        sentence: the prompt for a text of a label (Tang et al. 2024, table 5).
        kind: the kind of text in that prompt.
        tokens: T, the tokens of a demonstration (Tang et al. 2024, table 9).
        max_record_tokens: the public cap on a text in a prompt.
        smallest: the rows of the smallest label of the whole training file, or all rows for `slots`.
        slots: whether a label is a phrase of its text, which the model has to find; test rows may have any label.
    """

    title: str
    labels: tuple[str, ...]
    instruction: str
    text: str
    label: str
    sentence: str
    tokens: int
    max_record_tokens: int
    smallest: int
    kind: str = "text"
    slots: bool = False

    @property
    def reading(self) -> PromptTemplate:
        """The words of the classification prompt."""
        return PromptTemplate(self.instruction, self.text, self.label)

    @property
    def asked(self) -> dict[str, Any]:
        """The prompt for a text, as fields of `mechanisms.runs.spec.RunSpec`."""
        return {"kind": self.kind, "sentence": self.sentence}


def _of_films(title: str, slot: str, rows: int, labels: str) -> Task:
    """A slot of MIT Movies, in the words of Zhao et al. 2021, table 6."""
    sentence = (
        f"Given a property of {slot} for the film, generate a description accordingly and make sure to include the "
        f"given {slot} in the description.\n\n{slot}: {{label}}"
    )
    return Task(title, tuple(labels.split(", ")), "", "Sentence", slot, sentence, 20, 48, rows, "sentence", slots=True)


_TOPICS = "Company School Artist Athlete Politician Transportation Building Nature Village Animal Plant Album Film Book"
TASKS = {
    "agnews": Task(
        "AG News",
        ("World", "Sports", "Business", "Technology"),
        "Classify the news articles into the categories of World, Sports, Business, and Technology.",
        "Article",
        "Answer",
        "Given a label of news type, generate the chosen type of news accordingly.\n\nNews Type: {label}",
        tokens=100,
        max_record_tokens=96,
        smallest=30_000,
    ),
    "dbpedia": Task(
        "DBpedia",
        tuple(_TOPICS.split()),
        "Classify the documents based on whether they are about a Company, School, Artist, Athlete, Politician, "
        "Transportation, Building, Nature, Village, Animal, Plant, Album, Film, or Book.",
        "Article",
        "Answer",
        "Given a label of document type, generate the chosen type of document accordingly.\n\nDocument Type: {label}",
        tokens=100,
        max_record_tokens=96,
        smallest=40_000,
    ),
    "trec": Task(
        "TREC",
        ("Number", "Location", "Person", "Description", "Entity", "Abbreviation"),
        "Classify the questions based on whether their answer type is a Number, Location, Person, Description, Entity, "
        "or Abbreviation.",
        "Question",
        "Answer Type",
        "Given a label of answer type, generate a question based on the given answer type accordingly.\n\n"
        "Answer Type: {label}",
        tokens=15,
        max_record_tokens=32,
        smallest=86,
    ),
    "mit_g": _of_films(
        "MIT-G",
        "Genre",
        2_953,
        "comedy, animated, horror, romantic comedy, drama, science fiction, thriller, action, documentary, western",
    ),
    "mit_d": _of_films(
        "MIT-D",
        "Director",
        1_561,
        "disney, steven spielberg, james cameron, martin scorsese, ridley scott, alfred hitchcock, quentin tarantino, "
        "pixar, stanley kubrick, tim burton",
    ),
}


def rows_of(path: Path, task: Task, any_label: bool = False) -> Sequence[Record]:
    """The rows of a data set's file (columns `text` and `label`) that have one of the task's labels, or any.

    Raises:
        DataError: the file cannot be read, or a column is missing.
        UsageError: a label has no row.
    """
    rows = to_dataset(read_table(path), ColumnMapping("text", "label"), task.title, ()).records
    found = [each for each in rows if any_label or each.label in task.labels]
    if missing := [label for label in task.labels if not any(each.label == label for each in found)]:
        raise UsageError(f"'{path}' has no row with the label '{missing[0]}': it is not {task.title} in these words.")
    return found


def training_rows(data: Path, name: str) -> Sequence[Record]:
    """The rows that stand in for the private file of a task, marked as public data used without noise.

    Raises:
        DataError: the file cannot be read, or a column is missing.
        UsageError: a label has no row, or the ledger knows some of the rows.
    """
    rows = rows_of(data / name / "train.csv", TASKS[name], any_label=TASKS[name].slots)
    take_as_public(name, rows, NO_NOISE)
    return rows


def take_as_public(name: str, rows: Sequence[Record], mark: str) -> None:
    """Refuse rows of a private data set, and mark the others in case they become part of a private data set later.

    Raises:
        UsageError: the ledger knows some of the rows.
    """
    known, ledger = fingerprint(Dataset(name, (), rows)), PrivacyLedger()
    if owners := owners_of(known, ledger):
        raise UsageError(
            f"The files of {name} share rows with your data set '{owners[0]}': a grid is charged to no ledger and "
            "writes rows without noise into prompts. Give it public research data alone."
        )
    ledger.rows.mark_rows(known.rows, mark)
