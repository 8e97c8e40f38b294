"""The check of a demo set: its run is planned again from its certificate, and compared with everything in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from mechanisms.accounting import Claim
from mechanisms.demos.demo_set import (
    DEMONSTRATIONS,
    DIRECTIONS,
    PROTOTYPES,
    PUBLIC_ONLY,
    ZERO_SHOT,
    Certificate,
    DemoSet,
    Score,
    StageRecord,
)
from mechanisms.errors import StudioError
from mechanisms.privacy_events import Approximate, Composed
from mechanisms.public_inputs import (
    DECLARED_COUNTS,
    DECLARED_SIZES,
    DECLARED_USERS,
    LABEL_SET,
    MEASURED_SIZES,
    WHETHER_MET,
    WHETHER_SHOWN,
)
from mechanisms.runs.certificate import WHERE, plan_of
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import CALIBRATE, SCORE, WORDS

# Machines differ in the last digits of Fourier transforms (epsilon), of binomial tails (failure probabilities), and in
# the last bits of logarithms and powers (noise). These relative tolerances allow for that, and for nothing else.
_SAME_EPSILON = _SAME_FAILURE = 1e-6
_SAME_NOISE = 1e-12
_SAME_GAIN = 1e-9
_MOST_PROBLEMS = 20


@dataclass(frozen=True)
class Verification:
    """The result of checking a certificate.

    Attributes:
        claim: the cost of the stated event; None if that is not the event that follows from the parameters.
        problems: one line for each wrong field, which begins with the field's name; empty if all fields are right.
    """

    claim: Claim | None
    problems: tuple[str, ...]


def verify(demo_set: DemoSet) -> Verification:
    """Check a certificate: derived parameters, every event of every list, the claim, and the figures of both
    accountants.

    Values on which no cost depends (the texts, the number of candidates) cannot contradict other fields; only a
    signature shows edits to them.
    """
    certificate = demo_set.certificate
    try:
        plan = plan_of(demo_set)
        event = plan.certified_event()
        problems = list(_of_parameters(certificate, plan))
    except StudioError as error:
        told = str(error)
        return Verification(None, (told if told.startswith("privacy/") else f"{WHERE}: {told}",))
    broken = list(_of_event(certificate.event, event))
    problems += [*broken, *_of_public_inputs(certificate, plan), *_of_texts(demo_set, plan)]
    problems += [*_of_stages(demo_set.stages, plan), *_of_findings(demo_set, plan)]
    found = None
    if not broken:  # the cost of another run's event proves nothing, and could take any time to compute
        try:
            lists = dict(certificate.event)  # in the run's order: of two with equal cost, the first is checked
            found = plan.claim(Composed(event.per, tuple((name, lists[name]) for name, _ in event)))
            problems += _of_claim(certificate, found, plan)
        except StudioError as error:
            problems.append(f"privacy/event: {error}")
    more = len(problems) - _MOST_PROBLEMS
    return Verification(found, (*problems[:_MOST_PROBLEMS], *([f"and {more} fields more."] if more > 0 else [])))


def _shown(value: object) -> str:
    """A value or a name from a hostile file, cut to 40 characters; control characters are replaced by `?`."""
    shown = "".join(character if character.isprintable() else "?" for character in str(value)[:41])
    return shown if len(shown) < 41 else f"{shown[:40]}…"


def _of_parameters(certificate: Certificate, plan: Plan) -> Iterator[str]:
    names = {"mechanism": plan.name, "transform": plan.transform_name, "scheme": plan.scheme}
    for name, value in names.items():
        if getattr(certificate, name) != value:
            yield f"privacy/{name}: '{value}' must stand here in the file of such a run."
    yield from _differences(WHERE, certificate.parameters, plan.parameters())


def _differences(where: str, stated: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[str]:
    for name, value in stated.items():
        field = f"{where}/{_shown(name)}"
        if name not in expected:
            yield f"{field}: has no place in this run."
        elif isinstance(value, dict) and isinstance(expected[name], dict):
            yield from _differences(field, value, expected[name])
        elif isinstance(value, bool) != isinstance(expected[name], bool) or value != expected[name]:
            yield f"{field}: {_shown(value)} is stated, {_shown(expected[name])} follows from the other parameters."
    yield from (f"{where}/{_shown(name)}: is missing." for name in expected if name not in stated)


def _of_event(stated: Composed, event: Composed) -> Iterator[str]:
    if stated.per != event.per:
        yield f"privacy/event/per: {_shown(stated.per)} is stated, {event.per} is how this run composes."
    lists, wanted = dict(stated), dict(event)
    for name, events in stated:
        field = f"privacy/event/lists/{_shown(name)}"
        if name not in wanted:
            yield f"{field}: has no place in this run."
        elif not _alike(events, wanted[name]):
            yield f"{field}: is not what the parameters cost."
    yield from (f"privacy/event/lists/{_shown(name)}: is missing." for name in wanted if name not in lists)


def _alike(stated: Any, expected: Any, tolerance: float = _SAME_NOISE) -> bool:
    """Whether two events, lists of events or numbers are the same except for differences between machines."""
    if isinstance(stated, tuple):
        return len(stated) == len(expected) and all(map(_alike, stated, expected))
    if not is_dataclass(stated):
        return math.isclose(stated, expected, rel_tol=tolerance)
    if type(stated) is not type(expected):
        return False
    tolerance = _SAME_FAILURE if isinstance(stated, Approximate) else _SAME_NOISE
    return all(_alike(getattr(stated, each.name), getattr(expected, each.name), tolerance) for each in fields(stated))


def _of_public_inputs(certificate: Certificate, plan: Plan) -> Iterator[str]:
    stated = certificate.public_inputs
    if (MEASURED_SIZES in stated) != (plan.measured is not None):
        yield "privacy/public_inputs: sizes must be called measured where, and only where, the parameters say how."
    if LABEL_SET not in stated:
        yield "privacy/public_inputs: the label set is public, and must stand here."
    counted = DECLARED_USERS if certificate.by_user else DECLARED_COUNTS
    sources = {MEASURED_SIZES, DECLARED_COUNTS, DECLARED_USERS, DECLARED_SIZES} & set(stated)
    if len(sources) != 1 or not sources <= {MEASURED_SIZES, DECLARED_SIZES, counted}:
        yield "privacy/public_inputs: where the label sizes come from must stand here, for this unit and once."
    if (WHETHER_SHOWN in stated) != plan.reads_rows:
        yield f"privacy/public_inputs: '{WHETHER_SHOWN}' must stand here where, and only where, rows are read."


def _of_texts(demo_set: DemoSet, plan: Plan) -> Iterator[str]:
    written = Counter(each.label for each in demo_set.demonstrations)
    if not written.keys() <= set(demo_set.labels):
        yield "demonstrations: a label is not one of the task's."
    if any(number > plan.spec.shots for number in written.values()):
        yield f"demonstrations: a label has more of them than {WHERE}/shots allows."


def _of_stages(stated: tuple[StageRecord, ...], plan: Plan) -> Iterator[str]:
    wanted = plan.stage_records()
    if [each.name for each in stated] != [each.name for each in wanted]:
        yield f"stages: {', '.join(each.name for each in wanted) or 'none'} is what this run has."
        return
    for one, other in zip(stated, wanted, strict=True):
        if not math.isclose(one.role, other.role, rel_tol=_SAME_NOISE):
            yield f"stages/{one.name}/role: {one.role:.6g} is stated, {other.role:.6g} follows from the shares."
        if not _alike(one.event, other.event):
            yield f"stages/{one.name}/event: is not what the parameters cost."


def _of_claim(certificate: Certificate, found: Claim, plan: Plan) -> Iterator[str]:
    stated = certificate.claim
    if found.epsilon > stated.epsilon * (1 + _SAME_EPSILON):
        yield f"privacy/epsilon: {stated.epsilon:.6g} is stated, {found.epsilon:.6g} is what the event costs."
    check = "privacy/accountants/check"
    if stated.accountant != found.accountant:
        yield f"privacy/accountants/claimed/name: {found.accountant} is who accounts this event."
    if stated.check_accountant != found.check_accountant:
        yield f"{check}/name: {found.check_accountant} is who checks this event."
    if not math.isclose(stated.check, found.check, rel_tol=_SAME_EPSILON):
        yield f"{check}/epsilon: {stated.check:.6g} is stated, {found.check:.6g} is what it finds."
    if certificate.private and plan.not_private:
        yield "privacy/private: nothing that this mechanism writes is private."
    if certificate.private and certificate.reason:
        yield "privacy/private: a reason why it is not private is given."


def _of_findings(demo_set: DemoSet, plan: Plan) -> Iterator[str]:
    """Check the findings of stages. A field may be missing although its stage was paid for, because a run can be
    stopped."""
    found = {
        "words": (demo_set.words, WORDS),
        "directions": (demo_set.directions, WORDS),
        "prior": (demo_set.prior, CALIBRATE),
        "score": (demo_set.score, SCORE),
    }
    for name, (value, stage) in found.items():
        if value is not None and stage not in plan.stages:
            yield f"{name}: nobody has paid for it: this run has no stage '{stage}'."
    yield from _of_labels("words", demo_set.words, demo_set.labels)
    yield from _of_labels("prior", demo_set.prior, demo_set.labels)
    if demo_set.baselines is not None:
        yield from _of_labels("baselines/zero_shot_prior", demo_set.baselines.zero_shot, demo_set.labels)
        if public := demo_set.baselines.public_only:
            yield from _of_labels("baselines/public_only/prior", public.prior, demo_set.labels)
            if any(each.label not in demo_set.labels for each in public.demonstrations):
                yield "baselines/public_only/demonstrations: every label must be one of the task's."
    if any(each.label not in demo_set.labels for each in demo_set.refused):
        yield "refused: every label must be one of the task's."
    if demo_set.score is not None and SCORE in plan.stages:
        yield from _of_score(demo_set.score, plan)


def _of_labels(field: str, found: Mapping[str, object] | None, labels: tuple[str, ...]) -> Iterator[str]:
    if found is not None and set(found) != set(labels):
        yield f"{field}: every label must stand here, and nothing else."


def _of_score(score: Score, plan: Plan) -> Iterator[str]:
    if score.held_out and not plan.by_roles:
        yield "score/rows: where every unit takes part in every stage, these rows took part in others."
    elif score.held_out and WHETHER_MET not in plan.public_inputs:
        yield f"score/rows: '{WHETHER_MET}' must stand among privacy/public_inputs."
    if score.weighing is not plan.spec.weighing:
        yield "score/weighing: the run's parameters state another one."
    known = (ZERO_SHOT, PUBLIC_ONLY, DEMONSTRATIONS, DIRECTIONS, PROTOTYPES)
    if not set(score.arms) <= set(known):
        yield f"score/arms: there are no others than {', '.join(known)}."
    for arm in (*score.arms.values(), *score.gains.values()):
        low, high = arm.interval
        if not low <= arm.accuracy <= high:
            yield "score/arms: an accuracy and a gain must lie inside their intervals."
    yield from _of_gains(score)


def _of_gains(score: Score) -> Iterator[str]:
    """Check the gains, which follow from one table: each is the difference of two accuracies, unless one of these is
    cut off."""
    own = score.arms.get(score.exported(without=DEMONSTRATIONS not in score.arms))
    for name, gain in score.gains.items():
        other = score.arms.get(name)
        if own is None or other is None or own is other:
            yield f"score/gains/{_shown(name)}: a gain is over another arm of the score."
        elif not any(each.accuracy in each.interval for each in (own, other, gain)):
            difference = own.accuracy - other.accuracy
            if not math.isclose(gain.accuracy, difference, abs_tol=_SAME_GAIN):
                yield (
                    f"score/gains/{_shown(name)}: {gain.accuracy:.6g} is stated, {difference:.6g} is the difference of "
                    "the accuracies."
                )
