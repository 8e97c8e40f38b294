"""The prompt for a text of a label: one sentence, as to a person, after a few public texts of the same kind with the
sentences that ask for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from mechanisms.errors import UsageError
from mechanisms.kinds import exemplars_of

LONGEST = 200
"""The most characters of one of the words; a whole sentence may have four times as many."""
MOST_EXEMPLARS = 6
LABEL = "{label}"
LENGTH = "in one or two sentences"
_DOCTOR = re.compile(r"\b(?:doctor|dr|physician|medical|nurse|surgeon|dentist)\b", re.IGNORECASE)
_AS_DOCTOR = "(?:a doctor|a medical professional|dr)"
_ARTICLE = re.compile(r"\s*an?\s", re.IGNORECASE)


@dataclass(frozen=True)
class Hint:
    """Words of a label in a sentence, in addition to or instead of the owner's words; public, or released.

    Attributes:
        words: at most two; none if nothing was released.
        named: whether the sentence also has the label's name.
    """

    words: tuple[str, ...] = ()
    named: bool = True


NO_HINT = Hint()


@dataclass(frozen=True)
class Wording:
    """The owner's words for the texts to be written.

    Attributes:
        kind: the kind of text: "message", "question", "review".
        writer: the writer, with an article: "a patient"; empty if not given.
        reader: the reader, with an article: "a clinic"; empty if there is none.
        relation: the words between text and label in a sentence: "about", "that is", "whose topic is".
        words: the labels' names in the sentence; `in_words` gives that of any other label.
        sentence: the owner's own sentence, with "{label}" for the label; empty for the sentence made of the words.
        exemplars: the most public texts of the kind in the prompt.
    """

    kind: str = "text"
    writer: str = ""
    reader: str = ""
    relation: str = "about"
    words: Mapping[str, str] = field(default_factory=dict)
    sentence: str = ""
    exemplars: int = MOST_EXEMPLARS

    def __post_init__(self) -> None:
        if not self.kind.strip() or not self.relation.strip():
            raise UsageError(
                "Give the kind of text, such as 'message', and the words between text and label, such as 'about'."
            )
        said = (self.kind, self.writer, self.reader, self.relation, *self.words.values())
        if any(len(each) > LONGEST for each in said) or len(self.sentence) > 4 * LONGEST:
            raise UsageError(f"A word of the task has at most {LONGEST} characters, a sentence {4 * LONGEST}.")
        if self.sentence and LABEL not in self.sentence:
            raise UsageError(f"Your own sentence needs {LABEL} where the label is to stand.")

    @property
    def addressed(self) -> bool:
        """Whether a writer addresses a reader: then the sentence gives the model the part of the reader."""
        return bool(self.writer and self.reader) and not self.sentence

    def by_another_writer(self, text: str) -> bool:
        """Whether a text, or its beginning, is written as by somebody other than its writer."""
        return self._others is not None and bool(self._others.search(text))

    @cached_property
    def _others(self) -> re.Pattern[str] | None:
        """Finds texts written as by somebody other than the writer; None if no writer is given, or not in English.

        A patient who writes to a clinic does not write about "the patient", nor "I am a clinic" or "I am Dr. Lee". A
        small model does so in three of ten drafts for the bundled examples (research/docs/texts.md).
        """
        named = [_ARTICLE.match(each) for each in (self.writer, self.reader)]
        if not self.addressed or not all(named):
            return None
        writer, reader = (re.escape(each.string[each.end() :].strip()) for each in named if each)
        return re.compile(
            r"(?<!['’]m )(?<!\bam )(?<!\bas )(?<!\bbeen )(?<!\bbecome )"
            rf"\b(?:the|an?|my|our|your|this|that) (?:\w+ )?{writer}\b"
            rf"|\b(?:I['’]m|I am|we['’]re|we are|you['’]re|you are|as)(?: not)? (?:the|an?|our|your) {reader}\b"
            + ("" if _DOCTOR.search(self.writer) else rf"|\b(?:I['’]m|I am|my name is|this is) {_AS_DOCTOR}\b"),
            re.IGNORECASE,
        )

    def named(self, label: str) -> str:
        # In another language than the program's, nouns may begin with a capital.
        return self.words.get(label) or in_words(label, as_spelt=bool(self.sentence))

    def sentence_for(self, label: str, hint: Hint = NO_HINT) -> str:
        """The sentence that asks for one text of a label."""
        words = " and ".join(hint.words)
        if self.sentence:
            name = self.named(label) if hint.named or not words else ""
            return self.sentence.replace(LABEL, f"{name} ({words})" if name and words else name or words)
        about = f" {self.relation} {self.named(label)}" if hint.named or not words else ""
        wanted = f"one {self.kind}{about}"
        if words:
            wanted += f"{',' if about else ''} with words like {words}"
        if self.addressed:
            who = f"{self.writer[:1].upper()}{self.writer[1:]}"
            return f"You are {self.reader}. {who} writes you {wanted}, {LENGTH}."
        persona = f"You are {self.writer}. " if self.writer else ""
        return f"{persona}Write {wanted}{f' to {self.reader}' if self.reader else ''}, {LENGTH}."

    def exemplar_pairs(self, hint: Hint = NO_HINT) -> tuple[tuple[str, str], ...]:
        """The exemplars of the kind of text before the sentence, each as (sentence that asks for it, text).

        If the sentence has words of the label, those of the exemplars have words of the exemplar. There are none if the
        kind is unknown or the sentence is the owner's own. From exemplars a small model learns the style of such texts
        and who writes them (research/docs/texts.md).
        """
        known = () if self.sentence else exemplars_of(self.kind)
        fitting = [each for each in known if bool(each.reader) == self.addressed] or known
        found = []
        for each in fitting[: self.exemplars]:
            writer, reader = self.writer and (each.writer or self.writer), self.reader and each.reader
            wording = replace(self, writer=writer, reader=reader, relation="about", words={})
            of_it = Hint(tuple(each.words[: len(hint.words)]), hint.named)
            found.append((wording.sentence_for(each.about, of_it), each.text))
        return tuple(found)

    def to_json(self) -> dict[str, object]:
        """The words for a demo set: the given ones, and always the number of exemplars."""
        return {name: value for name, value in asdict(self).items() if value or name == "exemplars"}


def in_words(label: str, as_spelt: bool = False) -> str:
    """A label with spaces for underscores and hyphens, in lower case unless it is an abbreviation, or `as_spelt`."""
    spaced = " ".join(label.replace("_", " ").replace("-", " ").split()) or label
    return spaced if as_spelt or (spaced.isupper() and len(spaced) <= 4) else spaced.lower()
