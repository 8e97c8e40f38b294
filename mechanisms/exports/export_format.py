"""What a format of export is, which there are, and how all of them word a task."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mechanisms.demos.demo_set import DemoSet, loads
from mechanisms.demos.signature import digest
from mechanisms.discovery import defined, pick
from mechanisms.errors import UsageError
from mechanisms.inference import QueryWords
from mechanisms.inference.prompts import one_line
from mechanisms.records import Demonstration, PromptTemplate

# What a format of export is, and what all of them have in common: the demo-set file they start from, and refusals.

Files = Mapping[str, str]
"""Texts by the names of their files."""

_NO_DEMONSTRATIONS = (
    "This set has no demonstrations, so there is nothing to write as {}: choose the certificate, the plain prompt, "
    "DSPy or LangChain."
)
_NOT_PRIVATE = (
    "This set is not private, and {} has no place to say so: choose a format that keeps the marks, or the demo set."
)
_CARRIED = (
    "The measured correction of the model's label preferences stands in {}, as numbers to add to the labels' "
    "log-probabilities: a reader that takes the model's first word does without it."
)
_LOST = (
    "{} has no place for the measured correction of the model's label preferences: answers are then those that step 4 "
    "calls raw."
)
_UNMARKED = (
    "This set is marked for what the curator knows of the data, and {} has no place for that mark: hand the "
    "certificate page on with it."
)


@dataclass(frozen=True)
class Released:
    """A demo-set file, which is all that an export is made from.

    Attributes:
        text: of the file.
        demo_set: what it says.
        digest: by which the file is known again.
    """

    text: str
    demo_set: DemoSet
    digest: str

    @classmethod
    def read(cls, text: str) -> Released:
        """Read a demo-set file.

        Raises:
            UsageError: it is none.
        """
        return cls(text, loads(text), digest(text))


def _fits(demo_set: DemoSet) -> str | None:
    return None


@dataclass(frozen=True)
class ExportFormat:
    """A shape that another tool reads.

    Attributes:
        name: on the command line.
        title: for people.
        purpose: what it is for, in one sentence.
        file_name: of the one file, or of the archive of several.
        media_type: of that file.
        files: writes them; more than one is a folder.
        correction: where it keeps the measured correction; None: it has no place for it; empty: no model reads it.
        keeps_disclosures: whether it says where a set is not private, and that clean figures were seen.
        without_demonstrations: whether a set that has none makes sense in it.
        of_records: whether it is for records of a schema alone.
        misfit: one sentence why a set cannot be written so, beside these rules; None where it can.
    """

    name: str
    title: str
    purpose: str
    file_name: str
    media_type: str
    files: Callable[[Released], Files]
    correction: str | None = None
    keeps_disclosures: bool = True
    without_demonstrations: bool = False
    of_records: bool = False
    misfit: Callable[[DemoSet], str | None] = _fits

    def refusal(self, demo_set: DemoSet) -> str | None:
        """One sentence why a set cannot be exported so; None where it can."""
        if not (demo_set.demonstrations or self.without_demonstrations):
            return _NO_DEMONSTRATIONS.format(self.title)
        if not (demo_set.certificate.private or self.keeps_disclosures):
            return _NOT_PRIVATE.format(self.title)
        if self.of_records and demo_set.schema is None:
            return "These demonstrations are no records of a schema: choose another format."
        return self.misfit(demo_set)

    def caution(self, demo_set: DemoSet) -> str | None:
        """One sentence on a mark that this export loses; None where it loses none."""
        return _UNMARKED.format(self.title) if demo_set.certificate.disclosures and not self.keeps_disclosures else None

    def reading(self, demo_set: DemoSet) -> str | None:
        """One sentence on what becomes of the set's measured correction; None where there is none to lose."""
        if demo_set.prior is None or self.correction == "":
            return None
        return _LOST.format(self.title) if self.correction is None else _CARRIED.format(self.correction)

    def write(self, released: Released) -> Files:
        """The files of a set.

        Raises:
            UsageError: the set does not fit the format; the message says why.
        """
        if (problem := self.refusal(released.demo_set)) is not None:
            raise UsageError(problem)
        return self.files(released)


def packed(files: Files) -> bytes:
    """Files as one: itself where there is one, and a zip archive of several."""
    if len(files) == 1:
        return next(iter(files.values())).encode()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packing:
        for name, text in files.items():
            # Without a date: the same set is the same archive.
            packing.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return archive.getvalue()


def json_lines(documents: Iterable[Any]) -> str:
    """Documents one a line. In ASCII: whoever splits at every separator of lines that Unicode has finds no other."""
    return "".join(f"{json.dumps(each)}\n" for each in documents)


# Which formats of export there are: whatever modules of this package define `FORMAT`.


def format_names() -> list[str]:
    """Names of all of them, the certificate first and those for records last."""
    formats = _registered()
    return sorted(formats, key=lambda name: (formats[name].of_records, name != "certificate", name))


def format_named(name: str) -> ExportFormat:
    """The format of that name.

    Raises:
        UsageError: there is none.
    """
    return pick(_registered(), name, "format", format_names())


def _registered() -> dict[str, ExportFormat]:
    return defined("mechanisms.exports", "FORMAT")


# What is asked and what is answered: the task of a set, as every format of prompts and examples puts it.
#
# A label answers a text. Where the task has outputs an output answers it, and labels are not shown, since a query
# has none; a record of a schema answers its kind, and so does a text that stands alone.

_KIND, _RECORD = "kind", "record"


@dataclass(frozen=True)
class Wording:
    """A task as questions and answers.

    Attributes:
        template: `text` names the question's field and `label` the answer's.
        question, answer: identifiers for them, "text" and "label" where the task is to find labels.
        pairs: of every demonstration, in the set's order.
    """

    template: PromptTemplate
    question: str
    answer: str
    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, demo_set: DemoSet) -> Wording:
        """The wording of a set."""
        template, made = demo_set.template, demo_set.demonstrations
        if demo_set.schema is not None or demo_set.completes:
            turned = replace(template, text=template.label, label=template.text, output=None)
            answer = _RECORD if demo_set.schema else "text"
            return cls(turned, _KIND, answer, tuple((each.label, each.text) for each in made))
        if template.output is not None:
            asked = replace(template, label=template.output, output=None)
            return cls(asked, "text", "output", tuple((each.text, each.output or "") for each in made))
        return cls(template, "text", "label", tuple((each.text, each.label) for each in made))

    @property
    def turned(self) -> bool:
        """Whether it is a kind that is answered: with a record, or with a text that stands alone."""
        return self.question == _KIND

    def on_lines(self) -> list[tuple[str, str]]:
        """The pairs for a prompt, where a line break ends a demonstration; a record is a line as it stands."""
        return [
            (one_line(question), answer if self.answer == _RECORD else one_line(answer))
            for question, answer in self.pairs
        ]

    def words(self) -> QueryWords:
        """The prompt that this app itself asks with."""
        return QueryWords(self.template, [Demonstration(*pair) for pair in self.on_lines()])
