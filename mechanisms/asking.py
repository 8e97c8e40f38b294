"""How a model is asked to write a text of a label: one sentence, as one would ask a person, behind a few
public texts of the same kind that were asked for so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from mechanisms.errors import UsageError
from mechanisms.kinds import exemplars_of

LONGEST = 200
"""Characters of one of the words, and four times as many of a whole sentence."""
MOST_EXEMPLARS = 6
LABEL = "{label}"
LENGTH = "in one or two sentences"
_DOCTOR = re.compile(r"\b(?:doctor|dr|physician)\b", re.IGNORECASE)
_ARTICLE = re.compile(r"\s*an?\s", re.IGNORECASE)


@dataclass(frozen=True)
class Hint:
    """What a sentence says of a label beside, or instead of, the owner's words; public, or released.

    Attributes:
        words: two at most; none where nothing was released.
        named: whether what the label is called stands in the sentence, too.
    """

    words: tuple[str, ...] = ()
    named: bool = True


NO_HINT = Hint()


@dataclass(frozen=True)
class Wording:
    """The owner's words for what is to be written.

    Attributes:
        kind: what one text is: "message", "question", "review".
        writer: who writes it, with an article: "a patient"; empty where nobody says.
        reader: to whom, with an article: "a clinic"; empty where it is written to nobody.
        relation: what joins the text and the label in a sentence: "about", "that is", "whose topic is".
        words: what a label is called in the sentence; one that is not named is called by `in_words`.
        sentence: the owner's own, with "{label}" where the label stands; empty for the one that is made of the words.
        exemplars: public texts of the kind, at most, that the model sees before.
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
                "Say what one text is, such as 'message', and what joins it and its label, such as 'about'."
            )
        said = (self.kind, self.writer, self.reader, self.relation, *self.words.values())
        if any(len(each) > LONGEST for each in said) or len(self.sentence) > 4 * LONGEST:
            raise UsageError(f"A word of the task has at most {LONGEST} characters, a sentence {4 * LONGEST}.")
        if self.sentence and LABEL not in self.sentence:
            raise UsageError(f"Your own sentence needs {LABEL} where the label is to stand.")

    @property
    def addressed(self) -> bool:
        """Whether a writer addresses a reader: the sentence then says that the model is the reader."""
        return bool(self.writer and self.reader) and not self.sentence

    def by_another_writer(self, text: str) -> bool:
        """Whether a text, or its beginning, speaks of its writer as of another, or for whom it is written to."""
        return self._others is not None and bool(self._others.search(text))

    @cached_property
    def _others(self) -> re.Pattern[str] | None:
        """Finds texts that their writer did not write; None where nobody is named, or not in English.

        A patient who writes to a clinic does not tell what "the patient" has, and does not say "I am a clinic", or "I
        am Dr. Lee". A small model does: of the drafts for the bundled examples, three in ten (research/docs/texts.md).
        """
        named = [_ARTICLE.match(each) for each in (self.writer, self.reader)]
        if not self.addressed or not all(named):
            return None
        writer, reader = (re.escape(each.string[each.end() :].strip()) for each in named if each)
        return re.compile(
            r"(?<!['’]m )(?<!\bam )(?<!\bas )(?<!\bbeen )(?<!\bbecome )"
            rf"\b(?:the|an?|my|our|your|this|that) (?:\w+ )?{writer}\b"
            rf"|\b(?:I['’]m|I am|we['’]re|we are|you['’]re|you are|as)(?: not)? (?:the|an?|our|your) {reader}\b"
            + ("" if _DOCTOR.search(self.writer) else r"|\b(?:I['’]m|I am|my name is|this is) (?:a doctor|dr)\b"),
            re.IGNORECASE,
        )

    def named(self, label: str) -> str:
        return self.words.get(label) or in_words(label)

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
        """What the model sees before the sentence: exemplars of the kind of text, each behind the sentence for it.

        Where the sentence has words of the label, theirs have words of the exemplar. Nothing is shown where the kind is
        not known, or the sentence is the owner's own. A small model learns from exemplars how such texts sound, and who
        speaks in them (research/docs/texts.md).
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
        """The words as a demo set holds them: those that were said, and always how many exemplars."""
        return {name: value for name, value in asdict(self).items() if value or name == "exemplars"}


def in_words(label: str) -> str:
    """A label with spaces for underscores and hyphens, in small letters unless it is an abbreviation."""
    spaced = " ".join(label.replace("_", " ").replace("-", " ").split()) or label
    return spaced if spaced.isupper() and len(spaced) <= 4 else spaced.lower()
