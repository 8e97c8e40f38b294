"""The hidden Markov models of GINC, and a text's exact likelihood under each of them.

A hidden state is an entity and a property, which change independently: the entity by a matrix shared by all concepts,
the property by the concept's own. The state determines the token (Xie et al. 2022, section 4.1, appendix F.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from string import ascii_lowercase

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from mechanisms.noise import Floats, Integers

DELIMITER = "/"
ENTITIES, PROPERTIES, SYMBOLS, CONCEPTS = 10, 10, 50, 5
_PERMUTATIONS = 10
"""The number of permutation matrices in the mixture of a transition matrix."""
_MIXING_TEMPERATURE, _START_TEMPERATURE, _STAYING = 0.1, 10.0, 0.9
_SEED, _ENTITY_SEED = 1111, 1114
"""Public constants of the published data, which determine its concepts."""


@dataclass(frozen=True)
class Concepts:
    """Hidden Markov models with one emission table.

    Attributes:
        tokens: the vocabulary; the first is the delimiter.
        written: the token of each state, shape (entities, properties).
        start: the probability of a document's first state, shape (concepts, entities, properties).
        entity: transition probabilities of entities, shape (entities, entities).
        property_: those of properties, shape (concepts, properties, properties).
    """

    tokens: tuple[str, ...]
    written: Integers
    start: Floats
    entity: Floats
    property_: Floats

    @cached_property
    def codes(self) -> dict[str, int]:
        """The number of each token."""
        return {token: code for code, token in enumerate(self.tokens)}

    @property
    def anywhere(self) -> Floats:
        """The uniform distribution of first states, shape (entities, properties) (Yamasaki et al. 2025, F.4)."""
        return np.full(self.written.shape, 1 / self.written.size)

    def log_likelihoods(self, text: str, start: Floats | None = None) -> Floats:
        """Exact log-probability of a text under each concept, by the forward algorithm, shape (concepts,).

        It is minus infinity if a concept cannot write the text.

        Args:
            text: tokens with spaces between them; a token outside the vocabulary is impossible.
            start: the probability of the first state, shape (entities, properties); uniform by default.
        """
        state = np.broadcast_to(self.anywhere if start is None else start, self.start.shape)
        total = np.zeros(len(self.start))
        for place, token in enumerate(text.split()):
            moved = self.entity.T @ state @ self.property_ if place else state
            joint = moved * (self.written == self.codes.get(token, -1))
            seen = joint.sum(axis=(1, 2))
            with np.errstate(divide="ignore"):
                total += np.log(seen)
            state = joint / np.where(seen > 0, seen, 1.0)[:, None, None]
        return total

    def documents(
        self, concepts: Integers, length: int, fresh: NDArray[np.bool_], rng: np.random.Generator
    ) -> Integers:
        """One random text for each given concept: codes of shape (len(concepts), length).

        Args:
            concepts: the concept of each text.
            length: the tokens of a text.
            fresh: whether a text is a document's beginning; otherwise it starts in a uniform state, the stationary one.
            rng: a generator of numpy; the texts are public.
        """
        start = np.where(fresh[:, None], self.start.reshape(len(self.start), -1)[concepts], self.anywhere.ravel())
        entity, of = np.divmod(_draw(start, rng), self.written.shape[1])
        found = np.empty((len(concepts), length), dtype=np.int64)
        for place in range(length):
            found[:, place] = self.written[entity, of]
            entity, of = _draw(self.entity[entity], rng), _draw(self.property_[concepts, of], rng)
        return found


def posterior(log_likelihoods: Floats) -> Floats:
    """The posterior probability of each concept given texts, with a uniform prior; shape (concepts,).

    A text that no concept can write is uninformative, and is omitted.

    Args:
        log_likelihoods: those of independent texts, shape (texts, concepts).
    """
    possible = np.isfinite(log_likelihoods).any(axis=1)
    total = log_likelihoods[possible].sum(axis=0)
    if not np.isfinite(total).any():  # each text is possible under some concept, but all together under none
        return np.full(log_likelihoods.shape[1], 1 / log_likelihoods.shape[1])
    return np.asarray(softmax(total))


def ginc() -> Concepts:
    """The five concepts of the published data with 50 symbols, from its public seed.

    The order of draws is that of the recipe, so the numbers are the same: the emission table, then for each concept the
    first states and the matrix of properties; entities have their own seed.
    """
    rng = np.random.RandomState(_SEED)  # numpy's old generator, as for the published data
    written = rng.randint(1, SYMBOLS, size=(ENTITIES, PROPERTIES))
    written[:, 0] = 0  # one property of every entity is the delimiter
    starts, properties = [], []
    for _ in range(CONCEPTS):
        start = softmax((rng.rand(ENTITIES * PROPERTIES) - 0.5) / _START_TEMPERATURE)
        # A state's number counts entities within properties' places: entity = number // PROPERTIES.
        starts.append(start.reshape(ENTITIES, PROPERTIES))
        properties.append(_mixture(PROPERTIES, rng))
    drawn = _mixture(ENTITIES, np.random.RandomState(_ENTITY_SEED))
    entity = (1 - _STAYING) * drawn + _STAYING * np.eye(ENTITIES)
    return Concepts(_tokens(), written.astype(np.int64), np.array(starts), entity, np.array(properties))


def _mixture(size: int, rng: np.random.RandomState) -> Floats:
    """A mixture of random permutation matrices, whose rows and columns sum to one."""
    weights = softmax((rng.rand(_PERMUTATIONS) - 0.5) / _MIXING_TEMPERATURE)
    return np.asarray(sum(weight * np.eye(size)[rng.permutation(size)] for weight in weights))


def _tokens() -> tuple[str, ...]:
    """The delimiter, then one and two different letters in the order of the alphabet."""
    words = ["".join(letters) for count in (1, 2) for letters in permutations(ascii_lowercase, count)]
    return (DELIMITER, *words[: SYMBOLS - 1])


def _draw(probabilities: Floats, rng: np.random.Generator) -> Integers:
    """One random position for each row, shape (rows,)."""
    bounds = probabilities.cumsum(axis=1)
    return np.asarray((rng.random((len(bounds), 1)) * bounds[:, -1:] > bounds).sum(axis=1), dtype=np.int64)
