"""The vote: each private text votes for the draft of its label that is nearest in meaning (after Lin et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mechanisms.data.sizes import Unit
from mechanisms.inference import Embedder
from mechanisms.noise import Floats
from mechanisms.queries.retrieval import similarities
from mechanisms.records import Record
from mechanisms.runs.text import normalised_text
from mechanisms.tallies import mean_contribution

Ballots = Mapping[str, Sequence[str]]
"""The drafts of each label; public."""


def winners(ballots: Ballots, votes: Mapping[str, Floats], most: int) -> dict[str, tuple[int, ...]]:
    """Places of each label's best drafts, best first, from released votes; ties: the smaller index.

    A text stands once: where another of the same label, or of another one, differs from it in case and punctuation
    alone, the one with more votes wins, and the next draft moves up.

    Args:
        votes: of each label, in the order of its ballot.
        most: winners of a label.
    """
    cast = [(vote, label, place) for label, of in votes.items() for place, vote in enumerate(of.tolist())]
    found: dict[str, list[int]] = {label: [] for label in ballots}
    standing: set[str] = set()
    for _, label, place in sorted(cast, key=lambda each: -each[0]):
        text = normalised_text(ballots[label][place])
        if len(found[label]) < most and text not in standing:
            standing.add(text)
            found[label].append(place)
    return {label: tuple(places) for label, places in found.items()}


class VoteCollector:
    """Collects the votes of private texts. A unit's vector has an entry for every draft of every label."""

    def __init__(self, embedder: Embedder, ballots: Ballots) -> None:
        self._embedder = embedder
        self._drafts = {label: embedder.embed(drafts) for label, drafts in ballots.items()}
        ends = np.cumsum([0, *(len(drafts) for drafts in ballots.values())])
        self._starts = dict(zip(ballots, ends.tolist(), strict=False))
        self.places = int(ends[-1])

    def contributions(self, units: Sequence[Unit]) -> Iterator[Floats]:
        """Each unit's vector, shape (places,): one vote, of a user the mean of its records' votes."""
        for unit in units:
            yield mean_contribution(np.stack([self._vote(record) for record in unit]))

    def _vote(self, record: Record) -> Floats:
        vote = np.zeros(self.places)
        if record.text.strip():  # a text without content is near to nothing
            [vector] = self._embedder.embed([record.text])
            nearest = int(similarities(self._drafts[record.label], vector).argmax())  # ties: the smaller index
            vote[self._starts[record.label] + nearest] = 1.0
        return vote

    def by_label(self, votes: Floats) -> dict[str, Floats]:
        """Released votes, divided by label."""
        ends = [*self._starts.values(), self.places]
        return {label: votes[ends[i] : ends[i + 1]] for i, label in enumerate(self._starts)}
