"""A reader on a server, which answers in text, without probabilities."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.demos.demo_set import DemoSet
from mechanisms.errors import UsageError
from mechanisms.evaluation.reader import NO_ANSWER, RAW, Arm
from mechanisms.inference import QueryWords
from mechanisms.inference.remote import ChatServer
from mechanisms.noise import Integers
from mechanisms.records import PromptTemplate

_SPARE_TOKENS = 8
"""Tokens of an answer in addition to those of the longest label."""


@dataclass(frozen=True)
class RemoteReader:
    """A `QueryReader` that answers with the label named in the server's text; `RAW` is the only reading.

    It is not a `LanguageModel` and shares no method with one, so code that reads private rows cannot use it.
    """

    server: ChatServer

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def leaving(self) -> str:
        """One sentence on what is sent where, to be shown before the first request."""
        return what_leaves(self.server.host)

    def answers(
        self, template: PromptTemplate, labels: Sequence[str], arm: Arm, texts: Sequence[str]
    ) -> Generator[int, None, dict[str, Integers]]:
        """Classify by the server's text, without the arm's measured correction.

        Raises:
            ModelUnavailable: the server did not answer.
        """
        found: list[int] = []
        for places in self._places(template, labels, arm, texts):
            found += places
            yield len(found)
        return {RAW: np.array(found, dtype=np.int64)}

    def label(self, template: PromptTemplate, labels: Sequence[str], arm: Arm, text: str) -> str | None:
        """The label named in the answer to one text; None if it names none or several.

        Raises:
            ModelUnavailable: the server did not answer.
        """
        [[place]] = self._places(template, labels, arm, [text])
        return None if place == NO_ANSWER else labels[place]

    def _places(
        self, template: PromptTemplate, labels: Sequence[str], arm: Arm, texts: Sequence[str]
    ) -> Iterator[list[int]]:
        words = QueryWords(template, arm.demonstrations)
        for answers in self.server.answers([words.as_text(text) for text in texts], answer_tokens(labels)):
            yield [label_in(answer, labels) for answer in answers]


def what_leaves(address: str) -> str:
    return (
        f"The demonstrations, what you type and the texts of a test file are sent to {address}. A file with rows of a "
        "data set that this ledger knows is refused; what you type is not compared."
    )


def answer_tokens(labels: Sequence[str]) -> int:
    """The most tokens of an answer that names a label: a token has at least one byte."""
    return _SPARE_TOKENS + max(len(label.encode("utf-8", "replace")) for label in labels)


def refuse_set_without_promise(demo_set: DemoSet) -> None:
    """Refuse to send demonstrations without a privacy guarantee to a server.

    Raises:
        UsageError: the set's certificate says that it is not private.
    """
    if (reason := demo_set.certificate.why_not_private) is not None:
        raise UsageError(
            f"This set has no guarantee ({reason}): its demonstrations may repeat private rows, which never leave this "
            "machine. Use a model on this machine."
        )


def read_remotely_in_words(demo_set: DemoSet, reader: RemoteReader) -> str:
    """One line on the writer and the reader of a set, and on the limits of remote answers."""
    return (
        f"Written with {demo_set.model_id}, read here by {reader.name}, which answers in words: neither contextual "
        "calibration nor a prior can correct them, and an answer that names no label, or several, counts as wrong."
    )


def label_in(answer: str, labels: Sequence[str]) -> int:
    """The index of the label in an answer, ignoring case, or `NO_ANSWER`.

    This is the longest label that the answer begins with, else the only label that occurs in it at the beginning of a
    word. A label inside a longer one does not count.
    """
    rest, folded = answer.strip().casefold(), [label.strip().casefold() for label in labels]
    by_length = sorted(range(len(labels)), key=lambda place: -len(folded[place]))
    begun = [place for place in by_length if rest.startswith(folded[place])]
    if not begun:
        for place in by_length:
            rest, times = re.subn(rf"(?<!\w){re.escape(folded[place])}", " ", rest)
            begun += [place] if times else []
        if len(begun) != 1:
            return NO_ANSWER
    # Labels that differ only in case are ambiguous.
    return begun[0] if folded.count(folded[begun[0]]) == 1 else NO_ANSWER
