"""Names of a prompt's fields for text, label and answer, suggested from the names of columns.

A suggestion is a word of the lists below, never a column's own name: text of the file reaches no prompt and no export
unless a person types it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mechanisms.errors import UsageError

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def column_words(name: str) -> list[str]:
    """The words of a column's name, in lower case: "userId", "user_id" and "User ID" all give "user" and "id"."""
    return [word.lower() for word in _WORD.findall(name)]


Synonyms = Mapping[str, tuple[str, ...]]
"""Each suggestion with further words in a column's name that lead to it."""

NEUTRAL = ("Text", "Label")
"""Field names of text and label where the columns' names suggest none."""
TEXTS: Synonyms = {
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
LABELS: Synonyms = {
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
ANSWERS: Synonyms = {
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
LONGEST_FIELD_NAME = 40


def suggested_names(text_column: str, label_column: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Suggested field names of text and label, the best first; "Text" and "Label" where a column's name suggests none.

    Args:
        text_column, label_column: names of columns; any text.
    """
    return _suggested(text_column, NEUTRAL[0], TEXTS), _suggested(label_column, NEUTRAL[1], LABELS)


def _suggested(column: str, neutral: str, known: Synonyms) -> tuple[str, ...]:
    names = {word: name for name, others in known.items() for word in (name.lower(), *others)}
    words = column_words(column[:_LONGEST_COLUMN])
    said = [name for word in words if (name := names.get(word) or names.get(word.removesuffix("s")))]
    # The last word is the head noun: a "ticket_message" is a message.
    return tuple(dict.fromkeys([*said[-1:], neutral, *known]))


def field_name(given: object) -> str:
    """A typed field name with its white space normalised.

    Raises:
        UsageError: empty or too long.
    """
    name = " ".join(given.split()) if isinstance(given, str) else ""
    if not 0 < len(name) <= LONGEST_FIELD_NAME:
        raise UsageError(
            f"Names for a text and for its label or answer must have 1 to {LONGEST_FIELD_NAME} characters."
        )
    return name
