"""The demo set: synthetic demonstrations with their privacy certificate, format `dpicl-demos/1`."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import jsonschema

from mechanisms import __version__
from mechanisms.accounting import Claim, claim
from mechanisms.bundled import bundled
from mechanisms.errors import UsageError
from mechanisms.privacy_events import Composed, Pure, from_json
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.studio.marks import CLEAN_VALUES

FORMAT = "dpicl-demos/1"
MEASURED_SIZES = "label sizes measured with noise"
SCHEMA = bundled("dpicl-demos-1.schema.json")


def _finite(epsilon: float) -> float | None:
    # JSON has no infinity: null stands for it, where nothing is promised.
    return epsilon if math.isfinite(epsilon) else None


def _infinite(epsilon: float | None) -> float:
    return math.inf if epsilon is None else epsilon


@dataclass(frozen=True)
class Certificate:
    """What a demo set claims about privacy, and everything public that the claim rests on.

    Attributes:
        shown: why clean values of the data count as known, so that choices made since may depend on them.
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
    shown: tuple[str, ...] = ()
    spent_before: tuple[float, float] = (0.0, 0.0)

    def to_json(self) -> dict[str, Any]:
        """The `privacy` object of the format."""
        return {
            "private": self.private,
            **({"reason": self.reason} if self.reason else {}),
            "epsilon": _finite(self.claim.epsilon),
            "delta": self.claim.delta,
            "unit": self.unit,
            "adjacency": "add-or-remove",
            "mechanism": self.mechanism,
            "transform": self.transform,
            "scheme": self.scheme,
            "parameters": self.parameters,
            "event": self.event.to_json(),
            "accountants": {
                "claimed": {"name": self.claim.accountant, "epsilon": _finite(self.claim.epsilon)},
                "check": {"name": self.claim.check_accountant, "epsilon": _finite(self.claim.check)},
            },
            "public_inputs": list(self.public_inputs),
            "curator_diagnostics_shown": bool(self.shown),
            **({"shown": list(self.shown)} if self.shown else {}),
            "spent_before": {"epsilon": self.spent_before[0], "delta": self.spent_before[1]},
        }


@dataclass(frozen=True)
class DemoSet:
    """Demonstrations, the task they are for, and their certificate; no private text, length, index or seed."""

    demonstrations: tuple[Demonstration, ...]
    labels: tuple[str, ...]
    template: PromptTemplate
    certificate: Certificate
    model_id: str
    model_sha256: str
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def with_demonstrations(self, demonstrations: tuple[Demonstration, ...]) -> DemoSet:
        """The same set with other demonstrations, in the order of the labels."""
        ordered = sorted(demonstrations, key=lambda demonstration: self.labels.index(demonstration.label))
        return replace(self, demonstrations=tuple(ordered))

    def with_marks(self, marks: tuple[str, ...]) -> DemoSet:
        """The same set, marked also with what became known after it was written: which set is exported is a choice."""
        shown = tuple(sorted({*self.certificate.shown, *marks}))
        return replace(self, certificate=replace(self.certificate, shown=shown))

    def to_json(self) -> dict[str, Any]:
        """The whole document."""
        return {
            "format": FORMAT,
            "demonstrations": [{"text": d.text, "label": d.label} for d in self.demonstrations],
            "task": {
                "labels": list(self.labels),
                "instruction": self.template.instruction,
                "template": {"text": self.template.text, "label": self.template.label},
            },
            "privacy": self.certificate.to_json(),
            "model": {"id": self.model_id, "sha256": self.model_sha256},
            "software": {"name": "dpicl-studio", "version": __version__},
            "created": self.created,
        }

    def dumps(self) -> str:
        """The document as text."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n"


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def loads(text: str) -> DemoSet:
    """Read a demo set.

    Raises:
        UsageError: not JSON, or not a `dpicl-demos/1` document; the message names the first place that is wrong.
    """
    try:
        document = json.loads(text)
        json.dumps(document, ensure_ascii=False).encode()  # lone surrogates could be shown nowhere
        problem = jsonschema.exceptions.best_match(_validator().iter_errors(document))
    except (ValueError, RecursionError) as error:
        raise UsageError("This is not a demo set: the file is not JSON, or is nested too deeply.") from error
    if problem is not None:
        where = "/".join(str(part) for part in problem.absolute_path) or "the top level"
        raise UsageError(f"This is not a {FORMAT} demo set: {problem.validator} fails at {where}.")
    privacy, task = document["privacy"], document["task"]
    accountants = privacy["accountants"]
    certificate = Certificate(
        private=privacy["private"],
        reason=privacy.get("reason"),
        claim=Claim(
            _infinite(privacy["epsilon"]),
            privacy["delta"],
            accountants["claimed"]["name"],
            _infinite(accountants["check"]["epsilon"]),
            accountants["check"]["name"],
        ),
        unit=privacy["unit"],
        mechanism=privacy["mechanism"],
        transform=privacy["transform"],
        scheme=privacy["scheme"],
        parameters=privacy["parameters"],
        event=from_json(privacy["event"]),
        public_inputs=tuple(privacy["public_inputs"]),
        shown=tuple(privacy.get("shown", [CLEAN_VALUES] if privacy["curator_diagnostics_shown"] else [])),
        spent_before=(privacy["spent_before"]["epsilon"], privacy["spent_before"]["delta"]),
    )
    return DemoSet(
        demonstrations=tuple(Demonstration(d["text"], d["label"]) for d in document["demonstrations"]),
        labels=tuple(task["labels"]),
        template=PromptTemplate(task["instruction"], task["template"]["text"], task["template"]["label"]),
        certificate=certificate,
        model_id=document["model"]["id"],
        model_sha256=document["model"]["sha256"],
        created=document["created"],
    )


def recompute(demo_set: DemoSet) -> Claim:
    """Account a demo set's event anew: what its `epsilon` should say.

    Sizes that were measured come first and fix the rest, so that their pure event is added, not composed with it.

    Raises:
        UsageError: sizes are said to be measured, and the event does not show it.
        AccountingError: the event cannot be bounded.
    """
    certificate = demo_set.certificate
    if MEASURED_SIZES not in certificate.public_inputs:
        return claim(certificate.event, certificate.claim.delta)
    first = [events[0] if events else None for _, events in certificate.event]
    counted = [event.epsilon for event in first if isinstance(event, Pure) and event.count == 1]
    if len(counted) < len(first):
        raise UsageError("The demo set says that sizes were measured, but a list does not begin with that event.")
    counting = max(counted)
    lists = ((name, events[1:]) for name, events in certificate.event)
    written = claim(Composed(certificate.event.per, tuple(lists)), certificate.claim.delta)
    return replace(written, epsilon=written.epsilon + counting, check=written.check + counting)
