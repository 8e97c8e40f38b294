"""What a text says beyond the labels' own names, in any script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from mechanisms.asking import LENGTH, Asked
from mechanisms.inference.prompts import one_line
from mechanisms.runs.gate import Gate, is_letter


def without_labels(text: str, labels: Sequence[str]) -> str:
    """The text in lower case without the labels' names, which say nothing about how their texts are written."""
    rest = text.casefold()
    for each in sorted(labels, key=len, reverse=True):
        rest = rest.replace(each.casefold(), " ")
    return rest


# Where sentences end, in any script: a text that stops in the middle of one can be cut back to the one before.

_WIDE = "。！？｡．"
"""Ends of scripts that put no space behind them."""
_NARROW = "!?…؟۔।॥።፧։။។"
_CLOSING = "\"'”’»«“›)）」』】"

# A period behind one letter is an initial or an abbreviation ("J. Smith", "e.g."), behind a title or a kind of
# company more follows, and one that stands alone ends nothing.
_NOT_BEHIND = r"(?<!\s)(?<!\b[^\W\d_])(?<!\b[DMSJ]r)(?<!\bMrs)(?<!\bMs)(?<!\bSt)(?<!\b(?:Inc|Ltd))(?<!\b(?:Prof|Corp))"
_END = re.compile(
    rf"(?:[{_WIDE}]|(?:{_NOT_BEHIND}\.|[{_NARROW}])(?=[.{_NARROW}{_CLOSING}]*(?:\s|$)))[.{_NARROW}{_CLOSING}]*"
)


def whole_sentences(text: str) -> str:
    """The text up to its last end of a sentence, quotes and brackets behind it included; "" where there is none."""
    ends = [match.end() for match in _END.finditer(text)]
    return text[: ends[-1]].strip() if ends else ""


# Which drafts are fit to stand in a ballot: rules on public text alone, in any language that has letters.

_LEAST_WORDS, _LEAST_LETTERS = 4, 10
_LEAST_SHARE_OF_LETTERS = 0.7
_LEAST_SHARE_OF_NEW = 0.7
_RUN = 3
"""Characters of the runs by which repetition is measured: words would need spaces between them."""
_LEAST_QUOTE = 12
"""Letters of a sentence that is no accident."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_ENDLESS = re.compile("[\u0e00-\u0eff]")
"""Thai and Lao mark no end of a sentence."""
_FIELD = re.compile(r"\W*\w+:")
_NUMBERED = re.compile(r"\W*(?:\d+(?:\.\d+)*[.):\]]|\d+\.\d|\d+\s[-–—]\s|\d{4,}-\d|[^\W\d_]\)|[-*•·‣▪–—+](?:\s|$))")
_ITEMS = re.compile(r"\d+(?:\.\d+){3,}|\s\d+[.)]\s.*\s\d+[.)](?!\S)")
_MARKUP = re.compile(r"://|www\.|\S@\S|\*\*|__|`|#\w|&\w+;|[\[\]{}<>|\\]")
_OFFERS = re.compile(
    r"\b(how (can|may) (i|we) (help|assist)|can i help you|(here|happy|glad|ready) to (help|assist)|assist you|"
    r"sorry (to hear|for your)|as an ai\b|"
    r"i hope this message finds you|feel free to (ask|reach)|don't hesitate to (ask|contact|reach))",
    re.IGNORECASE,
)
"""What a model says that helps, in place of what the person would write whom it was asked to be."""
_QUOTES = {'"': '"', "“": "”", "„": "“”", "«": "»", "»": "«", "‘": "’", "'": "'", "「": "」", "『": "』"}


def cleaned(text: str, asked: Asked, label: str, labels: Sequence[str], gate: Gate) -> str | None:
    """A draft that can stand as a demonstration, cut back to its last whole sentence; None where it cannot.

    Args:
        text: public, as the model wrote it for `label`.
        asked: what the prompt was made of.
        gate: has to let it pass, too.
    """
    line = one_line(text)
    kept = _unquoted(line if _ENDLESS.search(line) else whole_sentences(line))
    refused = (
        _too_short(kept, (label, *labels))
        or _repeats_prompt(kept, asked, labels)
        or _is_list(kept)
        or _MARKUP.search(kept)  # addresses, markup and blanks to fill in: the web, not a text of the label
        or _OFFERS.search(kept)
        or _repeats_itself(kept)
        or _unbalanced(kept)
        or _mostly_other_than_letters(kept)
        or gate.reason(kept) is not None
    )
    return None if refused else kept


def _unquoted(text: str) -> str:
    """Without quotation marks around the whole."""
    closing = _QUOTES.get(text[:1], "")
    inner = text[1:-1]
    whole = len(text) > 1 and closing and text[-1] in closing and not any(mark in inner for mark in text[0] + closing)
    return inner.strip() if whole else text


def normalised_text(text: str) -> str:
    """What texts have in common that differ in case, spaces and punctuation alone."""
    return "".join(each for each in text.casefold() if unicodedata.category(each)[0] not in "PZC")


def quotes(text: str, said: str) -> bool:
    """Whether a whole sentence of a draft stands in the prompt that it was written for, which is `normalised_text`."""
    sentences = filter(None, map(normalised_text, _SENTENCE_END.split(text)))
    return any(len(each) >= _LEAST_QUOTE and each in said for each in sentences)


def _too_short(text: str, labels: Sequence[str]) -> bool:
    rest = without_labels(text, labels)
    letters = sum(map(is_letter, rest))
    return letters < _LEAST_LETTERS or _words(rest) < _LEAST_WORDS


def _words(text: str) -> int:
    """Words; letters without case may belong to a script without spaces, where two make about a word."""
    runs = "".join(each if is_letter(each) else " " for each in text).split()
    return sum(1 if run.upper() != run.lower() else (len(run) + 1) // 2 for run in runs)


def _repeats_prompt(text: str, asked: Asked, labels: Sequence[str]) -> bool:
    # A model that goes on with the prompt writes a field ("Question: ..."), or what it was asked for, not a text.
    fields = [f"{each.strip()}:" for each in (asked.kind, asked.writer, *labels, "Label", "Text")]
    spoken = text.casefold()
    told = [f"one {asked.kind}", f"the {asked.kind} is", LENGTH]
    told += [f"{article} {asked.kind} {asked.relation}" for article in ("a", "an")]
    named = any(each.strip(": ") and each.casefold() in spoken for each in fields + told)
    return named or bool(_FIELD.match(text))


def _is_list(text: str) -> bool:
    # Headings, items and versions ("3.1 ...", "a) ...", "1.1.2.175") come from documents about something else.
    return bool(_NUMBERED.match(text) or _ITEMS.search(text))


def _repeats_itself(text: str) -> bool:
    # Small models fall into loops.
    plain = text.casefold()
    runs = [plain[i : i + _RUN] for i in range(len(plain) - _RUN + 1)]
    return len(set(runs)) < _LEAST_SHARE_OF_NEW * len(runs)


def _unbalanced(text: str) -> bool:
    # What was cut off closed the quote or the bracket; an apostrophe within a word closes nothing.
    if text.count("(") != text.count(")") or text.count("（") != text.count("）") or text.count('"') % 2:
        return True
    closing = _QUOTES.get(text[:1], "")
    behind = r"(?!\w)" if closing in "'’" else ""
    return bool(closing) and not re.search(f"[{closing}]{behind}", text[1:])


def _mostly_other_than_letters(text: str) -> bool:
    # Tables, codes and rows of emoji; a character that could not be decoded refuses the whole.
    visible = [each for each in text if not each.isspace()]
    broken = any(each == "\ufffd" or unicodedata.category(each) == "Cc" for each in visible)
    return broken or sum(map(is_letter, visible)) < _LEAST_SHARE_OF_LETTERS * len(visible)
