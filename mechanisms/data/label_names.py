"""Names that replace a file's labels: a public one-to-one mapping, applied as rows are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

import yaml

from mechanisms.errors import UsageError

LabelNames = tuple[tuple[str, str], ...]
"""Pairs (label in the file, name)."""
_LONGEST = 100
_ABBREVIATION = 4
"""The longest label in capitals that counts as an abbreviation, as "USA", where other labels have small letters."""
_NO_FILE = "The file of label names cannot be read: write one 'label: Name' per line (YAML)."


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
    """The labels, each replaced by its name if it has one.

    Raises:
        UsageError: two labels would have the same name.
    """
    of = dict(names)
    found = [of.get(label, label) for label in labels]
    if names and len(set(found)) != len(found):
        raise UsageError("A label's name is also another label: choose names that differ from all labels.")
    return tuple(found)


def read_names(said: str) -> LabelNames:
    """Names from "label=Name,label=Name", or from the path of a YAML file.

    Raises:
        UsageError: not readable, or not one to one.
    """
    if said.lower().endswith((".yaml", ".yml")):
        return checked_names(_of_file(Path(said)))
    return checked_names(_pair(each) for each in said.split(",") if each.strip())


def names_in_lines(text: str) -> LabelNames:
    """Names from lines of "label = Name".

    Raises:
        UsageError: a line without "=", or not one to one.
    """
    return checked_names(_pair(line) for line in text.splitlines() if line.strip())


def names_of(labels: Collection[str], names: LabelNames) -> LabelNames:
    """The pairs whose label or name is in a label set; others would disclose labels that take no part."""
    return tuple(pair for pair in names if not {*pair}.isdisjoint(labels))


def proposed_names(labels: Collection[str]) -> LabelNames:
    """Readable names for labels with underscores, in camelCase or in CAPITALS; none if no label needs one.

    A label keeps its own name if the readable one is taken, too long or has an equals sign.
    """
    loud = in_capitals(labels)
    names = {label: readable(label, loud) for label in labels}
    if all(name == _begun(label) for label, name in names.items()):
        return ()
    called = Counter(names.values())
    return tuple(
        (label, name)
        for label, name in names.items()
        if called[name] == 1 and name not in names and len(name) <= _LONGEST and "=" not in name
    )


def in_capitals(labels: Iterable[str]) -> bool:
    """Whether all labels are in capitals, so that capitals mark no abbreviation."""
    return all(label.isupper() for label in labels if label.lower() != label.upper())


def readable(label: str, loud: bool = False) -> str:
    """A label as words: "card_payment_fee", "cardPaymentFee" and "CARD_PAYMENT_FEE" become "Card payment fee".

    Args:
        loud: see `in_capitals`; otherwise a short label in capitals stays as it is, as an abbreviation.
    """
    words = label.replace("_", " ").split() or [label]
    if label.isupper() and (loud or len(label) > _ABBREVIATION):
        words = [word.lower() for word in words]
    elif len(label.split()) == 1:
        words = [part for word in words for part in _parts(word)]
    return _begun(" ".join(words))


def _begun(words: str) -> str:
    return words[:1].upper() + words[1:]


def _parts(word: str) -> list[str]:
    """Split camelCase, at a capital after a small letter; not after the first letter, as in "eBook"."""
    starts = [i for i in range(2, len(word)) if word[i].isupper() and word[i - 1].islower()]
    parts = [word[a:b] for a, b in zip([0, *starts], [*starts, len(word)], strict=True)]
    if not word[:1].islower():
        return parts
    return [part if len(part) > 1 and part.isupper() else part.lower() for part in parts] if starts else parts


def _pair(said: str) -> tuple[str, str]:
    label, equals, name = said.rpartition("=")
    if not equals:
        raise UsageError("A label name has no equals sign: write label = Name.")
    return label, name


def _of_file(path: Path) -> list[tuple[str, str]]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise UsageError(_NO_FILE) from error
    if not isinstance(document, dict) or not all(isinstance(each, str | int) for each in document.values()):
        raise UsageError(_NO_FILE)
    return [(str(label), str(name)) for label, name in document.items()]
