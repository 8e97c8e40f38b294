"""The epsilon = 0 arm of a comparison: as many demonstrations from public text alone."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from mechanisms.accounting import PrivacyTarget
from mechanisms.inference import LanguageModel
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class
from mechanisms.studio.synthesis.demo_set import DemoSet
from mechanisms.studio.synthesis.lockstep import groups, write_together
from mechanisms.studio.synthesis.request import NO_FILE, SynthesisRequest
from mechanisms.studio.synthesis.writer import DemonstrationWriter


def public_demonstrations(
    demo_set: DemoSet, model: LanguageModel, randomness: Randomness | None = None
) -> tuple[Demonstration, ...]:
    """Public demonstrations for the same task, of the same number and length as `demo_set`'s.

    Args:
        randomness: the operating system's; a seeded one where the same set is wanted again: nothing private is drawn.
    """
    stated = demo_set.certificate.parameters
    tokens, least = int(stated.get("tokens", 30)), int(stated.get("min_tokens", 0))
    shown, labels, template = demo_set.demonstrations, demo_set.labels, demo_set.template
    return written_publicly(shown, labels, template, model, tokens, least, randomness)


def written_publicly(
    like: Sequence[Demonstration],
    labels: tuple[str, ...],
    template: PromptTemplate,
    model: LanguageModel,
    tokens: int,
    least: int = 0,
    randomness: Randomness | None = None,
) -> tuple[Demonstration, ...]:
    """Public demonstrations for a task: as many of each label as there are in `like`, of `least` to `tokens` tokens."""
    randomness = randomness or SecureRandomness()
    per_label = Counter(demonstration.label for demonstration in like)
    request = SynthesisRequest(
        labels=labels,
        template=template,
        plan=SamplingPlan(tokens=tokens),
        mechanism=mechanism_class("public")(),
        target=PrivacyTarget(1.0, 1e-5),
        sizes=dict.fromkeys(labels, 1),
        content=NO_FILE,
        min_tokens=min(least, tokens),
    )
    writers = [
        DemonstrationWriter((), request, model, randomness, label, number)
        for label in labels
        for number in range(1, per_label[label] + 1)
    ]
    for group in groups(writers, request, model):
        deque(write_together(group, request, model), maxlen=0)
    return tuple(writer.demonstration for writer in writers)
