"""The demo set: synthetic demonstrations with their privacy certificate, format `dpicl-demos/2`."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import jsonschema

from mechanisms import __version__
from mechanisms.accounting import Claim
from mechanisms.asking import Asked
from mechanisms.data.sizes import CLEAN_VALUES, WHETHER_SHOWN
from mechanisms.demos.findings import Baselines, Refusal, Score, StageRecord, demonstrations_of, task_of, template_of
from mechanisms.errors import UsageError
from mechanisms.files import bundled
from mechanisms.privacy_events import Composed, from_json
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.tallies import Weighing, masses

FORMAT = "dpicl-demos/2"
MEASURED_SIZES = "label sizes measured with noise"
_FIRST_FORMAT = "dpicl-demos/1"
LAST_READER = "0.2.0"
"""The last version of the program that reads sets of the kinds that are no more."""
_LARGEST_NUMBER = 2**53
"""JSON readers disagree on whole numbers beyond it (RFC 8259)."""

Json = dict[str, Any]


def finite(epsilon: float) -> float | None:
    """Epsilon for JSON: null for infinity, the value where nothing is promised."""
    return epsilon if math.isfinite(epsilon) else None


@dataclass(frozen=True)
class Certificate:
    """A demo set's privacy claim, and all public facts that it depends on.

    For a run with several stages, `mechanism` is "recipe" and its kind ("recipe vote"), `transform` is "none", `scheme`
    is what stages share ("roles" or "epsilon"), and the parameter `written` holds the token mechanism.

    Attributes:
        disclosures: why values of the data without noise count as known, so that later choices may depend on them.
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
        """Why neither the set nor any result computed from it is private; None if they are."""
        return None if self.private else self.reason or "its certificate says so"

    @property
    def by_user(self) -> bool:
        """Whether the unit is all records of a user ("user:COLUMN")."""
        return self.unit != "record"

    def to_json(self) -> Json:
        """The `privacy` object of the format."""
        return {
            "private": self.private,
            **({"reason": self.reason} if self.reason else {}),
            "epsilon": finite(self.claim.epsilon),
            "delta": self.claim.delta,
            "unit": self.unit,
            "adjacency": "add-or-remove",
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
            "curator_diagnostics_shown": bool(self.disclosures),
            **({"shown": list(self.disclosures)} if self.disclosures else {}),
            "spent_before": {"epsilon": self.spent_before[0], "delta": self.spent_before[1]},
        }


@dataclass(frozen=True)
class DemoSet:
    """Demonstrations with their task and certificate; no private text, length, index or seed.

    Attributes:
        demonstrations: empty only in files of before, whose run had found that the model does best without any.
        asked: how the model was asked to write; None in files of before.
        stages: of a run with several stages, in order.
        prior: the set's correction, added to each label's log-probability before normalisation.
        score: private accuracy.
        baselines: what the set is compared with.
        refused: texts that rows wrote, and that were none.
        choice: in files of before, how the set was chosen; kept as it stands.
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
    asked: Asked | None = None
    choice: Json | None = None

    @property
    def public_sizes(self) -> dict[str, int] | None:
        """The label sizes in the certificate; None if it has none."""
        sizes = self.certificate.parameters.get("sizes")
        if not isinstance(sizes, dict) or not all(isinstance(sizes.get(each), int) for each in self.labels):
            return None
        return {each: sizes[each] for each in self.labels}

    @property
    def majority(self) -> tuple[str, float] | None:
        """The largest label by the certificate's public sizes, and the accuracy of always naming it.

        Weighed as the score is; None if the certificate states no sizes.
        """
        if (sizes := self.public_sizes) is None:
            return None
        weighing = self.score.weighing if self.score else Weighing.ROWS
        counted = masses(sizes, weighing)
        label, total = max(self.labels, key=lambda each: counted[each]), sum(counted.values())
        return (label, counted[label] / total) if total > 0 else None

    def with_spent_before(self, epsilon: float, delta: float) -> DemoSet:
        """The same set, with what its data set had spent before its run."""
        return replace(self, certificate=replace(self.certificate, spent_before=(epsilon, delta)))

    def with_disclosures(self, disclosures: tuple[str, ...]) -> DemoSet:
        """The set with further marks, of disclosures since it was written: which set is exported may depend on them.

        A set written without rows stays as it is: it cannot carry marks that depend on rows.
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
                **({"asked": self.asked.to_json()} if self.asked else {}),
            },
            "privacy": self.certificate.to_json(),
            **({"stages": [each.to_json() for each in self.stages]} if self.stages else {}),
            **({"prior": dict(self.prior)} if self.prior is not None else {}),
            **({"score": self.score.to_json()} if self.score else {}),
            **({"choice": self.choice} if self.choice else {}),
            **({"baselines": self.baselines.to_json()} if self.baselines and not self.choice else {}),
            **({"refused": [asdict(each) for each in self.refused]} if self.refused else {}),
            "model": {"id": self.model_id, "sha256": self.model_sha256},
            "software": {"name": "dpicl-studio", "version": __version__},
            "created": self.created,
        }

    def dumps(self) -> str:
        """The document as text, without a signature."""
        return to_text(self.to_json())


def to_text(document: Json) -> str:
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
    # Of two fields with one name, a person may read the first and a program the last.
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a field stands twice")
    return read


def read_json(text: str) -> Any:
    """Parse JSON that has the same meaning to every reader.

    Raises:
        UsageError: not JSON, nested too deeply, or with repeated fields, too large numbers or lone surrogates.
    """
    try:
        document = json.loads(text, parse_int=_whole_number, object_pairs_hook=_without_repetitions)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise UsageError("This is not a demo set: the file is not JSON, or repeats a field, or is too deep.") from error
    return document


def _checked(text: str) -> Json:
    """The parsed document, once it is valid against the schema."""
    document: Json = read_json(text)  # an object, once the schema has been checked
    if isinstance(document, dict) and document.get("format") == _FIRST_FORMAT:
        raise UsageError(
            f"This is a {_FIRST_FORMAT} demo set: version 0.1.0 of DP-ICL Studio reads it, this one does not."
        )
    try:
        validator = jsonschema.Draft202012Validator(schema())
        problem = jsonschema.exceptions.best_match(validator.iter_errors(document))
    except RecursionError as error:
        raise UsageError("This is not a demo set: the file is nested too deeply.") from error
    if problem is not None:
        where = "/".join(str(part) for part in problem.absolute_path) or "the top level"
        raise UsageError(f"This is not a {FORMAT} demo set: {problem.validator} fails at {where}.")
    return document


def _certificate(privacy: Json) -> Certificate:
    accountants = privacy["accountants"]
    if accountants["claimed"]["epsilon"] != privacy["epsilon"]:
        raise UsageError("This is not a demo set: privacy/accountants/claimed/epsilon is not privacy/epsilon.")
    disclosures = privacy.get("shown", [CLEAN_VALUES] if privacy["curator_diagnostics_shown"] else [])
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
        UsageError: not JSON, not valid (the message names the first error), or in a format that is no longer read.
    """
    document = _checked(text)
    task = document["task"]
    for what, dropped in (
        ("records of a schema", "schema" in task),
        ("texts with answers", "output" in task["template"]),
    ):
        if dropped:
            raise UsageError(
                f"This is a demo set of {what}: version {LAST_READER} of DP-ICL Studio reads it, not this one."
            )
    choice = document.get("choice")
    baselines = document.get("baselines", choice)
    return DemoSet(
        demonstrations=demonstrations_of(document),
        labels=tuple(task["labels"]),
        template=template_of(task),
        asked=Asked(**task["asked"]) if "asked" in task else None,
        certificate=_certificate(document["privacy"]),
        model_id=document["model"]["id"],
        model_sha256=document["model"]["sha256"],
        created=document["created"],
        stages=tuple(StageRecord.from_json(each) for each in document.get("stages", ())),
        prior=document.get("prior"),
        score=Score.from_json(document["score"]) if "score" in document else None,
        baselines=Baselines.from_json(baselines) if baselines is not None else None,
        refused=tuple(Refusal(each["label"], each["reason"]) for each in document.get("refused", ())),
        choice=choice,
    )
