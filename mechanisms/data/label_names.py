"""Names that replace a file's labels: a public one-to-one mapping, applied when rows are read."""

from __future__ import annotations

import csv
import functools
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from mechanisms.errors import UsageError

LabelNames = tuple[tuple[str, str], ...]
"""Pairs (label in the file, name)."""
_LONGEST = 100
_ABBREVIATION = 4
"""The most letters of an abbreviation, a label in capitals such as "USA"."""
_CAMEL = re.compile(r"(?<=..)(?<=[a-z])(?=[A-Z])")
"""The beginning of a word of camelCase; not after the first letter, as in "eBook"."""


def checked_names(pairs: Iterable[tuple[str, str]]) -> LabelNames:
    """The pairs, stripped, without repetitions and without labels that keep their own name.

    Raises:
        UsageError: a name is empty, too long or has several lines, two labels share a name, or a label has two.
    """
    names = tuple((label, name) for label, name in dict.fromkeys((a.strip(), b.strip()) for a, b in pairs) if label)
    if any(not name or len(name) > _LONGEST or len(name.splitlines()) > 1 for _, name in names):
        raise UsageError(f"A label's name must be one line of 1 to {_LONGEST} characters.")
    if len({label for label, _ in names}) != len(names) or len({name for _, name in names}) != len(names):
        raise UsageError("A label has two names, or two labels share one: give each label a name of its own.")
    return tuple((label, name) for label, name in names if label != name)


def named(labels: Iterable[str], names: LabelNames) -> tuple[str, ...]:
    """The labels, each replaced by its name if it has one; a `UsageError` if two would be the same."""
    of = dict(names)
    found = [of.get(label, label) for label in labels]
    if names and len(set(found)) != len(found):
        raise UsageError("A label's name is also another label: choose names that differ from all labels.")
    return tuple(found)


HOW_TO_WRITE_LABELS = """Put a label that has a comma in quotes, or write all labels as a JSON list: '["A, B", "C"]'."""


def read_labels(text: str) -> tuple[str, ...]:
    """Labels from 'A,B', '"A, with a comma",B' or '["A", "B"]'; a `UsageError` if a quote is not closed."""
    listed = _json(text)
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        listed = _divided(text)
    return tuple(each.strip() for each in listed)


def read_pairs(text: str) -> list[tuple[str, str]]:
    """Pairs from 'A=1,B=2', '"A, with a comma=1",B=2' or '{"A": 1}'; a `UsageError` if a quote or "=" is missing."""
    mapped = _json(text)
    if isinstance(mapped, dict):
        return [(label, str(value)) for label, value in mapped.items()]
    return [_pair(each) for each in _divided(text) if each.strip()]


def _json(text: str) -> Any:
    """A JSON document; None if the text is not one, since a label may begin with a bracket."""
    try:
        return json.loads(text) if text.lstrip().startswith(("[", "{")) else None
    except (ValueError, RecursionError):
        return None


def _divided(text: str) -> list[str]:
    try:
        return next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise UsageError(f"The labels cannot be read. {HOW_TO_WRITE_LABELS}") from error


def read_names(text: str) -> LabelNames:
    """Names as pairs of the command line; a `UsageError` if they are not one to one."""
    return checked_names(read_pairs(text))


def names_in_lines(text: str) -> LabelNames:
    """Names from lines of "label = Name"; a `UsageError` if they are not one to one."""
    return checked_names(_pair(line) for line in text.splitlines() if line.strip())


def names_of(labels: Collection[str], names: LabelNames) -> LabelNames:
    """The pairs with a label or name in a label set; others would disclose labels that take no part."""
    return tuple(pair for pair in names if not {*pair}.isdisjoint(labels))


SPELLED = "case, spaces, invisible characters, or 1.0 for 1"
"""The differences between labels that look alike, for messages."""
_WHOLE = re.compile(r"([-+]?\d+)\.0+")
"""A whole number with a decimal point, as programs write it if its column has missing cells."""
_INVISIBLE = {"Cf", "Cc", "Co", "Cn"}
_INVISIBLE_MARKS = {*map(chr, range(0xFE00, 0xFE10)), "\u034f", "\u115f", "\u1160", "\u3164", "\uffa0"}
"""Variation selectors, the grapheme joiner and Hangul fillers."""


@functools.lru_cache(2**16)
def folded(label: str) -> str:
    """A label without differences in case, forms of characters (NFKC), extra spaces and invisible characters.

    A whole number has no decimal point: 1.0 is 1. Two labels with equal results are probably the same label.
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).casefold())
    seen = (each for each in plain if each.isspace() or unicodedata.category(each) not in _INVISIBLE)
    words = " ".join("".join(each for each in seen if each not in _INVISIBLE_MARKS).split())
    return number[1] if (number := _WHOLE.fullmatch(words)) else words


def alike(labels: Iterable[str]) -> list[tuple[str, ...]]:
    """Groups of different labels that are equal under `folded`."""
    groups: dict[str, list[str]] = {}
    for label in dict.fromkeys(labels):
        groups.setdefault(folded(label), []).append(label)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def spellings(labels: Iterable[str], names: LabelNames) -> dict[str, str]:
    """Each label or its name, by the folded label; a `UsageError` if two folded labels are equal."""
    found: dict[str, str] = {}
    for spelled, meant in (*((label, label) for label in labels), *names):
        if found.setdefault(folded(spelled), meant) != meant:
            raise UsageError("Two labels of the set look alike, so other spellings cannot be read as one of them.")
    return found


def proposed_names(labels: Collection[str]) -> LabelNames:
    """Readable names for labels with underscores, in camelCase or in CAPITALS; none if no label needs one.

    A label keeps its own name if the readable one is taken, too long or has an equals sign.
    """
    names = {label: readable(label) for label in labels}
    if all(name == _begun(label) for label, name in names.items()):
        return ()
    called = Counter(names.values())
    return tuple(
        (label, name)
        for label, name in names.items()
        if called[name] == 1 and name not in names and len(name) <= _LONGEST and "=" not in name
    )


def readable(label: str) -> str:
    """A label as words: "card_payment_fee", "cardPaymentFee" and "CARD_PAYMENT_FEE" become "Card payment fee"."""
    words = label.replace("_", " ").split() or [label]
    if label.isupper():
        words = [word.lower() if len(label) > _ABBREVIATION else word for word in words]
    elif len(label.split()) == 1:
        words = [part for word in words for part in _parts(word)]
    return _begun(" ".join(words))


def _parts(word: str) -> list[str]:
    # Words of camelCase become lower case, except "PIN" in "changePIN"; "OfficeHolder" keeps its capitals.
    parts = _CAMEL.split(word)
    if len(parts) == 1 or not word[:1].islower():
        return parts
    return [part if len(part) > 1 and part.isupper() else part.lower() for part in parts]


def _begun(words: str) -> str:
    return words[:1].upper() + words[1:]


def _pair(text: str) -> tuple[str, str]:
    label, equals, name = text.rpartition("=")
    if not equals:
        raise UsageError("A label's name needs an equals sign: write label = Name.")
    return label, name
