"""What an owner asks of a run, in public values: the app's form, the command line's options and Python's arguments.

`RunSpec.request(dataset)` fills in what was left open, from the data set's labels and public sizes. Of the rows it
takes the counts that are declared public, and the keyed digest that binds the run to this data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from mechanisms.accounting import PrivacyTarget, fingerprint
from mechanisms.data.record_schema import RecordSchema
from mechanisms.data.sizes import MeasuredSizes, left_after_counts
from mechanisms.demos.demo_set import Outputs
from mechanisms.errors import UsageError
from mechanisms.records import Dataset, PromptTemplate, default_template
from mechanisms.runs.advice import proposed
from mechanisms.runs.defaults import (
    MECHANISM,
    Lengths,
    draft_tokens_of_texts,
    lengths_of_texts,
    usual_lengths,
    usual_recipe,
    usual_subsets,
)
from mechanisms.runs.recipe import Division, Kind, Recipe, Stage
from mechanisms.runs.recipe_request import RecipeRequest, RunRequest
from mechanisms.runs.request import (
    DECLARED_SIZES,
    FILE_FORMAT,
    LABEL_SET,
    MIN_TOKENS,
    SynthesisRequest,
    declared_counts,
)
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import NoTransform, TokenMechanism, Transform, mechanism_class
from mechanisms.tallies import Weighing


def _usual_mechanism() -> TokenMechanism:
    return mechanism_class(MECHANISM)()


_OF_WRITING = ("mechanism", "transform", "scheme", "subsets", "per_subset", "unit_rows", "tokens", "min_tokens")
"""Fields that a run has only where it writes token by token."""


@dataclass(frozen=True)
class RunSpec:
    """A run as it is asked for; what is None follows from the labels, from public sizes or from other fields.

    Attributes:
        target: the (epsilon, delta) that the run may cost, with a measurement of sizes.
        sizes: units of each label: "counted" declares the data set's own counts public, a mapping declares upper
            bounds, and measured ones have been charged.
        template: how the task is put to the model.
        shots: demonstrations of each label.
        recipe: where demonstrations come from; without stages for "tokens", unless `shares` or `division` are given.
        score: whether the last stage takes part.
        division, shares, drafts, rounds, sets, weighing: see `Recipe`.
        draft_tokens: tokens of a draft.
        mechanism, transform: that write token by token; not calibrated.
        scheme, subsets, per_subset, unit_rows, tokens: see `SamplingPlan`.
        text_words: words that a text usually has, declared public: lengths that are left open follow from it.
        best_of: demonstrations that are written for each one that is kept.
        candidates, max_record_tokens, max_unit_records, min_tokens, schema, outputs: see `SynthesisRequest`.
    """

    target: PrivacyTarget
    sizes: Literal["counted"] | Mapping[str, int] | MeasuredSizes = "counted"
    template: PromptTemplate | None = None
    shots: int = SamplingPlan.shots
    recipe: Kind | None = None
    score: bool = True
    division: Division | None = None
    shares: Mapping[Stage, float] | None = None
    drafts: int | None = None
    rounds: int | None = None
    sets: int | None = None
    weighing: Weighing | None = None
    draft_tokens: int | None = None
    mechanism: TokenMechanism = field(default_factory=_usual_mechanism)
    transform: Transform = field(default_factory=NoTransform)
    scheme: Scheme = SamplingPlan.scheme
    subsets: int | None = None
    per_subset: int = SamplingPlan.per_subset
    unit_rows: bool = SamplingPlan.unit_rows
    tokens: int | None = None
    text_words: int | None = None
    best_of: int = 1
    candidates: int = SynthesisRequest.candidates
    max_record_tokens: int | None = None
    max_unit_records: int = SynthesisRequest.max_unit_records
    min_tokens: int | None = None
    schema: RecordSchema | None = None
    outputs: Outputs | None = None

    def kind(self, labels: int) -> Kind:
        """Where demonstrations come from, for so many labels."""
        if self.recipe is not None:
            return self.recipe
        plain = self.schema is None and self.outputs is None
        return usual_recipe(labels, self.mechanism.name, self.shots, self.best_of, plain, self._asks_to_write)

    @property
    def _asks_to_write(self) -> bool:
        """Whether a setting is given that only token-by-token writing has."""
        usual = RunSpec(self.target)
        given = any(getattr(self, name) != getattr(usual, name) for name in _OF_WRITING)
        return given or Stage.WRITE in (self.shares or {})

    def in_stages(self, labels: int) -> bool:
        """Whether the run has stages, for so many labels."""
        return self.kind(labels) is not Kind.TOKENS or self.shares is not None or self.division is not None

    def request(self, dataset: Dataset) -> RunRequest:
        """The request for a data set; not calibrated.

        Args:
            dataset: private. Its labels and its unit are used, its counts where they are declared public, and its
                keyed digest, so that the run is made on no other.

        Raises:
            UsageError: a value is out of range, or does not go with the others.
        """
        return self.staged(dataset) if self.in_stages(len(dataset.labels)) else self.writing(dataset)

    def staged(self, dataset: Dataset) -> RecipeRequest:
        """See `request`: of a run in stages, whose writing is not apportioned yet."""
        if self.schema or self.outputs:
            what = "Records" if self.schema else "Outputs"
            raise UsageError(f"{what} are written token by token, without stages.")
        if self.best_of != 1:
            raise UsageError("Only a run without stages keeps the best of several: in stages all stand in the ballot.")
        writing = self._of_the_stage(len(dataset.labels)).writing(dataset)
        recipe = self.recipe_for(writing.sizes, left_after_counts(self.target.epsilon, writing.measured))
        tokens = draft_tokens_of_texts(self.text_words) if self.draft_tokens is None else self.draft_tokens
        return RecipeRequest.of(writing, recipe, tokens)

    def _of_the_stage(self, labels: int) -> RunSpec:
        """The same, without settings of a writing that the run does not have."""
        if self.kind(labels) is not Kind.VOTE:
            return self
        usual = RunSpec(self.target)
        return replace(self, **{name: getattr(usual, name) for name in _OF_WRITING})

    def recipe_for(self, sizes: Mapping[str, int], epsilon: float) -> Recipe:
        """The stages; what is left open is planned.

        Args:
            sizes: declared or measured units of each label.
            epsilon: what the stages may cost together.

        Raises:
            UsageError: a number is out of range, or a stage is missing, unknown or too many.
        """
        usual = Division.ROLES if self.shares is not None else None
        recipe = proposed(self.kind(len(sizes)), sizes, epsilon, self.score, self.division or usual, self.shots)
        names = ("shares", "drafts", "rounds", "sets", "weighing")
        asked = {name: value for name in names if (value := getattr(self, name)) is not None}
        recipe = replace(recipe, **asked)
        if not self.score and Stage.SCORE in recipe.shares:
            raise UsageError("Without a private score the stage 'score' has no share: leave it out of the shares too.")
        return recipe

    def writing(self, dataset: Dataset) -> SynthesisRequest:
        """See `request`: of a run that writes token by token, or of the stage that does."""
        measured = self.sizes if isinstance(self.sizes, MeasuredSizes) else None
        sizes = self._declared(dataset)
        lengths = self._lengths(len(dataset.labels))
        request = SynthesisRequest(
            labels=dataset.labels,
            template=self.template or default_template(dataset.labels),
            plan=SamplingPlan(
                scheme=self.scheme,
                subsets=usual_subsets(measured.sizes if measured else sizes) if self.subsets is None else self.subsets,
                per_subset=self.per_subset,
                unit_rows=self.unit_rows,
                tokens=lengths.tokens,
                shots=self.shots,
            ),
            mechanism=self.mechanism,
            transform=self.transform,
            target=self.target,
            sizes=sizes,
            content=fingerprint(dataset).content,
            by_user=dataset.by_user,
            candidates=self.candidates,
            max_record_tokens=lengths.max_record_tokens,
            max_unit_records=self.max_unit_records,
            min_tokens=self._least(lengths.tokens) if self.min_tokens is None else self.min_tokens,
            schema=self.schema,
            outputs=self.outputs,
            public_inputs=(LABEL_SET, FILE_FORMAT, self._said_of_sizes(dataset)),
        ).best_of(self.best_of)
        return request.with_measured_sizes(measured) if measured else request

    def _lengths(self, labels: int) -> Lengths:
        usual = usual_lengths(labels, self.schema is not None, self.outputs is not None)
        usual = lengths_of_texts(self.text_words, usual)
        given = {"tokens": self.tokens, "max_record_tokens": self.max_record_tokens}
        return replace(usual, **{name: value for name, value in given.items() if value is not None})

    def _least(self, tokens: int) -> int:
        """Tokens before a text may end: a record ends where its schema says."""
        of_text = tokens - (self.outputs.charged if self.outputs else 0)
        return 0 if self.schema else max(0, min(MIN_TOKENS, of_text))

    def _declared(self, dataset: Dataset) -> Mapping[str, int]:
        match self.sizes:
            case "counted":
                return dataset.counted_sizes()
            case MeasuredSizes(sizes):
                return sizes
            case Mapping():
                return dict(self.sizes)
        raise UsageError('The sizes are "counted", or a number for each label.')

    def _said_of_sizes(self, dataset: Dataset) -> str:
        return declared_counts(dataset.by_user) if self.sizes == "counted" else DECLARED_SIZES
