"""The epsilon = 0 arm of a comparison: as many demonstrations from public text alone."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence

from mechanisms.accounting import PrivacyTarget
from mechanisms.inference import LanguageModel
from mechanisms.noise import SecureRandomness
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class
from mechanisms.studio.data.record_schema import RecordSchema
from mechanisms.studio.synthesis.demo_set import DemoSet
from mechanisms.studio.synthesis.lockstep import groups, write_together
from mechanisms.studio.synthesis.request import NO_FILE, SynthesisRequest
from mechanisms.studio.synthesis.writer import DemonstrationWriter


def public_demonstrations(demo_set: DemoSet, model: LanguageModel) -> tuple[Demonstration, ...]:
    """Public demonstrations for the same task, of the same number and length as `demo_set`'s."""
    stated = demo_set.certificate.parameters
    tokens, least = int(stated.get("tokens", 30)), int(stated.get("min_tokens", 0))
    like, schema = demo_set.demonstrations, demo_set.schema
    return written_publicly(like, demo_set.labels, demo_set.template, model, tokens, least, schema)


def written_publicly(
    like: Sequence[Demonstration],
    labels: tuple[str, ...],
    template: PromptTemplate,
    model: LanguageModel,
    tokens: int,
    least: int = 0,
    schema: RecordSchema | None = None,
) -> tuple[Demonstration, ...]:
    """Public demonstrations for a task: as many of each label as there are in `like`, of `least` to `tokens` tokens.

    With a schema they are records of it.
    """
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
        schema=schema,
    )
    writers = [
        DemonstrationWriter((), request, model, SecureRandomness(), label, number)
        for label in labels
        for number in range(1, per_label[label] + 1)
    ]
    for group in groups(writers, request, model):
        deque(write_together(group, request, model), maxlen=0)
    return tuple(writer.demonstration for writer in writers)
