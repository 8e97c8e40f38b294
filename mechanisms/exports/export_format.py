"""The contract of an export format, and the registry of formats."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mechanisms.accounting import cost_in_words
from mechanisms.demos.demo_set import DemoSet, finite, loads
from mechanisms.demos.signature import digest
from mechanisms.discovery import defined, pick
from mechanisms.errors import UsageError, printable
from mechanisms.inference.prompts import one_line
from mechanisms.records import Demonstration, Record, unit_in_words

Files = Mapping[str, str]
"""The text of each file, by its name."""


@dataclass(frozen=True, repr=False)
class ExportExtras:
    """An owner's additions to an export; None for each that is not given.

    Attributes:
        tests: labelled texts for tests of the set, which are part of the export.
        licence: the licence of the exported texts, an identifier of the Hugging Face hub, such as cc-by-4.0.
        language: the language of the texts, a code such as en.
    """

    tests: Sequence[Record] | None = None
    licence: str | None = None
    language: str | None = None


@dataclass(frozen=True)
class ReleasedFile:
    """A demo-set file, the only source of an export apart from its owner's additions.

    Attributes:
        text: the file's text.
        demo_set: the parsed set.
        digest: the file's digest.
        extras: the owner's additions.
    """

    text: str
    demo_set: DemoSet
    digest: str
    extras: ExportExtras = ExportExtras()

    @classmethod
    def read(cls, text: str, added: ExportExtras = ExportExtras()) -> ReleasedFile:
        """Read a demo-set file.

        Raises:
            UsageError: the text is not a demo set.
        """
        return cls(text, loads(text), digest(text), added)


@dataclass(frozen=True)
class ExportFormat:
    """A file format of another tool.

    Attributes:
        name: the name on the command line.
        title: the name for people.
        purpose: the purpose, in one sentence.
        file_name: the name of the file, or of the archive of several files.
        media_type: the media type of that file.
        files: makes the text of the file, or of several files, which form a folder.
        correction: the place of the measured correction; None if the format has none, empty if no model uses it.
        keeps_disclosures: whether the file states that a set is not private, or has marks.
        without_demonstrations: whether the format allows a set without demonstrations.
        takes: the allowed additions, by the names of `ExportExtras`.
        advice: one sentence on what the tool needs in addition, or omits; None if there is none.
        misfit: a further reason against a set, in one sentence; None if there is none.
    """

    name: str
    title: str
    purpose: str
    file_name: str
    media_type: str
    files: Callable[[ReleasedFile], str | Files]
    correction: str | None = None
    keeps_disclosures: bool = True
    without_demonstrations: bool = False
    takes: tuple[str, ...] = ()
    advice: Callable[[DemoSet, ExportExtras], str | None] = lambda demo_set, added: None
    misfit: Callable[[DemoSet], str | None] = lambda demo_set: None

    def refusal(self, demo_set: DemoSet) -> str | None:
        """The reason, in one sentence, why the format has no place for a set; None if it has."""
        if not (demo_set.demonstrations or self.without_demonstrations):
            return (
                f"This set has no demonstrations, so there is nothing to write as {self.title}: choose the "
                "certificate, the messages, the plain prompt or DSPy."
            )
        if not (demo_set.certificate.private or self.keeps_disclosures):
            return (
                f"This set is not private, and {self.title} has no place to say so: choose a format that keeps the "
                "marks, or the demo set."
            )
        return self.misfit(demo_set)

    def caution(self, demo_set: DemoSet) -> str | None:
        """One sentence on a mark that the format loses; None if it loses none."""
        if self.keeps_disclosures or not demo_set.certificate.disclosures:
            return None
        return (
            f"This set is marked, because the curator knows values of the data without noise, and {self.title} has no "
            "place for that mark: pass the certificate page on with it."
        )

    def reading(self, demo_set: DemoSet) -> str | None:
        """One sentence on the place of the set's measured correction, or on its loss; None if the set has none."""
        if demo_set.prior is None or self.correction == "":
            return None
        measured = "the measured correction of the model's label preferences"
        if self.correction is None:
            return f"{self.title} has no place for {measured}: its answers are the ones that step 4 calls raw."
        return (
            f"{measured.capitalize()} is in {self.correction}, as numbers to add to the labels' log-probabilities; a "
            "program that reads only the model's words cannot apply it."
        )

    def write(self, released: ReleasedFile) -> Files:
        """The files of a set.

        Raises:
            UsageError: the set or an addition does not fit the format; the message gives the reason.
        """
        for each in fields(ExportExtras):
            if getattr(released.extras, each.name) is not None and each.name not in self.takes:
                raise UsageError(f"{self.title} has no place for {each.name}: leave it out.")
        if (problem := self.refusal(released.demo_set)) is not None:
            raise UsageError(problem)
        made = self.files(released)
        return {self.file_name: made} if isinstance(made, str) else made


def packed(files: Files) -> bytes:
    """The bytes of a single file, or of a zip archive of several."""
    if len(files) == 1:
        return next(iter(files.values())).encode()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packing:
        for name, text in files.items():
            # Without a date, so that equal sets give equal archives.
            packing.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return archive.getvalue()


def json_lines(documents: Iterable[Any]) -> str:
    """One document per line, in ASCII, so that no text contains a Unicode line separator."""
    return "".join(f"{json.dumps(each)}\n" for each in documents)


def on_lines(demo_set: DemoSet) -> list[Demonstration]:
    """The demonstrations with text and label on one line each, for prompts in which a line break ends one."""
    return [Demonstration(one_line(each.text), one_line(each.label)) for each in demo_set.demonstrations]


def provenance(released: ReleasedFile) -> dict[str, Any]:
    """Source and guarantee as plain JSON: the claim, the marks, and the digest of the demo-set file.

    `prior` is the measured correction, to add to each label's log-probability under the named model.
    """
    made, held = released.demo_set, released.demo_set.certificate
    return {
        "synthetic": True,
        "private": held.private,
        **({"reason": held.reason} if held.reason else {}),
        "epsilon": finite(held.claim.epsilon),
        "delta": held.claim.delta,
        "unit": held.unit,
        "mechanism": held.mechanism,
        **held.marks,
        "model": made.model_id,
        **({"prior": dict(made.prior)} if made.prior else {}),
        "demo_set_digest": released.digest,
    }


def in_a_line(released: ReleasedFile) -> str:
    """The provenance in one line."""
    held = released.demo_set.certificate
    claim = f"{cost_in_words(held.claim.epsilon, held.claim.delta)} for {unit_in_words(held.unit)}"
    said = [
        f"synthetic; {claim}" if held.private else f"synthetic; not private: {held.reason or 'nothing is promised'}",
        *([f"known to the curator: {', '.join(held.disclosures)}"] if held.disclosures else []),
        f"demo set {released.digest}",
    ]
    return printable("; ".join(said))


def format_names() -> list[str]:
    """The names of all formats, the certificate first."""
    return sorted(defined("mechanisms.exports", "FORMAT"), key=lambda name: (name != "certificate", name))


def format_named(name: str) -> ExportFormat:
    """The format of that name.

    Raises:
        UsageError: no such format.
    """
    chosen: ExportFormat = pick(defined("mechanisms.exports", "FORMAT"), name, "format", format_names())
    return chosen
