"""Canaries: random secrets among the private rows, and how much demonstrations made from them give away.

Exposure (Carlini et al. 2019): the rank of a planted secret among secrets that were never planted, by how likely the
model finds each after the demonstrations. Before the run all of them were alike, so the rank shows what leaked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.accounting import fingerprint
from mechanisms.audit.membership import NOTHING, RELEASED, ROWS
from mechanisms.audit.roc import Roc, roc
from mechanisms.errors import UsageError
from mechanisms.inference import LanguageModel, QueryPrompt
from mechanisms.noise import Floats, Randomness, SecureRandomness
from mechanisms.records import Columns, Dataset, Demonstration, PromptTemplate, Record
from mechanisms.runs.events import DemoCompleted
from mechanisms.runs.request import SynthesisRequest
from mechanisms.runs.writing import Writing

FORMAT = "The access code is"
"""What stands before a secret; public."""
_DIGITS = 6
_MOST = 4096
_LEAST = 2

Write = Callable[[Dataset], Sequence[Demonstration]]
"""Makes demonstrations from a data set."""


@dataclass(frozen=True)
class Exposure:
    """What one kind of prompt gives away of the canaries.

    Attributes:
        shown: what stood in the prompt: `RELEASED`, `ROWS` (the canaries themselves) or `NOTHING`.
        bits: of each canary, log2 of the candidates, itself included, over its rank.
        most: bits of a canary that ranks first.
        verbatim: canaries whose secret stands in a demonstration.
        ranks: the canaries against the candidates, as an attack.
    """

    shown: str
    bits: tuple[float, ...]
    most: float
    verbatim: int
    ranks: Roc


def canary_attack(
    model: LanguageModel,
    template: PromptTemplate,
    dataset: Dataset,
    write: Write,
    canaries: int = 8,
    candidates: int = 256,
    randomness: Randomness | None = None,
) -> Iterator[Exposure]:
    """Plant canaries, make demonstrations, and measure what these and two yardsticks expose.

    Args:
        model: what the prompts are put to.
        template: of the task.
        dataset: private; the canaries are added as units of their own, labels by turns.
        write: makes the demonstrations that are attacked.
        canaries: how many are planted.
        candidates: secrets that are not.
        randomness: the secrets; the operating system's, unless this is a test.

    Yields:
        Without demonstrations, where nothing can leak; with the canaries as demonstrations, where everything does; and
        with what `write` made.

    Raises:
        UsageError: too few canaries or candidates, or too many.
    """
    if min(canaries, candidates) < _LEAST or canaries + candidates > _MOST:
        raise UsageError(f"An attack takes at least {_LEAST} canaries and candidates, and at most {_MOST} together.")
    secrets = distinct_secrets(canaries + candidates, randomness or SecureRandomness())
    records = planted(dataset, secrets[:canaries])
    as_is = tuple(Demonstration(record.text, record.label) for record in records)
    joined = Columns.of([*dataset.records, *records])
    made = write(replace(dataset, records=joined, witnesses=()))
    for shown, demonstrations in ((NOTHING, ()), (ROWS, as_is), (RELEASED, tuple(made))):
        scores = likelihoods(model, template, demonstrations, secrets)
        yield exposure(shown, demonstrations, secrets[:canaries], scores[:canaries], scores[canaries:])


def distinct_secrets(count: int, randomness: Randomness) -> list[str]:
    """So many different secrets, each as likely as any other."""
    found: dict[str, None] = {}
    while len(found) < count:
        found.setdefault("".join(str(int(10 * each)) for each in randomness.uniform(_DIGITS)))
    return list(found)


def planted(dataset: Dataset, secrets: Sequence[str]) -> list[Record]:
    """The canaries as rows, each a unit of its own."""
    labels = dataset.labels
    return [
        Record(f"{FORMAT} {secret}.", labels[i % len(labels)], f"canary {secret}" if dataset.by_user else None)
        for i, secret in enumerate(secrets)
    ]


def likelihoods(
    model: LanguageModel, template: PromptTemplate, shown: Sequence[Demonstration], secrets: Sequence[str]
) -> Floats:
    """Log-probability of each secret where the demonstrations and then its format stand in the prompt."""
    prompt = QueryPrompt(model, template, shown, 1)
    row = [*model.encode(f"{template.text}:"), *model.encode(f" {FORMAT}")]
    continuations = [model.encode(f" {secret}") for secret in secrets]
    session = model.open(prompt.prefix, [row], len(row), max(len(each) for each in continuations))
    found = np.array([session.score(each)[0] for each in continuations])
    return np.asarray(np.nan_to_num(found, nan=-np.inf))


def exposure(
    shown: str, demonstrations: Sequence[Demonstration], secrets: Sequence[str], own: Floats, others: Floats
) -> Exposure:
    """Rank each secret's score among those of the candidates; a tie counts as a better candidate."""
    ranks = 1 + (others[None, :] >= own[:, None]).sum(axis=1)
    bits = np.log2(len(others) + 1) - np.log2(ranks)
    text = " ".join(each.text for each in demonstrations)
    verbatim = sum(secret in text for secret in secrets)
    return Exposure(shown, tuple(bits.tolist()), float(np.log2(len(others) + 1)), verbatim, roc(own, others))


def writes(request: SynthesisRequest, model: LanguageModel, randomness: Randomness | None = None) -> Write:
    """Token by token, as `synthesize` would, without its ledger: what is made goes nowhere.

    Args:
        request: its sizes and its content are those of the data set that is given; calibrated after that.
        model: the language model.
        randomness: the noise; the operating system's, unless this is a test.
    """

    def write(dataset: Dataset) -> Sequence[Demonstration]:
        sizes = {label: max(1, size) for label, size in dataset.counted_sizes().items()}
        asked = replace(request, sizes=sizes, content=fingerprint(dataset).content).calibrated()
        writing = Writing(dataset, asked, model, randomness or SecureRandomness())
        events = writing.events(lambda label, number: None)
        return [event.demonstration for event in events if isinstance(event, DemoCompleted)]

    return write
