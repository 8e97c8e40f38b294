"""What an owner asks of a run: one model of public values, which has every setting with its default, bounds and words.

From it come the options of the command line, the keys of a settings file, the bounds, labels and help of the app's
controls, and the reference page. What is left open (None) follows from the labels and from public sizes (`completed`):
many rows are limited by compute, few by noise. The same model with nothing left open is what a plan and a certificate
state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from types import NoneType
from typing import Any, Literal, Self, TypedDict, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from mechanisms.asking import MOST_EXEMPLARS, Asked
from mechanisms.data.label_names import read_pairs
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError, refusal
from mechanisms.records import PromptTemplate, default_template
from mechanisms.runs.stages import stage_names, stages_by_place
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import (
    TokenMechanism,
    Transform,
    mechanism_class,
    mechanism_names,
    transform_class,
    transform_names,
)
from mechanisms.steps.mechanism import Norm
from mechanisms.tallies import Weighing, usual_weighing

WRITE, VOTE, OPENINGS, WORDS = "write", "vote", "openings", "words"
CALIBRATE, SCORE = "calibrate", "score"


class Recipe(StrEnum):
    """Where demonstrations come from."""

    TOKENS = "tokens"
    VOTE = "vote"
    BOTH = "both"


class Split(StrEnum):
    """What the stages share."""

    ROLES = "roles"
    """Units: each has one role, fixed by a keyed digest, so that stages compose in parallel."""
    EPSILON = "epsilon"
    """Epsilon: every unit takes part in every stage, and the stages compose in sequence."""


SOURCES = {Recipe.TOKENS: {WRITE}, Recipe.VOTE: {VOTE}, Recipe.BOTH: {WRITE, VOTE}}
"""The stages that demonstrations come from."""


class Group(StrEnum):
    """Where a setting stands, on a page and in a help text."""

    TASK = "what is written"
    PRIVACY = "privacy"
    STAGES = "stages"
    TOKENS = "token by token"
    CAPS = "caps on what is read"


def setting(
    default: Any,
    title: str,
    help: str,
    *,
    group: Group,
    flag: str = "",
    unit: str = "",
    words: Sequence[str] = (),
    otherwise: str = "",
    **bounds: Any,
) -> Any:
    """A field with its words for people.

    Args:
        default: None where it follows from the labels and from public sizes, or `otherwise` says what it means.
        flag: where it is not the field's name.
        words: what may be said; of a yes or no, the word for no and the one for yes.
        bounds: as `pydantic.Field` takes them.
    """
    more: dict[str, Any] = {"group": group, "flag": flag, "unit": unit, "words": [*words], "otherwise": otherwise}
    return Field(default, title=title, description=help, json_schema_extra=more, **bounds)


_task, _privacy, _of_stages, _tokens, _cap = (partial(setting, group=each) for each in Group)


class RunSpec(BaseModel):
    """The settings of a run."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

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
        "", "Own sentence", "Asks the model in place of the one made of these words; {label} stands in it."
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
        None, "Rows per token (M)", "Expected rows at each token, or the number of subsets.", ge=1, le=100_000
    )
    per_subset: int | None = _tokens(
        None,
        "Rows a subset (N)",
        "Subsets of N expected rows in place of single rows.",
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

    @classmethod
    def of(cls, **values: Any) -> Self:
        """A spec of some values; a UsageError names all that are unknown, of the wrong kind or out of range, or else
        all that do not go together."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise refusal(_in_words(error)) from None

    def with_(self, **values: Any) -> Self:
        """The same with other values, checked as `of` does."""
        return self.of(**{name: getattr(self, name) for name in self.model_fields_set} | values)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if found := [*self._of_sizes(), *self._of_mechanism(), *self._of_stages(), *self._of_words()]:
            raise ValueError("\n".join(found))
        return self

    def _of_sizes(self) -> Iterator[str]:
        if self.sizes is not None and self.count_epsilon is not None:
            yield "Label sizes are declared or measured, not both."
        if self.count_epsilon is not None and self.count_epsilon >= self.epsilon:
            yield "Counting may not cost all of epsilon: the demonstrations need the rest."
        if self.per_subset is not None and self.subsets is not None and self.per_subset * self.subsets > 100_000:
            yield "A sample of more than 100000 rows is not supported: lower M or N."

    def _of_mechanism(self) -> Iterator[str]:
        known = self.mechanism in mechanism_names() and self.transform in transform_names()
        if self.mechanism not in mechanism_names():
            yield f"There is no mechanism '{self.mechanism}': choose one of {', '.join(mechanism_names())}."
        if self.transform not in transform_names():
            yield f"There is no transform '{self.transform}': choose one of {', '.join(transform_names())}."
        if known and self.transform != "none" and not mechanism_class(self.mechanism).takes_transform:
            yield (
                f"'{self.mechanism}' works on logits: the transform '{self.transform}' needs a mechanism on "
                "probabilities, such as gaussian."
            )
        if known:
            yield from _refused(lambda: self.made_mechanism)
            yield from _refused(lambda: self.made_transform)

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
        yield from _refused(lambda: self.asked)
        yield from _refused(lambda: PromptTemplate("", self.text_field, self.label_field))

    @property
    def asked(self) -> Asked:
        return Asked(
            self.kind, self.writer, self.reader, self.relation, self.label_words, self.sentence, self.exemplars
        )

    def template(self, labels: tuple[str, ...]) -> PromptTemplate:
        usual = default_template(labels, self.text_field, self.label_field)
        instruction = usual.instruction if self.instruction is None else self.instruction
        return PromptTemplate(instruction, self.text_field, self.label_field)

    @property
    def made_mechanism(self) -> TokenMechanism:
        """The mechanism with its own parameters; a UsageError where one is out of range, or of another mechanism."""
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
        """Whether all that is asked for is text by a mechanism that reads no row."""
        writes = self.recipe in (None, Recipe.TOKENS) and set(self.shares or ()) <= {WRITE}
        return writes and not mechanism_class(self.mechanism).uses_private_rows

    @property
    def unit_rows(self) -> bool:
        """Whether each sampled unit is a row of its own."""
        return self.per_subset is None

    def sampling(self, share: float = 1.0) -> SamplingPlan:
        """Who joins a token, once M and T are known; `share` of the units may join at all."""
        assert self.subsets is not None
        assert self.tokens is not None
        assert self.written is not None
        return SamplingPlan(
            self.scheme, self.subsets, self.per_subset or 1, self.unit_rows, self.tokens, self.written, share
        )


class RunSettings(TypedDict, total=False):
    """The settings of a run as arguments of a Python function, for editors and type checkers.

    Names and types are those of `RunSpec`, which has defaults, bounds and words; a choice may be said as text.
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


PARAMETERS = "parameters"
"""The setting without a flag: each parameter of mechanism and transform has its own."""
_PLACEHOLDERS = {int: "N", float: "X", str: "TEXT"}
_LIMITS = (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than"))


class Setting:
    """A field of `RunSpec` as people say it.

    Attributes:
        flag: on the command line and in a file, without dashes.
        kinds: types of what may be said; None, which leaves it open, is not among them.
    """

    def __init__(self, name: str, field: FieldInfo) -> None:
        assert isinstance(field.json_schema_extra, dict)
        more: dict[str, Any] = dict(field.json_schema_extra)
        self.name, self.field = name, field
        self.group, self.unit = Group(more["group"]), str(more["unit"])
        self.flag = str(more["flag"] or name.replace("_", "-"))
        kind = field.annotation
        united = get_args(kind) if get_origin(kind) not in (None, dict, Literal) else (kind,)
        self.kinds = [each for each in united if each is not NoneType]
        self._words = list(more["words"]) or (["no", "yes"] if self.kinds == [bool] else [])
        self._otherwise = more["otherwise"]

    @property
    def choices(self) -> list[str] | None:
        """All that may be said; None where there is more."""
        [kind, *others] = self.kinds
        named = isinstance(kind, type) and issubclass(kind, StrEnum) and not others
        return self._words or ([str(each) for each in kind] if named else None)

    @property
    def placeholder(self) -> str | None:
        """For a value in a usage line; None where the choices stand there."""
        if self.choices:
            return None
        said = []
        for kind in self.kinds:
            inner = get_args(kind)
            if get_origin(kind) is dict:
                value = _PLACEHOLDERS[inner[1]]
                said.append(f"A={value},B={value}")
            else:
                said += inner or [_PLACEHOLDERS[kind]]
        return "|".join(said)

    def help(self, usual: Any = None) -> str:
        """Title, help, bounds and default: `usual`, where it is not the field's own."""
        limits = " and ".join(
            f"{words} {getattr(each, limit):g}"
            for limit, words in _LIMITS
            for each in self.field.metadata
            if hasattr(each, limit)
        )
        unit = f" {self.unit}" if self.unit and limits else ""
        default = self.written(self.field.default)
        if default is None:
            default = self._otherwise or "follows from the labels and from public sizes"
        stated = f"default: {usual or default}" if usual or default not in ("", {}) else ""
        note = "; ".join(each for each in (f"{limits}{unit}", stated) if each)
        title = str(self.field.title)
        return f"{title}{'' if title.endswith('?') else ':'} {self.field.description}{f' ({note})' if note else ''}"

    def written(self, value: Any) -> Any:
        if isinstance(value, bool):
            return self._words[value]
        return str(value) if isinstance(value, StrEnum) else value

    def read(self, said: str) -> Any:
        """What was said, for `RunSpec.of`, which reads numbers; a UsageError where pairs are none or repeated."""
        if bool in self.kinds:
            return bool(self._words.index(said))
        literals = [each for kind in self.kinds if get_origin(kind) is Literal for each in get_args(kind)]
        if said in literals or not any(get_origin(kind) is dict for kind in self.kinds):
            return said
        try:
            pairs = [(name.strip(), value.strip()) for name, value in read_pairs(said)]
        except UsageError as error:
            raise UsageError(f"--{self.flag} takes {self.placeholder}.") from error
        if twice := [name for name, _ in pairs if [each for each, _ in pairs].count(name) > 1]:
            raise UsageError(f"--{self.flag} names '{twice[0]}' twice.")
        return dict(pairs)


SETTINGS = {name: Setting(name, field) for name, field in RunSpec.model_fields.items()}
FLAGGED = [each for each in SETTINGS.values() if each.name != PARAMETERS]
"""Settings that have a flag of their own, in their order."""
_ELSEWHERE = {"delta", "sizes", "count_epsilon", "score", PARAMETERS}
"""Settings that a certificate states beside its parameters, or in another form."""


def stated(writes: bool, by_user: bool) -> list[str]:
    """The settings that a certificate states among its parameters, as they are; the task stands in the set itself.

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


def _refused(made: Callable[[], object]) -> Iterator[str]:
    """Why something cannot be made, in its own words."""
    try:
        made()
    except UsageError as error:
        yield str(error)


def _in_words(error: ValidationError) -> list[str]:
    """What is wrong, a line for each setting, which it names."""
    errors = error.errors()
    lines: list[str] = []
    for place in dict.fromkeys(each["loc"][:1] for each in errors):
        # Of a setting that may be one of two kinds each kind has an error: the longest place is of the kind that was
        # meant.
        found = max((each for each in errors if each["loc"][:1] == place), key=lambda each: len(each["loc"]))
        message = str(found["msg"]).removeprefix("Value error, ")
        setting = SETTINGS.get(str(place[0])) if place else None
        if found["type"] == "extra_forbidden":
            lines.append(f"A run has no setting '{found['loc'][0]}'.")
        elif setting is None or found["type"] == "value_error":
            lines += message.splitlines()
        else:
            lines.append(f"{setting.field.title} ({setting.flag}): {message[:1].lower()}{message[1:]}.")
    return lines


MOST_WRITTEN_LABELS = 12
"""Labels up to which a run writes token by token: each label takes its own sample, and its own time."""
MOST_CORRECTED_LABELS = 24
"""Labels up to which a correction is measured. Every label's sum gets the same noise, so that more labels need more
rows, and a row takes longer to read with every label."""
MOST_PROMPTED = 16
"""The most demonstrations of each label that are read in one prompt: no row scores larger sets."""

_AT_MOST = {VOTE: 0.5, SCORE: 0.15}
"""Shares that these stages have at most, where they want more units than a small file has."""
_VOTERS_A_LABEL, _CALIBRATORS_A_LABEL = 40, 24
"""Units for each of many labels: only a label's own rows vote on its drafts, and noise is added to each label's sum."""

FEWEST_SUBSETS, SUBSETS, SUBSETS_OF_MANY = 4, 100, 56
"""M; that of many from `fewest_for_roles` units on, since the first token waits until all these rows are read. With
2,000 rows, four labels and epsilon 1 they give a signal-to-noise of 10. More rows give more: each joins less often."""
TOKENS = 24
MIN_TOKENS = 8
"""Tokens before a demonstration may end: small models like to write a title."""
INDEX_NUCLEUS = 0.9
"""Where only a token's index is released its noise cannot be read: what no text goes on with is no candidate."""

FEWEST_DRAFTS, MOST_DRAFTS = 8, 24
DRAFTS_A_WINNER = 2
"""Drafts for each demonstration that is asked for, at least: with fewer, the vote would leave nothing out."""
CLEARANCE, EXCESS = 4.0, 2.0
"""A winner should exceed the average draft by so many deviations of the noise, if it has so many times its votes."""


FEWEST_FOR_WORDS, ENOUGH_FOR_WORDS = 100, 900
"""Units of a label, times epsilon: with fewer than the first number hardly a word clears the noise, whatever
their share; more than the second in the stage say little more (research/docs/words.md)."""


def fewest_for_roles(labels: int) -> int:
    """The number of units from which on roles are proposed: with fewer, some role says little through its noise."""
    return min(2000, max(1200, 160 * labels))


def completed(spec: RunSpec, sizes: Mapping[str, int]) -> RunSpec:
    """The spec with nothing left open, for so many units of each label; a UsageError where a size is not positive, or
    what is asked does not go together."""
    if not sizes or min(sizes.values()) < 1:
        empty = min(sizes, key=lambda label: sizes[label]) if sizes else ""
        raise UsageError(f"The label '{empty}' has a declared size of 0: leave it out, or declare its size.")
    recipe = spec.recipe or _recipe(spec, len(sizes))
    stages = _stages(spec, recipe, sizes)
    weighing = spec.weighing or (Weighing.ROWS if len(sizes) > MOST_CORRECTED_LABELS else usual_weighing(sizes))
    shares, split = _shares(spec, stages, sizes, weighing)
    written = spec.written or (1 if recipe is Recipe.BOTH else spec.shots)
    tokens = spec.tokens or TOKENS
    most = SUBSETS_OF_MANY if sum(sizes.values()) >= fewest_for_roles(len(sizes)) else SUBSETS
    mechanism = mechanism_class(spec.mechanism)
    released_whole = mechanism.uses_private_rows and mechanism().sensitivity(True).norm is not Norm.RANGE
    found = {
        "recipe": recipe,
        "split": split,
        "shares": shares,
        "written": written,
        "tokens": tokens,
        "min_tokens": min(tokens, MIN_TOKENS) if spec.min_tokens is None else min(tokens, spec.min_tokens),
        # M is at most the units of the smallest label: with more, all of them would join each time.
        "subsets": spec.subsets or max(FEWEST_SUBSETS, min([most, *sizes.values()])),
        "drafts": spec.drafts or _drafts(spec, shares.get(VOTE, 0.0), split, sizes),
        "weighing": weighing,
        "candidate_top_p": spec.candidate_top_p or (1.0 if released_whole else INDEX_NUCLEUS),
    }
    if recipe is Recipe.BOTH and (not mechanism.uses_private_rows or mechanism.not_private):
        raise UsageError(f"A recipe does not write with '{spec.mechanism}': choose a private mechanism.")
    return spec.with_(**found)


def _recipe(spec: RunSpec, labels: int) -> Recipe:
    """Both, where a recipe can write with the mechanism; many labels and many demonstrations are voted for."""
    mechanism = mechanism_class(spec.mechanism)
    if labels < 2 or not mechanism.uses_private_rows or mechanism.not_private:
        return Recipe.TOKENS
    asked = {"mechanism", "transform", "parameters", "scheme", "subsets", "per_subset", "tokens", "written"}
    asks = bool(asked & spec.model_fields_set) or WRITE in (spec.shares or {})
    return Recipe.BOTH if asks or labels <= MOST_WRITTEN_LABELS else Recipe.VOTE


def _stages(spec: RunSpec, recipe: Recipe, sizes: Mapping[str, int]) -> list[str]:
    known, labels = stages_by_place(), len(sizes)
    if recipe is Recipe.TOKENS and spec.shares is None:
        return [WRITE]
    if spec.shares is not None:
        return [name for name in known if name in spec.shares]
    sources = SOURCES[recipe]
    # Beside the words of a label its openings change little: they are for whoever asks (research/docs/words.md).
    left_out = {WRITE, VOTE, OPENINGS} - sources
    if labels < 2 or min(sizes.values()) * spec.epsilon < FEWEST_FOR_WORDS:
        left_out.add(WORDS)
    if not spec.score:
        left_out.add(SCORE)
    if spec.shots > MOST_PROMPTED or labels < 2:
        left_out |= {CALIBRATE, SCORE}
    if labels > MOST_CORRECTED_LABELS:
        left_out.add(CALIBRATE)
    return [name for name in known if name not in left_out]


def _shares(
    spec: RunSpec, stages: list[str], sizes: Mapping[str, int], weighing: Weighing
) -> tuple[dict[str, float], Split]:
    if spec.shares is not None:
        return {name: spec.shares[name] for name in stages}, spec.split or Split.ROLES
    if len(stages) == 1:
        return {stages[0]: 1.0}, spec.split or Split.EPSILON
    units = sum(sizes.values())
    split = spec.split or (Split.ROLES if units >= fewest_for_roles(len(sizes)) else Split.EPSILON)
    known = stages_by_place()
    if split is Split.EPSILON:
        whole = sum(known[name].parts for name in stages)
        return {name: known[name].parts / whole for name in stages}, split
    return _roles(stages, units, len(sizes), spec.epsilon, weighing), split


def _roles(stages: list[str], units: int, labels: int, epsilon: float, weighing: Weighing) -> dict[str, float]:
    """Shares that give each stage the units it wants; below `fewest_for_roles`, the shares for that many.

    What stages want is what two cores read in a good minute. All other units say what their labels are about, as many
    as say something new, or write: a sample out of more units costs the same time and needs less noise.
    """
    known = stages_by_place()
    wanted = {name: known[name].wanted for name in stages if known[name].wanted is not None}
    if VOTE in wanted:
        wanted[VOTE] = max(wanted[VOTE], _VOTERS_A_LABEL * labels)
    if CALIBRATE in wanted:
        wanted[CALIBRATE] = max(wanted[CALIBRATE], _CALIBRATORS_A_LABEL * labels)
    if SCORE in wanted and weighing is Weighing.LABELS:
        wanted[SCORE] *= 2  # the few scorers of a small label count as much as the many of a large one
    among = max(units, fewest_for_roles(labels))
    shares = {name: count / among for name, count in wanted.items()}
    shares |= {name: min(shares[name], most) for name, most in _AT_MOST.items() if name in shares}
    if WORDS in stages:
        parts = {name: known[name].parts for name in stages if known[name].wanted is None}
        fair = (1 - sum(shares.values())) * parts[WORDS] / sum(parts.values())
        shares[WORDS] = min(fair, ENOUGH_FOR_WORDS * labels / epsilon / among)
    rest = WRITE if WRITE in stages else VOTE
    shares[rest] = shares.get(rest, 0.0) + 1 - sum(shares.values())
    return {name: _two_digits(shares[name]) for name in stages}


def _two_digits(share: float) -> float:
    """A share cut to two digits: short in certificates, and never more than 1 in sum."""
    unit = 10.0 ** (math.floor(math.log10(share)) - 1)
    # The quotient of two decimals may fall a hair short of the whole number that it is.
    return float(f"{math.floor(share / unit + 1e-6) * unit:.2g}")


def _drafts(spec: RunSpec, share: float, split: Split, sizes: Mapping[str, int]) -> int:
    """J: as many as the smallest label's voters can judge, and twice what the set needs.

    A draft of the field has v / J votes, a winner `EXCESS` times as many more, and that excess should be `CLEARANCE`
    deviations of the noise: J = EXCESS v / (CLEARANCE * 1.41 / epsilon).
    """
    smallest = min(sizes.values())
    voters, spent = (share * smallest, spec.epsilon) if split is Split.ROLES else (smallest, share * spec.epsilon)
    judged = EXCESS * voters * spent / (CLEARANCE * math.sqrt(2))
    usual = int(min(MOST_DRAFTS, max(FEWEST_DRAFTS, judged)))
    return max(usual, DRAFTS_A_WINNER * spec.shots)
