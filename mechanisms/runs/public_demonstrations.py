"""The epsilon = 0 arm of a comparison: as many demonstrations from public text alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from mechanisms.asking import Asked
from mechanisms.demos.demo_set import DemoSet
from mechanisms.inference import LanguageModel
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.records import Demonstration
from mechanisms.runs.defaults import DRAFTS_A_WINNER, FEWEST_DRAFTS
from mechanisms.runs.drafts import Drafts, gate_of, write_drafts
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.stage import interleaved


def public_demonstrations(
    demo_set: DemoSet, model: LanguageModel, randomness: Randomness | None = None
) -> tuple[Demonstration, ...]:
    """Public demonstrations for the same task, as many as `demo_set`'s: those that it was compared with, if it was.

    Args:
        randomness: the operating system's; a seeded one where the same set is wanted again: nothing private is drawn.
    """
    if demo_set.baselines and demo_set.baselines.public_only:
        return demo_set.baselines.public_only.demonstrations
    return written_publicly(
        demo_set.demonstrations, demo_set.labels, asked_of(demo_set), model, draft_tokens_of(demo_set), randomness
    )


def asked_of(demo_set: DemoSet) -> Asked:
    """How the model was asked to write a set; of a file that does not say so, what its prompt calls a text."""
    return demo_set.asked or Asked(kind=demo_set.template.text.lower())


def draft_tokens_of(demo_set: DemoSet) -> int:
    """The most tokens of a draft of the run that wrote a set."""
    stated = demo_set.certificate.parameters.get("draft_tokens")  # of a run that only writes, a file may say anything
    usual: int = RunSpec.model_fields["draft_tokens"].default
    return stated if type(stated) is int and stated > 0 else usual


def written_publicly(
    like: Sequence[Demonstration],
    labels: tuple[str, ...],
    asked: Asked,
    model: LanguageModel,
    tokens: int,
    randomness: Randomness | None = None,
) -> tuple[Demonstration, ...]:
    """The likeliest of a few drafts, as many of each label as there are in `like`, as a run without any row keeps them.

    Raises:
        UsageError: the model writes no usable drafts.
    """
    randomness = randomness or SecureRandomness()
    wanted = Counter(each.label for each in like)
    gate = gate_of(model, asked, labels[0], randomness)
    written: dict[str, tuple[str, ...]] = {}
    for label in labels:
        count = max(FEWEST_DRAFTS, DRAFTS_A_WINNER * wanted[label])
        taken = [text for texts in written.values() for text in texts]
        written[label] = write_drafts(model, Drafts(asked, label, labels, count, tokens, {}), gate, randomness, taken)
    return interleaved({label: written[label][: wanted[label]] for label in labels}, labels)
