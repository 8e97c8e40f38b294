"""The epsilon = 0 arm of a comparison: as many demonstrations from public text alone."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence

from mechanisms.accounting import PrivacyTarget
from mechanisms.data.record_schema import RecordSchema
from mechanisms.demos.demo_set import DemoSet, Outputs, outputs_of, without_empty_outputs
from mechanisms.inference import LanguageModel
from mechanisms.noise import Randomness, SecureRandomness
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.runs.best_of import Fidelity
from mechanisms.runs.lockstep import groups, write_together
from mechanisms.runs.request import MOST_TRIES, NO_FILE, SynthesisRequest
from mechanisms.runs.writer import DemonstrationWriter
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class

_CANDIDATES = 50
"""More than beside private rows: nothing is added here that few would drown in."""


def public_demonstrations(
    demo_set: DemoSet, model: LanguageModel, randomness: Randomness | None = None
) -> tuple[Demonstration, ...]:
    """Public demonstrations for the same task, as many, as long and chosen from as many as `demo_set`'s.

    A set that was chosen brings along those that stood in the choice.

    Args:
        randomness: the operating system's; a seeded one where the same set is wanted again: nothing private is drawn.
    """
    if demo_set.choice and demo_set.choice.public_only:
        return demo_set.choice.public_only.demonstrations
    stated = demo_set.certificate.parameters
    tokens, least = int(stated.get("tokens", SamplingPlan.tokens)), int(stated.get("min_tokens", 0))
    shown, labels, template, schema = demo_set.demonstrations, demo_set.labels, demo_set.template, demo_set.schema
    outputs, tries = outputs_of(demo_set), tries_of(demo_set)
    return written_publicly(shown, labels, template, model, tokens, least, tries, randomness, schema, outputs)


def tries_of(demo_set: DemoSet) -> int:
    """Demonstrations that were written for each one that is in a set; 1 where nothing was left out."""
    stated = demo_set.certificate.parameters
    if "recipe" in stated or "kept_per_label" not in stated:
        return 1
    tries: int = math.ceil(stated["shots_per_label"] / stated["kept_per_label"])
    return min(MOST_TRIES, tries)


def written_publicly(
    like: Sequence[Demonstration],
    labels: tuple[str, ...],
    template: PromptTemplate,
    model: LanguageModel,
    tokens: int,
    least: int = 0,
    tries: int = 1,
    randomness: Randomness | None = None,
    schema: RecordSchema | None = None,
    outputs: Outputs | None = None,
) -> tuple[Demonstration, ...]:
    """Public demonstrations for a task: as many of each label as there are in `like`, of `least` to `tokens` tokens.

    Args:
        tries: demonstrations that are written for each one; the model keeps those that it takes most surely for their
            label, as it does where private rows take part.
        schema: what they are records of, where they are.
        outputs: how they come by outputs, where the template has a field for them.
    """
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
        candidates=_CANDIDATES,
        min_tokens=min(least, tokens),
        schema=schema,
        outputs=outputs,
    )
    writers = [
        DemonstrationWriter((), request, model, randomness, label, number)
        for label in labels
        for number in range(1, tries * per_label[label] + 1)
    ]
    for group in groups(writers, request, model):
        deque(write_together(group, request, model), maxlen=0)
    written = without_empty_outputs(writer.demonstration for writer in writers)
    return written if tries == 1 else Fidelity(model, template, labels).best(written, per_label)
