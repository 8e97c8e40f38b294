"""The demo set: synthetic demonstrations with their privacy certificate, format `dpicl-demos/2`."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import jsonschema

from mechanisms import __version__, confidence
from mechanisms.accounting import Claim
from mechanisms.asking import Wording
from mechanisms.demos.directions import Directions
from mechanisms.errors import UsageError
from mechanisms.files import bundled
from mechanisms.noise import Floats
from mechanisms.privacy_events import Composed, PrivacyEvent, event_from_json, from_json
from mechanisms.public_inputs import WHETHER_SHOWN
from mechanisms.records import RECORD, Demonstration, PromptTemplate, saying_words
from mechanisms.rounding import percent_down
from mechanisms.sampling import ADJACENCY
from mechanisms.tallies import Estimate, ScoreTally, Weighing, masses

FORMAT = "dpicl-demos/2"
_LARGEST_NUMBER = 2**53
"""JSON readers disagree on whole numbers beyond it (RFC 8259)."""

Json = dict[str, Any]

ZERO_SHOT, PUBLIC_ONLY, DEMONSTRATIONS = "zero-shot", "public-only", "demonstrations"
DIRECTIONS, PROTOTYPES = "directions", "prototypes"
"""The arms of a score; a file's score has no other arms."""

_HELD_OUT = "private"


def demonstrations_of(document: Json) -> tuple[Demonstration, ...]:
    return tuple(Demonstration(each["text"], each["label"]) for each in document["demonstrations"])


def task_of(template: PromptTemplate) -> Json:
    return {"instruction": template.instruction, "template": {"text": template.text, "label": template.label}}


def template_of(task: Json) -> PromptTemplate:
    return PromptTemplate(task["instruction"], task["template"]["text"], task["template"]["label"])


@dataclass(frozen=True)
class StageRecord:
    """A stage of a run: its name, the share of units that it read (`role`), and its event for one unit."""

    name: str
    role: float
    event: PrivacyEvent

    def to_json(self) -> Json:
        """One of the format's `stages`."""
        return {"name": self.name, "role": self.role, "event": self.event.to_json()}

    @classmethod
    def from_json(cls, document: Json) -> StageRecord:
        """Read what fits the format's schema.

        Raises:
            UsageError: the event has a number out of range.
        """
        return cls(document["name"], document["role"], event_from_json(document["event"]))


TOO_FEW = "too few rows"
"""Stated instead of an accuracy with too wide an interval."""


@dataclass(frozen=True)
class ArmScore:
    """Private accuracy of an arm in [0, 1], with an interval that covers sampling and noise."""

    accuracy: float
    interval: tuple[float, float]

    @property
    def wide(self) -> bool:
        """Whether the interval is too wide to be useful."""
        return Estimate(self.accuracy, *self.interval).wide

    @property
    def stated(self) -> str:
        """The accuracy in words, for all pages, files and commands; `TOO_FEW` if its interval is too wide."""
        return TOO_FEW if self.wide else percent_down(self.accuracy, 1)


@dataclass(frozen=True)
class Score:
    """Private accuracies on rows of the data set.

    Attributes:
        arms: by name.
        held_out: whether the rows took no part in any choice.
        level: the level of the intervals.
        gains: accuracy of the exported arm minus that of each other arm on the same rows, in [-1, 1].
        weighing: whether rows or labels have equal weight; by labels, accuracies are balanced.
    """

    arms: Mapping[str, ArmScore]
    held_out: bool
    level: float = confidence.LEVEL
    gains: Mapping[str, ArmScore] = field(default_factory=dict)
    weighing: Weighing = Weighing.ROWS

    @classmethod
    def of_table(
        cls, tally: ScoreTally, cells: Floats, names: Sequence[str], without: bool, held_out: bool, weighing: Weighing
    ) -> Score:
        """Compute the score from a released table.

        Args:
            tally: the tally that released it.
            cells: the table, shape (2^arms,).
            names: the names of the arms, in the table's order.
            without: whether the exported arm has no demonstrations.
        """
        found = {name: _in_file(tally.accuracy(cells, i)) for i, name in enumerate(names)}
        score = cls(found, held_out, confidence.LEVEL, weighing=weighing)
        own = names.index(score.exported(without))
        gains = {name: _in_file(tally.difference(cells, own, i)) for i, name in enumerate(names) if i != own}
        return replace(score, gains=gains)

    @property
    def percent(self) -> str:
        """The level of the intervals in words."""
        return confidence.percent(self.level)

    def exported(self, without: bool) -> str:
        """The name of the exported arm; `without` demonstrations it is one of the baselines."""
        if DEMONSTRATIONS in self.arms:
            return DEMONSTRATIONS
        return ZERO_SHOT if without else PUBLIC_ONLY

    def to_json(self) -> Json:
        """The format's `score`."""
        arms = {name: {"accuracy": each.accuracy, "interval": list(each.interval)} for name, each in self.arms.items()}
        gains = {name: {"value": each.accuracy, "interval": list(each.interval)} for name, each in self.gains.items()}
        return {
            "arms": arms,
            "rows": _HELD_OUT if self.held_out else "private, and they may have taken part in what was chosen",
            "level": self.level,
            **({"gains": gains} if gains else {}),
            **({} if self.weighing is Weighing.ROWS else {"weighing": self.weighing.value}),
        }

    @classmethod
    def from_json(cls, document: Json) -> Score:
        """Read what fits the format's schema."""
        arms = {name: ArmScore(each["accuracy"], tuple(each["interval"])) for name, each in document["arms"].items()}
        read = document.get("gains", {}).items()
        gains = {name: ArmScore(each["value"], tuple(each["interval"])) for name, each in read}
        weighing = Weighing(document.get("weighing", Weighing.ROWS))
        return cls(arms, document["rows"] == _HELD_OUT, document["level"], gains, weighing)


def _in_file(estimate: Estimate) -> ArmScore:
    return ArmScore(estimate.value, (estimate.low, estimate.high))


@dataclass(frozen=True)
class PublicSet:
    """The public-only set for comparison, with the template and the correction used in the comparison.

    Attributes:
        demonstrations: drafts chosen without a vote.
        template: the template of their prompt.
        prior: the measured correction of the label log-probabilities under them; None for models other than the writer.
    """

    demonstrations: tuple[Demonstration, ...]
    template: PromptTemplate
    prior: Mapping[str, float] | None

    def to_json(self) -> Json:
        """The format's `baselines/public_only`."""
        return {
            "demonstrations": [asdict(each) for each in self.demonstrations],
            "task": task_of(self.template),
            **({} if self.prior is None else {"prior": dict(self.prior)}),
        }

    @classmethod
    def from_json(cls, document: Json) -> PublicSet:
        """Read what fits the format's schema."""
        return cls(demonstrations_of(document), template_of(document["task"]), document.get("prior"))


@dataclass(frozen=True)
class Baselines:
    """The baselines of a set, with corrections measured on the same rows.

    Attributes:
        zero_shot: the correction of the label log-probabilities without demonstrations.
        public_only: the public set; None if the file has none.
    """

    zero_shot: Mapping[str, float] | None
    public_only: PublicSet | None

    def to_json(self) -> Json:
        """The format's `baselines`."""
        return {
            **({} if self.zero_shot is None else {"zero_shot_prior": dict(self.zero_shot)}),
            **({} if self.public_only is None else {"public_only": self.public_only.to_json()}),
        }

    @classmethod
    def from_json(cls, document: Json) -> Baselines:
        """Read what fits the format's schema."""
        public = document.get("public_only")
        return cls(document.get("zero_shot_prior"), None if public is None else PublicSet.from_json(public))


@dataclass(frozen=True)
class Refusal:
    """A refused text written by rows, and the reason, by rules on public values alone."""

    label: str
    reason: str


def finite(epsilon: float) -> float | None:
    """Epsilon for JSON: null for infinity, which is no guarantee."""
    return epsilon if math.isfinite(epsilon) else None


@dataclass(frozen=True)
class Certificate:
    """A demo set's privacy claim, and all public facts that it depends on.

    For a run with several stages, `mechanism` is "recipe" and its kind ("recipe vote"), `transform` is "none", `scheme`
    is what stages share ("roles" or "epsilon"), and the parameter `written` holds the token mechanism.

    Attributes:
        disclosures: the reasons why noiseless values of the data count as known, on which later choices may depend.
    """

    private: bool
    reason: str | None
    claim: Claim
    unit: str
    mechanism: str
    transform: str
    scheme: str
    parameters: dict[str, Any]
    event: Composed
    public_inputs: tuple[str, ...]
    disclosures: tuple[str, ...] = ()
    spent_before: tuple[float, float] = (0.0, 0.0)

    @property
    def why_not_private(self) -> str | None:
        """The reason why neither the set nor any result computed from it is private; None if they are private."""
        return None if self.private else self.reason or "its certificate says so"

    @property
    def marks(self) -> dict[str, Any]:
        """Whether values became known without noise, and the reasons, as plain JSON."""
        shown = {"shown": list(self.disclosures)} if self.disclosures else {}
        return {"curator_diagnostics_shown": bool(self.disclosures), **shown}

    @property
    def by_user(self) -> bool:
        """Whether the unit is all records of a user ("user:COLUMN")."""
        return self.unit != RECORD

    def to_json(self) -> Json:
        """The `privacy` object of the format."""
        return {
            "private": self.private,
            **({"reason": self.reason} if self.reason else {}),
            "epsilon": finite(self.claim.epsilon),
            "delta": self.claim.delta,
            "unit": self.unit,
            "adjacency": ADJACENCY,
            "mechanism": self.mechanism,
            "transform": self.transform,
            "scheme": self.scheme,
            "parameters": self.parameters,
            "event": self.event.to_json(),
            "accountants": {
                "claimed": {"name": self.claim.accountant, "epsilon": finite(self.claim.epsilon)},
                "check": {"name": self.claim.check_accountant, "epsilon": finite(self.claim.check)},
            },
            "public_inputs": list(self.public_inputs),
            **self.marks,
            "spent_before": {"epsilon": self.spent_before[0], "delta": self.spent_before[1]},
        }


@dataclass(frozen=True)
class DemoSet:
    """Demonstrations with their task and certificate; no private text, length, index or seed.

    Attributes:
        demonstrations: empty before the first is written.
        wording: the words that ask for texts; "asked" in a file.
        stages: the stages of a run with several, in order.
        prior: the set's correction, added to each label's log-probability before normalisation.
        score: the private accuracies.
        baselines: the baselines of the set.
        refused: garbled texts written by rows.
        words: the released words of each label, best first; empty if no word exceeded its noise.
        directions: the direction of each label among embedded texts.
        arithmetic: the model's device, number format and threads; empty if the file does not state them.
    """

    demonstrations: tuple[Demonstration, ...]
    labels: tuple[str, ...]
    template: PromptTemplate
    certificate: Certificate
    model_id: str
    model_sha256: str
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    stages: tuple[StageRecord, ...] = ()
    prior: Mapping[str, float] | None = None
    score: Score | None = None
    baselines: Baselines | None = None
    refused: tuple[Refusal, ...] = ()
    wording: Wording = field(default_factory=Wording)
    arithmetic: str = ""
    words: Mapping[str, tuple[str, ...]] | None = None
    directions: Directions | None = None

    @property
    def directions_read_better(self) -> bool:
        """Whether the set's private score shows that its directions are more accurate than its model with the set."""
        gain = self.score.gains.get(DIRECTIONS) if self.score else None
        return self.directions is not None and gain is not None and gain.interval[1] < 0

    @property
    def prompt(self) -> PromptTemplate:
        """The template of the set's classification prompt, with the words of each label."""
        return saying_words(self.template, self.words or {})

    @property
    def public_sizes(self) -> dict[str, int] | None:
        """The label sizes in the certificate; None if it has none."""
        sizes = self.certificate.parameters.get("sizes")
        if not isinstance(sizes, dict) or not all(isinstance(sizes.get(each), int) for each in self.labels):
            return None
        return {each: sizes[each] for each in self.labels}

    @property
    def majority(self) -> tuple[str, float] | None:
        """The largest label by the certificate's public sizes, and the accuracy of always answering it.

        It has the weighing of the score; None if the certificate states no sizes.
        """
        if (sizes := self.public_sizes) is None:
            return None
        weighing = self.score.weighing if self.score else Weighing.ROWS
        counted = masses(sizes, weighing)
        label, total = max(self.labels, key=lambda each: counted[each]), sum(counted.values())
        return (label, counted[label] / total) if total > 0 else None

    def with_disclosures(self, disclosures: tuple[str, ...]) -> DemoSet:
        """The set with marks for disclosures since it was written, because the choice of the exported set may depend on
        them.

        A set written without rows is unchanged: it cannot have marks that depend on rows.
        """
        if WHETHER_SHOWN not in self.certificate.public_inputs:
            return self
        found = tuple(sorted({*self.certificate.disclosures, *disclosures}))
        return replace(self, certificate=replace(self.certificate, disclosures=found))

    def to_json(self) -> Json:
        """The whole document, without a signature."""
        return {
            "format": FORMAT,
            "demonstrations": [asdict(each) for each in self.demonstrations],
            "task": {
                "labels": list(self.labels),
                **task_of(self.template),
                "asked": self.wording.to_json(),
            },
            "privacy": self.certificate.to_json(),
            **({"stages": [each.to_json() for each in self.stages]} if self.stages else {}),
            **({"prior": dict(self.prior)} if self.prior is not None else {}),
            **({"score": self.score.to_json()} if self.score else {}),
            **({"baselines": self.baselines.to_json()} if self.baselines else {}),
            **(
                {"words": {label: list(words) for label, words in self.words.items()}} if self.words is not None else {}
            ),
            **({"directions": self.directions.to_json()} if self.directions else {}),
            **({"refused": [asdict(each) for each in self.refused]} if self.refused else {}),
            "model": {
                "id": self.model_id,
                "sha256": self.model_sha256,
                **({"arithmetic": self.arithmetic} if self.arithmetic else {}),
            },
            "software": {"name": "dpicl-studio", "version": __version__},
            "created": self.created,
        }

    def dumps(self) -> str:
        """The document as text, without a signature."""
        return to_text(self.to_json())


def to_text(document: Json | list[Any]) -> str:
    """A document as a file's text."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


@functools.cache
def schema() -> Json:
    """The JSON Schema of the format."""
    read: Json = json.loads(bundled("dpicl-demos-2.schema.json").read_text(encoding="utf-8"))
    return read


def _whole_number(digits: str) -> int:
    number = int(digits)
    if abs(number) > _LARGEST_NUMBER:
        raise ValueError("a number that no field can hold")
    return number


def _without_repetitions(pairs: list[tuple[str, Any]]) -> Json:
    # If a field is repeated, a person may read the first value and a program the last.
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a field is repeated")
    return read


def read_json(text: str) -> Any:
    """Parse JSON that has the same meaning for every reader.

    Raises:
        UsageError: the text is not JSON, is nested too deeply, or has repeated fields, too large numbers or lone
    surrogates.
    """
    try:
        document = json.loads(text, parse_int=_whole_number, object_pairs_hook=_without_repetitions)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise UsageError("This is not a demo set: the file is not JSON, or repeats a field, or is too deep.") from error
    return document


def _checked(text: str) -> Json:
    """The parsed document, which is valid against the schema."""
    document: Json = read_json(text)  # an object, once the schema has been checked
    try:
        check_against(schema(), document, f"This is not a {FORMAT} demo set")
    except UsageError as error:
        raise UsageError(f"{error} A set of an older version is not read: make it anew.") from error
    return document


def check_against(schema: Json, document: Json, refusal: str) -> None:
    """Refuse a document that is not valid against a schema; the error begins with `refusal`."""
    try:
        problem = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(document))
    except RecursionError as error:
        raise UsageError(f"{refusal}: the file is nested too deeply.") from error
    if problem is not None:
        where = "/".join(str(part) for part in problem.absolute_path) or "the top level"
        raise UsageError(f"{refusal}: {problem.validator} fails at {where}.")


def _certificate(privacy: Json) -> Certificate:
    accountants = privacy["accountants"]
    if accountants["claimed"]["epsilon"] != privacy["epsilon"]:
        raise UsageError("This is not a demo set: privacy/accountants/claimed/epsilon is not privacy/epsilon.")
    disclosures = privacy.get("shown", [])
    if bool(disclosures) != privacy["curator_diagnostics_shown"]:
        raise UsageError("This is not a demo set: privacy/curator_diagnostics_shown does not fit privacy/shown.")
    return Certificate(
        private=privacy["private"],
        reason=privacy.get("reason"),
        claim=Claim(
            math.inf if privacy["epsilon"] is None else privacy["epsilon"],
            privacy["delta"],
            accountants["claimed"]["name"],
            math.inf if accountants["check"]["epsilon"] is None else accountants["check"]["epsilon"],
            accountants["check"]["name"],
        ),
        unit=privacy["unit"],
        mechanism=privacy["mechanism"],
        transform=privacy["transform"],
        scheme=privacy["scheme"],
        parameters=privacy["parameters"],
        event=from_json(privacy["event"]),
        public_inputs=tuple(privacy["public_inputs"]),
        disclosures=tuple(disclosures),
        spent_before=(privacy["spent_before"]["epsilon"], privacy["spent_before"]["delta"]),
    )


def loads(text: str) -> DemoSet:
    """Read a demo set.

    Raises:
        UsageError: the text is not JSON, not valid (the message names the first error), or of an older version.
    """
    document = _checked(text)
    task = document["task"]
    return DemoSet(
        demonstrations=demonstrations_of(document),
        labels=tuple(task["labels"]),
        template=template_of(task),
        wording=Wording(**task["asked"]),
        certificate=_certificate(document["privacy"]),
        model_id=document["model"]["id"],
        model_sha256=document["model"]["sha256"],
        arithmetic=document["model"].get("arithmetic", ""),
        created=document["created"],
        stages=tuple(StageRecord.from_json(each) for each in document.get("stages", ())),
        prior=document.get("prior"),
        score=Score.from_json(document["score"]) if "score" in document else None,
        baselines=Baselines.from_json(document["baselines"]) if "baselines" in document else None,
        refused=tuple(Refusal(each["label"], each["reason"]) for each in document.get("refused", ())),
        words={label: tuple(words) for label, words in document["words"].items()} if "words" in document else None,
        directions=Directions.from_json(document["directions"], task["labels"]) if "directions" in document else None,
    )
