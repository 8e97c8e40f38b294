"""The check of a demo set: its certificate rebuilt, and its findings against the stages of its run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from mechanisms.accounting import AGREEMENT, PURE_SUM, Claim
from mechanisms.data.sizes import WHETHER_MET, WHETHER_SHOWN
from mechanisms.demos.demo_set import MEASURED_SIZES, Certificate, DemoSet
from mechanisms.demos.findings import DEMONSTRATIONS, PROTOTYPES, PUBLIC_ONLY, ZERO_SHOT, Choice, Score, StageRecord
from mechanisms.errors import StudioError
from mechanisms.privacy_events import Approximate, Composed, PrivacyEvent
from mechanisms.records import Demonstration, PromptTemplate
from mechanisms.runs.certificate import Rebuilt, rebuilt
from mechanisms.runs.judging import Correction
from mechanisms.runs.recipe import Division, Recipe, Stage
from mechanisms.runs.request import (
    DECLARED_COUNTS,
    DECLARED_SIZES,
    DECLARED_USERS,
    LABEL_SET,
    RECORD_SCHEMA,
    declared_counts,
)
from mechanisms.runs.sets import NONE, candidate_sets

_ARMS = (ZERO_SHOT, PUBLIC_ONLY, DEMONSTRATIONS, PROTOTYPES)


def problems_of_findings(demo_set: DemoSet, recipe: Recipe | None) -> Iterator[str]:
    """One line for each field that does not fit, its name first.

    A field may be missing although its stage was paid for: a run can be stopped.
    """
    found = {
        "prior": (demo_set.prior, Stage.CALIBRATE),
        "choice": (demo_set.choice, Stage.CHOOSE),
        "score": (demo_set.score, Stage.SCORE),
    }
    for name, (value, stage) in found.items():
        if value is not None and (recipe is None or stage not in recipe.shares):
            yield f"{name}: nobody has paid for it: this run has no stage '{stage}'."
    yield from _of_labels("prior", demo_set.prior, demo_set.labels)
    if recipe is not None and demo_set.choice is not None:
        yield from _of_choice(demo_set.choice, demo_set, recipe)
    if recipe is not None and demo_set.score is not None:
        yield from _of_score(demo_set.score, recipe, demo_set.certificate.public_inputs)


def _of_labels(field: str, correction: Mapping[str, float] | None, labels: tuple[str, ...]) -> Iterator[str]:
    if correction is not None and set(correction) != set(labels):
        yield f"{field}: every label must stand here, and nothing else."


def _of_choice(choice: Choice, demo_set: DemoSet, recipe: Recipe) -> Iterator[str]:
    with_own_words, with_plain = (names_of_sets(recipe, words) for words in (1, 2))
    most = len(with_plain) * len(Correction)
    if choice.among > most:
        yield f"choice/among: this recipe has at most {most} arms."
    if choice.chosen not in with_own_words + with_plain:
        yield "choice/chosen: no set of this recipe has that name."
    if choice.chosen == NONE and demo_set.demonstrations:
        yield "demonstrations: the choice was to have none."
    yield from _of_labels("choice/zero_shot_prior", choice.zero_shot, demo_set.labels)
    if public := choice.public_only:
        yield from _of_labels("choice/public_only/prior", public.prior, demo_set.labels)
        if any(each.label not in demo_set.labels for each in public.demonstrations):
            yield "choice/public_only/demonstrations: every label must be one of the task's."


def names_of_sets(recipe: Recipe, words: int) -> list[str]:
    """Names of the sets in the choice, in their order; they do not depend on the texts.

    Args:
        recipe: public.
        words: wordings of the task, 1 or 2.
    """
    texts = {"": [""]}
    voted = texts if Stage.VOTE in recipe.shares else {}
    written = [Demonstration("", "")] if Stage.WRITE in recipe.shares else []
    templates = [PromptTemplate("")] * words
    return [each.name for each in candidate_sets(templates, [""], 1, recipe.sets, texts, voted, written)]


def _of_score(score: Score, recipe: Recipe, public_inputs: Sequence[str]) -> Iterator[str]:
    if score.held_out and recipe.division is not Division.ROLES:
        yield "score/rows: where every unit takes part in every stage, these rows took part in the choice."
    elif score.held_out and WHETHER_MET not in public_inputs:
        yield f"score/rows: '{WHETHER_MET}' must stand among privacy/public_inputs."
    if score.weighing is not recipe.weighing:
        yield "score/weighing: the run's parameters state another one."
    if not set(score.arms) <= set(_ARMS):
        yield f"score/arms: there are no others than {', '.join(_ARMS)}."
    for arm in score.arms.values():
        low, high = arm.interval
        if not low <= arm.accuracy <= high:
            yield "score/arms: an accuracy must lie inside its interval."


# A certificate's check: the run that it describes is built anew, and held against everything that it states.

# Machines differ in the last digits of Fourier transforms (epsilon), of binomial tails (failure probabilities), and in
# the last bits of logarithms and powers (noise). Relative tolerances for that, and no other slack.
_SAME_EPSILON = _SAME_FAILURE = 1e-6
_SAME_NOISE = 1e-12
_MOST_PROBLEMS = 20


@dataclass(frozen=True)
class Verification:
    """The result of checking a certificate.

    Attributes:
        claim: what the stated event costs; None where it is not the event that the parameters cost.
        problems: one line for each field that does not fit, its name first; empty where everything fits.
    """

    claim: Claim | None
    problems: tuple[str, ...]


def verify(demo_set: DemoSet) -> Verification:
    """Check a certificate: derived parameters, every event of every list, the claim and both accountants' figures.

    What no cost depends on (the texts, the number of candidates) cannot contradict anything here: of edits to it
    a signature tells.
    """
    try:
        run = rebuilt(demo_set)
    except StudioError as error:
        return Verification(None, (str(error),))
    certificate = demo_set.certificate
    broken = list(_of_event(certificate.event, run))
    problems = [*_of_parameters(demo_set, run), *broken]
    problems += [*_of_public_inputs(certificate, run, demo_set.schema is not None), *_of_texts(demo_set, run)]
    problems += [
        *_of_stages(demo_set.stages, run),
        *problems_of_findings(demo_set, run.staged.recipe if run.staged else None),
    ]
    found = None
    if not broken:  # the price of another run's event says nothing, and can be any amount of work
        try:
            found = run.request.claim_of(_in_order(certificate.event, run))
            problems += _of_claim(certificate, found, run)
        except StudioError as error:
            problems.append(f"privacy/event: {error}")
    return Verification(found, _at_most(problems))


def _at_most(problems: list[str]) -> tuple[str, ...]:
    more = len(problems) - _MOST_PROBLEMS
    return (*problems[:_MOST_PROBLEMS], *([f"and {more} fields more."] if more > 0 else []))


def _shown(value: object) -> str:
    """A hostile file's value or name, short enough for a line and without control characters."""
    shown = "".join(character if character.isprintable() else "?" for character in str(value)[:41])
    return shown if len(shown) < 41 else f"{shown[:40]}…"


def _of_parameters(demo_set: DemoSet, run: Rebuilt) -> Iterator[str]:
    yield from _differences("privacy/parameters", demo_set.certificate.parameters, run.request.parameters())


def _differences(where: str, stated: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    for name, value in stated.items():
        field = f"{where}/{_shown(name)}"
        if name not in wanted:
            yield f"{field}: has no place in this run."
        elif isinstance(value, dict) and isinstance(wanted[name], dict):
            yield from _differences(field, value, wanted[name])
        elif isinstance(value, bool) != isinstance(wanted[name], bool) or value != wanted[name]:
            yield f"{field}: {_shown(value)} is stated, {_shown(wanted[name])} follows from the other parameters."
    yield from (f"{where}/{_shown(name)}: is missing." for name in wanted if name not in stated)


def _of_event(stated: Composed, run: Rebuilt) -> Iterator[str]:
    if stated.per != run.event.per:
        yield f"privacy/event/per: {_shown(stated.per)} is stated, {run.event.per} is how this run composes."
    lists, wanted = dict(stated), dict(run.event)
    for name, events in stated:
        field = f"privacy/event/lists/{_shown(name)}"
        if name not in wanted:
            yield f"{field}: has no place in this run."
        elif not _same_events(events, wanted[name]):
            yield f"{field}: is not what the parameters cost."
    yield from (f"privacy/event/lists/{_shown(name)}: is missing." for name in wanted if name not in lists)


def _in_order(stated: Composed, run: Rebuilt) -> Composed:
    """The stated lists as the run orders them: of two that cost the same, the first one's check is stated."""
    lists = dict(stated)
    return Composed(stated.per, tuple((name, lists[name]) for name, _ in run.event))


def _same_events(stated: tuple[PrivacyEvent, ...], wanted: tuple[PrivacyEvent, ...]) -> bool:
    return len(stated) == len(wanted) and all(map(_alike, stated, wanted))


def _alike(stated: Any, wanted: Any) -> bool:
    """Whether two events, or two numbers of events, are the same but for what differs between machines."""
    if type(stated) is not type(wanted):
        return False
    tolerance = _SAME_FAILURE if isinstance(stated, Approximate) else _SAME_NOISE
    pairs = [(getattr(stated, field.name), getattr(wanted, field.name)) for field in fields(stated)]
    return all(_close(one, other, tolerance) for one, other in pairs)


def _close(stated: Any, wanted: Any, tolerance: float) -> bool:
    if isinstance(stated, tuple):
        return len(stated) == len(wanted) and all(map(_alike, stated, wanted))
    if is_dataclass(stated):
        return _alike(stated, wanted)
    return math.isclose(stated, wanted, rel_tol=tolerance)


def _of_public_inputs(certificate: Certificate, run: Rebuilt, structured: bool) -> Iterator[str]:
    stated = certificate.public_inputs
    if (MEASURED_SIZES in stated) != (run.request.measured is not None):
        yield "privacy/public_inputs: sizes must be called measured where, and only where, the parameters say how."
    if LABEL_SET not in stated:
        yield "privacy/public_inputs: the label set is public, and must stand here."
    if (RECORD_SCHEMA in stated) != structured:
        yield f"privacy/public_inputs: '{RECORD_SCHEMA}' must stand here where, and only where, task/schema is given."
    sources = {MEASURED_SIZES, DECLARED_COUNTS, DECLARED_USERS, DECLARED_SIZES} & set(stated)
    if len(sources) != 1 or not sources <= {MEASURED_SIZES, DECLARED_SIZES, declared_counts(certificate.by_user)}:
        yield "privacy/public_inputs: where the label sizes come from must stand here, for this unit and once."
    if (WHETHER_SHOWN in stated) != run.request.reads_rows:
        yield f"privacy/public_inputs: '{WHETHER_SHOWN}' must stand here where, and only where, rows are read."


def _of_texts(demo_set: DemoSet, run: Rebuilt) -> Iterator[str]:
    written = Counter(each.label for each in demo_set.demonstrations)
    if not written.keys() <= set(demo_set.labels):
        yield "demonstrations: a label is not one of the task's."
    if any(number > run.request.exported for number in written.values()):
        field = "kept_per_label" if "kept_per_label" in demo_set.certificate.parameters else "shots_per_label"
        yield f"demonstrations: a label has more of them than privacy/parameters/{field} allows."
    if demo_set.schema and not all(demo_set.schema.holds(each.text) for each in demo_set.demonstrations):
        yield "demonstrations: a text is not a record of task/schema."


def _of_stages(stated: tuple[StageRecord, ...], run: Rebuilt) -> Iterator[str]:
    wanted = run.request.stage_records()
    if [each.name for each in stated] != [each.name for each in wanted]:
        yield f"stages: {', '.join(each.name for each in wanted) or 'none'} is what this run has."
        return
    for one, other in zip(stated, wanted, strict=True):
        if not math.isclose(one.role, other.role, rel_tol=_SAME_NOISE):
            yield f"stages/{one.name}/role: {one.role:.6g} is stated, {other.role:.6g} follows from the shares."
        if not _alike(one.event, other.event):
            yield f"stages/{one.name}/event: is not what the parameters cost."


def _of_claim(certificate: Certificate, found: Claim, run: Rebuilt) -> Iterator[str]:
    stated = certificate.claim
    earlier = _of_earlier_accountants(stated, found)
    # Both bounds are true, so that who claimed before the larger one was claimed may have claimed the smaller.
    cost = min(found.epsilon, found.check) if earlier else found.epsilon
    if cost > stated.epsilon * (1 + _SAME_EPSILON):
        yield f"privacy/epsilon: {stated.epsilon:.6g} is stated, {cost:.6g} is what the event costs."
    yield from _of_earlier_check(stated, cost) if earlier else _of_accountants(stated, found)
    if certificate.private and run.request.not_private:
        yield "privacy/private: nothing that this mechanism writes is private."
    if certificate.private and certificate.reason:
        yield "privacy/private: a reason why it is not private is given."


def _of_accountants(stated: Claim, found: Claim) -> Iterator[str]:
    if stated.accountant != found.accountant:
        yield f"privacy/accountants/claimed/name: {found.accountant} is who accounts this event."
    if stated.check_accountant != found.check_accountant:
        yield f"privacy/accountants/check/name: {found.check_accountant} is who checks this event."
    if not math.isclose(stated.check, found.check, rel_tol=_SAME_EPSILON):
        yield f"privacy/accountants/check/epsilon: {stated.check:.6g} is stated, {found.check:.6g} is what it finds."


# Two accountants accounted all but zCDP before there were others.
_CHECKED = "pld"
_EARLIER = {("prv", _CHECKED), (PURE_SUM, _CHECKED)}
_EARLIER_ERROR = 2e-4


def _of_earlier_accountants(stated: Claim, found: Claim) -> bool:
    """Whether those who accounted the event in earlier versions are stated, and others account it now."""
    now, before = found.accountants, stated.accountants
    if now == before or len(now) != len(before):
        return False
    return all(
        one == other or (other in _EARLIER and one not in _EARLIER) for one, other in zip(now, before, strict=True)
    )


def _of_earlier_check(stated: Claim, cost: float) -> Iterator[str]:
    slack = AGREEMENT * stated.epsilon + _EARLIER_ERROR
    if not cost - slack <= stated.check <= stated.epsilon + slack:
        yield f"privacy/accountants/check/epsilon: {stated.check:.6g} is stated, {cost:.6g} is what the event costs."
