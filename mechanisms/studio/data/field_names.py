"""What a prompt may call a text, its label and its answer: suggested from columns' names, where they say anything.

A suggestion is a word of the lists below, never a column's own name: what a file says does not reach a prompt, nor an
export, unless a person types it.
"""

from __future__ import annotations

from collections.abc import Mapping

from mechanisms.errors import UsageError
from mechanisms.studio.data.column_words import column_words

Synonyms = Mapping[str, tuple[str, ...]]
"""Each suggestion with the words of a column's name that stand for it, beside itself."""

NEUTRAL = ("Text", "Label")
"""What a text and its label are called where nothing says more."""
_TEXTS: Synonyms = {
    "Message": ("msg", "sms", "chat"),
    "Review": (),
    "Question": ("query",),
    "Tweet": (),
    "Ticket": (),
    "Email": ("mail",),
    "Note": ("memo",),
    "Abstract": (),
    "Article": ("news", "headline", "story"),
    "Comment": ("feedback", "remark"),
    "Post": (),
    "Report": (),
    "Complaint": (),
    "Letter": (),
    "Sentence": ("utterance",),
    "Description": ("desc",),
}
_LABELS: Synonyms = {
    "Topic": ("subject", "theme"),
    "Department": ("dept", "team"),
    "Sentiment": ("polarity", "mood"),
    "Intent": ("intention",),
    "Kind": (),
    "Category": ("genre",),
    "Emotion": ("feeling",),
    "Type": (),
    "Rating": ("star",),
    "Priority": ("urgency",),
    "Severity": (),
    "Language": ("lang",),
    "Diagnosis": (),
}
_ANSWERS: Synonyms = {
    "Answer": ("response", "output"),
    "Reply": (),
    "Summary": ("abstract",),
    "Title": ("headline",),
    "Translation": (),
    "Item": ("product", "order"),
    "Genre": (),
    "Name": ("person",),
    "Place": ("location", "city"),
    "Reason": ("cause",),
}
_LONGEST_COLUMN = 200
_LONGEST_NAME = 40


def suggested_names(text_column: str, label_column: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a text and a label could be called, the best first: "Text" and "Label" where a column's name says nothing.

    Args:
        text_column, label_column: a file's names for them; any text at all.
    """
    return _suggested(text_column, NEUTRAL[0], _TEXTS), _suggested(label_column, NEUTRAL[1], _LABELS)


def suggested_answers(column: str) -> tuple[str, ...]:
    """What an answer that is text could be called, the best first: "Answer" where the column's name says nothing."""
    return _suggested(column, "Answer", _ANSWERS)


def _suggested(column: str, neutral: str, known: Synonyms) -> tuple[str, ...]:
    names = {word: name for name, others in known.items() for word in (name.lower(), *others)}
    words = column_words(column[:_LONGEST_COLUMN])
    said = [name for word in words if (name := names.get(word) or names.get(word.removesuffix("s")))]
    # The last word tells what it is: a "ticket_message" is a message.
    return tuple(dict.fromkeys([*said[-1:], neutral, *known]))


def field_name(given: object) -> str:
    """A name as a person chose or typed it, in one line.

    Raises:
        UsageError: there is none, or it is longer than a prompt's field should be.
    """
    name = " ".join(given.split()) if isinstance(given, str) else ""
    if not 0 < len(name) <= _LONGEST_NAME:
        raise UsageError(f"Say in 1 to {_LONGEST_NAME} characters what one text, and its label or answer, is called.")
    return name
