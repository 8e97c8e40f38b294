"""A set of demonstrations, whoever wrote it: an export with its certificate, or a few lines of JSON by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import jsonschema
import numpy as np

from mechanisms.errors import UsageError
from mechanisms.inference import LanguageModel
from mechanisms.noise import Floats, Integers
from mechanisms.privacy_events import Composed
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.studio.data.record_schema import RecordSchema
from mechanisms.studio.evaluation.labels_to_find import check_labels
from mechanisms.studio.recipes.recipe import Division, Stage
from mechanisms.studio.synthesis.demo_set import VERSION, DemoSet, Json, loads, read_json, schema
from mechanisms.studio.synthesis.findings import PublicSet
from mechanisms.studio.synthesis.public_demonstrations import tries_of
from mechanisms.tallies import Weighing, weights

_PARTS = ("demonstrations", "task")
_USUAL_TOKENS = 30


@dataclass(frozen=True)
class AnySet:
    """Demonstrations and the task that they are for; public.

    Attributes:
        tokens, min_tokens: the most and the fewest tokens of a demonstration.
        tries: demonstrations that were written for each of these.
        prior: what is added to each label's log-probability under the demonstrations; None where not measured.
        zero_shot: the same without demonstrations.
        public_only: the public-only set that stood in the choice, with its correction; None where there was none.
        model_sha256: of the model that the corrections were measured with.
        schema: what the demonstrations are records of, if they are.
        spare: the share of the units, at the scorers' end, that no stage read which made or chose the set.
        event: what the run that made it did, and before it a measurement of sizes; None where nobody says.
        weights: what a row of each label counts in a score, public, at most 1; None: all rows count the same.
        reason: why the set is not private, and with it whatever follows from it; None where it is, or nobody says.
    """

    demonstrations: tuple[Demonstration, ...]
    labels: tuple[str, ...]
    template: PromptTemplate
    tokens: int = _USUAL_TOKENS
    min_tokens: int = 0
    tries: int = 1
    prior: Mapping[str, float] | None = None
    zero_shot: Mapping[str, float] | None = None
    public_only: PublicSet | None = None
    model_sha256: str | None = None
    spare: float = 0.0
    schema: RecordSchema | None = None
    event: Composed | None = None
    weights: Mapping[str, float] | None = None
    reason: str | None = None

    @property
    def weighing(self) -> Weighing:
        """What counts the same in a score."""
        return Weighing.ROWS if self.weights is None else Weighing.LABELS

    def row_weights(self, truth: Integers) -> Floats:
        """What rows count, by the places of their labels, shape (rows,)."""
        by_label = np.array([1.0 if self.weights is None else self.weights[label] for label in self.labels])
        return np.asarray(by_label[truth])

    def as_read_by(self, model: LanguageModel) -> AnySet:
        """The set as a model may read it: without corrections that were measured with another one."""
        if self.model_sha256 == model.sha256:
            return self
        public = self.public_only and replace(self.public_only, prior=None)
        return replace(self, prior=None, zero_shot=None, public_only=public)

    def __post_init__(self) -> None:
        if self.template.output is not None:
            raise UsageError("This asks about texts with labels: a set whose texts have outputs is read by `evaluate`.")
        if foreign := [each.label for each in self.demonstrations if each.label not in self.labels]:
            raise UsageError(f"A demonstration has the label '{foreign[0]}', which is not one of the task's.")


def with_choice(task: AnySet) -> AnySet:
    """The set, for whoever asks which of its labels a text has.

    Raises:
        UsageError: see `check_labels`.
    """
    check_labels(task.labels, task.schema)
    return task


def read_set(text: str) -> AnySet:
    """Read a demo set, or JSON with its `demonstrations` and its `task` alone.

    Raises:
        UsageError: it is neither.
    """
    document = read_json(text)
    if isinstance(document, dict) and "format" in document:
        return of_demo_set(loads(text))
    _check(document)
    task = document["task"]
    return AnySet(
        tuple(Demonstration(each["text"], each["label"]) for each in document["demonstrations"]),
        tuple(task["labels"]),
        PromptTemplate(task["instruction"], **task["template"]),
    )


def of_demo_set(demo_set: DemoSet) -> AnySet:
    """An export, read with the corrections that were measured for it."""
    parameters = demo_set.certificate.parameters
    by_roles = parameters.get("division") == Division.ROLES.value
    read = sum(stage.role for stage in demo_set.stages if stage.name != Stage.SCORE)
    return AnySet(
        demo_set.demonstrations,
        demo_set.labels,
        demo_set.template,
        tokens=int(parameters.get("tokens", _USUAL_TOKENS)),
        min_tokens=int(parameters.get("min_tokens", 0)),
        tries=tries_of(demo_set),
        prior=demo_set.prior,
        zero_shot=demo_set.choice.zero_shot if demo_set.choice else None,
        public_only=demo_set.choice.public_only if demo_set.choice else None,
        model_sha256=demo_set.model_sha256,
        spare=max(0.0, 1 - read) if by_roles and demo_set.stages else 0.0,
        schema=demo_set.schema,
        event=demo_set.certificate.event,
        weights=_weights(demo_set),
        reason=demo_set.certificate.why_not_private,
    )


def _weights(demo_set: DemoSet) -> Mapping[str, float] | None:
    """What rows count by the set's own certificate, where labels count the same there."""
    parameters = demo_set.certificate.parameters
    if parameters.get("weighing") != Weighing.LABELS:
        return None
    return weights({label: int(parameters["sizes"][label]) for label in demo_set.labels}, Weighing.LABELS)


def _check(document: Json) -> None:
    known = schema(VERSION)["properties"]
    wanted = {"type": "object", "required": list(_PARTS), "properties": {name: known[name] for name in _PARTS}}
    problem = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(wanted).iter_errors(document))
    if problem is not None:
        where = "/".join(str(part) for part in problem.absolute_path) or "the top level"
        raise UsageError(f"This is no set of demonstrations: {problem.validator} fails at {where}.")
