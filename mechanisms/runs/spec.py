"""The settings of a run: one model of public values.

The values of settings that are left open (None) follow from the labels and from public sizes
(`mechanisms.runs.completion`). A plan and a certificate state the same model with a value for every setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from enum import StrEnum
from functools import partial
from typing import Any, Literal, TypedDict

from mechanisms.asking import MOST_EXEMPLARS, Wording
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.records import PromptTemplate, default_template
from mechanisms.runs.stages import stage_names
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.settings import PARAMETERS, Spec, refused, setting
from mechanisms.steps import (
    TokenMechanism,
    Transform,
    mechanism_class,
    mechanism_names,
    transform_class,
    transform_names,
)
from mechanisms.tallies import Weighing

WRITE, VOTE, OPENINGS, WORDS = "write", "vote", "openings", "words"
CALIBRATE, SCORE = "calibrate", "score"


class Recipe(StrEnum):
    """The source of demonstrations: written token by token, drafts that rows vote on, or both."""

    TOKENS = "tokens"
    VOTE = "vote"
    BOTH = "both"


class Split(StrEnum):
    """The resource that the stages share: units or epsilon."""

    ROLES = "roles"
    """Units: each unit has one role, fixed by a keyed digest, so that the stages compose in parallel."""
    EPSILON = "epsilon"
    """Epsilon: every unit takes part in every stage, and the stages compose in sequence."""


SOURCES = {Recipe.TOKENS: {WRITE}, Recipe.VOTE: {VOTE}, Recipe.BOTH: {WRITE, VOTE}}
"""The stages that make the demonstrations of each recipe."""


class Group(StrEnum):
    """The group of a setting, which is its heading in a form and in a help text."""

    TASK = "what is written"
    PRIVACY = "privacy"
    STAGES = "stages"
    TOKENS = "token by token"
    CAPS = "caps on what is read"


_task, _privacy, _of_stages, _tokens, _cap = (partial(setting, group=each) for each in Group)


class RunSpec(Spec):
    """The settings of a run."""

    epsilon: float = _privacy(1.0, "Epsilon", "What the run may cost, a measurement of sizes included.", gt=0, le=1e6)
    delta: float = _privacy(1e-5, "Delta", "Failure probability of the claim, well under 1/n.", gt=0, lt=1)
    sizes: Literal["counted"] | dict[str, int] | None = _privacy(
        None,
        "Label sizes",
        "Rows (or users) of each label, declared public: counted in the file, or A=n,B=n.",
        otherwise="none: say this, or measure them",
    )
    count_epsilon: float | None = _privacy(
        None,
        "Epsilon for counting",
        "Measure the sizes with noise instead, for a share of epsilon.",
        otherwise="not measured",
        gt=0,
    )

    kind: str = _task("text", "What is one text?", "Message, question, review, ...", max_length=200)
    writer: str = _task("", "Who writes them?", "With an article, such as 'a patient'.", max_length=200)
    reader: str = _task("", "To whom?", "With an article, such as 'a clinic'.", max_length=200)
    relation: str = _task(
        "about", "Text and label", "What joins them in a sentence: 'about', 'that is', ...", max_length=200
    )
    label_words: dict[str, str] = _task({}, "Label words", "What a label is called in the sentence: A=words,B=words.")
    sentence: str = _task(
        "",
        "Own sentence",
        "Asks the model in place of the one made of these words. Say who writes what to whom, about {label}.",
    )
    exemplars: int = _task(
        MOST_EXEMPLARS,
        "Exemplars",
        "Public texts of this kind, of this program, that the model sees first, at most.",
        ge=0,
        le=MOST_EXEMPLARS,
    )
    instruction: str | None = _task(
        None, "Instruction", "What the prompt that classifies asks for.", otherwise="made of the labels"
    )
    text_field: str = _task("Text", "Name of the text", "How the prompt that classifies calls it.")
    label_field: str = _task("Label", "Name of the label", "How the prompt that classifies calls it.")
    shots: int = _task(2, "Demonstrations a label", "In the set.", flag="shots-per-label", ge=1, le=50)

    recipe: Recipe | None = _of_stages(
        None,
        "Where demonstrations come from",
        "tokens: written token by token; vote: drafts that the rows vote on; both.",
    )
    split: Split | None = _of_stages(
        None, "Split rows or epsilon?", "Each row takes part in one stage, or in all with a share of epsilon."
    )
    shares: dict[str, float] | None = _of_stages(
        None, "Shares", "Of each stage, of rows or of epsilon: write=.4,vote=.2,..."
    )
    score: bool = _of_stages(True, "Private score", "Whether rows score the set in the end.", words=("none", "private"))
    drafts: int | None = _of_stages(None, "Drafts a label", "That stand in a ballot.", ge=2, le=256)
    draft_tokens: int = _of_stages(40, "Tokens of a draft", "At most.", unit="tokens", ge=5, le=256)
    weighing: Weighing | None = _of_stages(
        None, "What counts the same", "Every row, or every label, where the set is fitted and scored."
    )

    mechanism: str = _tokens(
        "gaussian", "Mechanism", "Releases a token from the rows' distributions.", words=mechanism_names()
    )
    transform: str = _tokens(
        "none", "Transform", "Of each row's distribution, before the mechanism.", words=transform_names()
    )
    parameters: dict[str, float | int | bool] = _tokens(
        {}, "Parameters", "Of mechanism and transform, by their flags; the calibrated one is solved for."
    )
    written: int | None = _tokens(
        None, "Written a label", "Demonstrations of each label that are written token by token.", ge=1, le=50
    )
    scheme: Scheme = _tokens(
        Scheme.PER_DEMONSTRATION, "Sampling", "A new sample of rows for every token, or for every text."
    )
    subsets: int | None = _tokens(
        None,
        "Rows per token (M)",
        "Rows at each token: single ones, of which M is the expected number, or M subsets of N.",
        ge=1,
        le=100_000,
    )
    per_subset: int | None = _tokens(
        None,
        "Rows a subset (N)",
        "Subsets of N expected rows in place of single rows, M of them at each token.",
        otherwise="each sampled unit is a row",
        ge=1,
        le=1000,
    )
    tokens: int | None = _tokens(
        None, "Tokens (T)", "Of a demonstration, each of them charged.", unit="tokens", ge=1, le=100_000
    )
    min_tokens: int | None = _tokens(
        None, "Tokens before the end", "A text does not end before it has so many.", unit="tokens", ge=0
    )
    candidates: int = _tokens(
        16, "Candidates (K)", "Tokens of the public distribution that may be released.", ge=2, le=1000
    )
    candidate_top_p: float | None = _tokens(
        None,
        "Candidates' nucleus",
        "Candidates hold this share of the public distribution together, at most.",
        gt=0,
        le=1,
    )

    max_record_tokens: int = _cap(48, "Tokens of a row", "A longer text is cut there.", unit="tokens", ge=1, le=1024)
    max_unit_records: int = _cap(
        3, "Rows of a user", "That a stage takes of one user, at most.", unit="rows", ge=1, le=64
    )

    def _contradictions(self) -> Iterator[str]:
        yield from self._of_sizes()
        yield from self._of_mechanism()
        yield from self._of_stages()
        yield from self._of_words()

    def _of_sizes(self) -> Iterator[str]:
        if self.sizes is not None and self.count_epsilon is not None:
            yield "Label sizes are declared or measured, not both."
        if self.count_epsilon is not None and self.count_epsilon >= self.epsilon:
            yield "Epsilon must be larger than the epsilon for counting: the demonstrations need the rest."
        if self.per_subset is not None and self.subsets is not None and self.per_subset * self.subsets > 100_000:
            yield "A sample of more than 100000 rows is not supported: lower M or N."

    def _of_mechanism(self) -> Iterator[str]:
        unknown = [*refused(lambda: mechanism_class(self.mechanism)), *refused(lambda: transform_class(self.transform))]
        if unknown:
            yield from unknown
            return
        if self.transform != "none" and not mechanism_class(self.mechanism).takes_transform:
            yield (
                f"'{self.mechanism}' works on logits: the transform '{self.transform}' needs a mechanism on "
                "probabilities, such as gaussian."
            )
        yield from refused(lambda: self.made_mechanism)
        yield from refused(lambda: self.made_transform)

    def _of_stages(self) -> Iterator[str]:
        shares = self.shares
        if shares is None:
            return
        if unknown := sorted(set(shares) - set(stage_names())):
            yield f"There is no stage '{unknown[0]}': the stages are {', '.join(stage_names())}."
        if not all(0 < share <= 1 for share in shares.values()):
            yield "Every stage's share must lie in (0, 1]: leave out a stage that gets none."
        if sum(shares.values()) > 1 + 1e-9:
            yield "The stages' shares add up to more than 1."
        if self.recipe is not None:
            if missing := sorted(SOURCES[self.recipe] - set(shares)):
                yield f"The recipe '{self.recipe}' needs a share for the stage '{missing[0]}'."
            if foreign := sorted({WRITE, VOTE} & set(shares) - SOURCES[self.recipe]):
                yield f"The recipe '{self.recipe}' has no stage '{foreign[0]}'."
        if not self.score and SCORE in shares:
            yield "Without a private score the stage 'score' has no share: leave it out of the shares too."

    def _of_words(self) -> Iterator[str]:
        yield from refused(lambda: self.wording)
        yield from refused(lambda: PromptTemplate("", self.text_field, self.label_field))

    @staticmethod
    def of_wording(wording: Wording) -> dict[str, Any]:
        """The fields that have this `wording`."""
        said = {each.name: getattr(wording, each.name) for each in fields(wording) if each.name != "words"}
        return said | {"label_words": dict(wording.words)}

    @property
    def wording(self) -> Wording:
        return Wording(
            self.kind, self.writer, self.reader, self.relation, self.label_words, self.sentence, self.exemplars
        )

    def template(self, labels: tuple[str, ...]) -> PromptTemplate:
        return default_template(labels, self.text_field, self.label_field, self.instruction)

    @property
    def made_mechanism(self) -> TokenMechanism:
        """The mechanism with its parameters. Raises a UsageError if one is out of range or is not a parameter of the
        mechanism or the transform."""
        own = [*parameters(mechanism_class(self.mechanism)), *parameters(transform_class(self.transform))]
        if foreign := sorted(set(self.parameters) - {each.flag for each in own}):
            raise UsageError(f"--{foreign[0]} is no parameter of '{self.mechanism}' with transform '{self.transform}'.")
        return mechanism_class(self.mechanism)(**self._own(mechanism_class(self.mechanism)))

    @property
    def made_transform(self) -> Transform:
        chosen = transform_class(self.transform)
        return chosen(**self._own(chosen))

    def _own(self, config: Any) -> dict[str, Any]:
        own = (each for each in parameters(config) if each.flag in self.parameters)
        return {each.name: each.typed(self.parameters[each.flag]) for each in own}

    @property
    def public(self) -> bool:
        """Whether the run only writes texts with a mechanism that reads no row."""
        writes = self.recipe in (None, Recipe.TOKENS) and set(self.shares or ()) <= {WRITE}
        return writes and not mechanism_class(self.mechanism).uses_private_rows

    @property
    def unit_rows(self) -> bool:
        """Whether each sampled unit is a row of its own."""
        return self.per_subset is None

    def sampling(self, share: float = 1.0) -> SamplingPlan:
        """The sampling of units for each token; M, T and the written demonstrations must be set.

        `share` is the share of the units from which the samples are drawn.
        """
        assert self.subsets is not None
        assert self.tokens is not None
        assert self.written is not None
        return SamplingPlan(
            self.scheme, self.subsets, self.per_subset or 1, self.unit_rows, self.tokens, self.written, share
        )


class RunSettings(TypedDict, total=False):
    """The settings of a run as arguments of a Python function, for editors and type checkers.

    Names and types are those of `RunSpec`, which also has defaults, bounds and help texts. A choice may be given as
    text.
    """

    epsilon: float
    delta: float
    sizes: Literal["counted"] | dict[str, int] | None
    count_epsilon: float | None
    kind: str
    writer: str
    reader: str
    relation: str
    label_words: dict[str, str]
    sentence: str
    exemplars: int
    instruction: str | None
    text_field: str
    label_field: str
    shots: int
    recipe: Recipe | Literal["tokens", "vote", "both"] | None
    split: Split | Literal["roles", "epsilon"] | None
    shares: dict[str, float] | None
    score: bool
    drafts: int | None
    draft_tokens: int
    weighing: Weighing | Literal["rows", "labels"] | None
    mechanism: str
    transform: str
    parameters: dict[str, float | int | bool]
    written: int | None
    scheme: Scheme | Literal["per-token", "per-demonstration"]
    subsets: int | None
    per_subset: int | None
    tokens: int | None
    min_tokens: int | None
    candidates: int
    candidate_top_p: float | None
    max_record_tokens: int
    max_unit_records: int


SETTINGS = RunSpec.settings()
FLAGGED = RunSpec.flagged()
"""The settings with their own flag, in the order of the fields."""
_ELSEWHERE = {"delta", "sizes", "count_epsilon", "score", PARAMETERS}
"""The settings that a certificate states outside its parameters, or in another form."""


def stated(writes: bool, by_user: bool) -> list[str]:
    """The names of the settings that a certificate states unchanged among its parameters. The set itself has the task.

    Args:
        writes: whether the run writes token by token.
        by_user: whether the unit is all rows of a user.
    """
    left_out = _ELSEWHERE if by_user else _ELSEWHERE | {"max_unit_records"}
    groups = {Group.PRIVACY, Group.STAGES, Group.CAPS, *((Group.TOKENS,) if writes else ())}
    return [
        each.name
        for each in SETTINGS.values()
        if each.name == "shots" or each.group in groups
        if each.name not in left_out
    ]
