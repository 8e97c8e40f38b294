"""The sets in the choice: none, public only, winners of the vote, and those written token by token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from mechanisms.records import Demonstration, PromptTemplate, default_template
from mechanisms.runs.events import CandidateSet

NONE, PUBLIC = "none", "public-only"
PLAIN = ", plain words"
_IN_PLAIN_WORDS = 3
"""One in so many sets of winners uses the plain wording, where the owner's wording differs from it."""


def wordings(template: PromptTemplate, labels: Sequence[str], sets: int) -> tuple[PromptTemplate, ...]:
    """The owner's words for a task, and "Text" and "Label" where the owner's are others and the sets are many.

    Which of them a small model understands better can make ten points and more, but the owner's words won nearly
    always, and each set more takes time and makes the choice harder (research/docs/worth.md).

    Args:
        sets: how many sets the winners make.
    """
    plain = default_template(tuple(labels))
    return (template,) if template == plain or sets < _IN_PLAIN_WORDS else (template, plain)


def interleaved(texts: Mapping[str, Sequence[str]], labels: Sequence[str]) -> tuple[Demonstration, ...]:
    """Demonstrations with the labels taking turns: a small model answers with whatever stands last in a block."""
    most = max(len(texts[label]) for label in labels)
    return tuple(
        Demonstration(texts[label][number], label)
        for number in range(most)
        for label in labels
        if number < len(texts[label])
    )


def by_label(written: Sequence[Demonstration], labels: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The texts of each label, each once."""
    return {label: tuple(dict.fromkeys(each.text for each in written if each.label == label)) for label in labels}


def candidate_sets(
    words: Sequence[PromptTemplate],
    labels: Sequence[str],
    shots: int,
    sets: int,
    public: Mapping[str, Sequence[str]],
    winners: Mapping[str, Sequence[str]],
    written: Sequence[Demonstration],
) -> tuple[CandidateSet, ...]:
    """All sets of the choice, in a public order.

    Args:
        words: see `wordings`.
        labels: in order.
        shots: demonstrations of each label in a set.
        sets: how many sets the winners make; every second one has its labels in the opposite order.
        public: drafts before any vote.
        winners: of the vote, best first; empty where there was none.
        written: demonstrations of the stage "write".
    """
    own, *others = words
    unjudged = interleaved({label: public[label][:shots] for label in labels}, labels)
    made = [CandidateSet(NONE, (), own), CandidateSet(PUBLIC, unjudged, own)]
    for number in range(sets):
        order = list(labels) if number % 2 == 0 else list(reversed(labels))
        if winners:
            chosen = {label: _window(winners[label], number * shots, shots) for label in labels}
            plain = others if number % _IN_PLAIN_WORDS == _IN_PLAIN_WORDS - 1 else []
            name = f"voted {number + 1}{PLAIN if plain else ''}"
            made.append(CandidateSet(name, interleaved(chosen, order), *(plain or [own])))
        if written and number < 2:
            made.append(CandidateSet(f"written {number + 1}", interleaved(by_label(written, labels), order), own))
    return (*made, *(CandidateSet(f"{NONE}{PLAIN}", (), plain) for plain in others))


def _window(texts: Sequence[str], start: int, count: int) -> list[str]:
    """`count` texts from `start` on, beginning anew where there are no more; never the same one twice."""
    turned = (texts[(start + i) % len(texts)] for i in range(len(texts)))
    return list(islice(turned, count))
