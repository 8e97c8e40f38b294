"""`calibrate`, `account`, `audit` and `plan`: the noise for a target, its cost, a test of it, and plans compared by
their signal-to-noise ratio.

`account --from FILE` checks a demo set's certificate and prints the file's digest. It exits with 0 if the certificate
is consistent, and with 3 if it is not, after the list of problems, or if the digest differs from the given one.
"""

from __future__ import annotations

import argparse
import bisect
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from mechanisms.accounting import PrivacyTarget, claim
from mechanisms.audit import CONFIDENCE, audit_mechanism
from mechanisms.cli.options import add_json, add_settings, check_noise, progress, show, spec_of
from mechanisms.demos.demo_set import finite, loads
from mechanisms.demos.signature import check_signature, digest, same_digest
from mechanisms.discovery import parameters
from mechanisms.errors import AccountingError, UsageError
from mechanisms.files import text_of
from mechanisms.privacy_events import Composed
from mechanisms.records import RECORD
from mechanisms.runs.spec import RunSpec
from mechanisms.runs.verification import verify
from mechanisms.sampling import ADJACENCY, Compose, EventOfSteps, SamplingPlan, Scheme
from mechanisms.settings import PARAMETERS
from mechanisms.steps import TokenMechanism, mechanism_class, mechanism_names

_LABEL = "each label"
_OF_A_PLAN = ("delta", "mechanism", "transform", PARAMETERS, "scheme", "subsets", "per_subset", "tokens", "shots")
_USUAL = {"subsets": SamplingPlan.rows_per_token, "tokens": SamplingPlan.tokens, "shots": SamplingPlan.written}


def _add_calibrate(parser: argparse.ArgumentParser) -> None:
    _add_plan(parser, "epsilon")
    parser.set_defaults(run=_calibrate)


def _add_account(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="source", metavar="FILE", help="check a demo set's certificate")
    parser.add_argument("--digest", help="with --from: what the certificate page on paper says; refuse another file")
    _add_plan(parser)
    parser.set_defaults(run=_account)


def _add_plan(parser: argparse.ArgumentParser, *more: str) -> None:
    add_settings(parser, (*more, *_OF_A_PLAN), _USUAL)
    group = parser.add_argument_group("sampling rate")
    group.add_argument("--rate", type=float, metavar="Q", help="probability that a unit joins")
    group.add_argument("--size", type=int, metavar="n", help="units of the largest-rate label, public")
    group.add_argument("--expected-sample", type=float, metavar="m", help="q = m / n (default: M N / n)")
    add_json(parser)


def _calibrate(options: argparse.Namespace) -> None:
    spec, plan = _planned(options)
    check_noise(spec)
    compose = _composition(options, plan, spec.delta)
    mechanism = spec.made_mechanism.for_plan(plan)
    calibrated = mechanism.calibrate(compose, PrivacyTarget(spec.epsilon, spec.delta))
    show(options, _cost(calibrated, plan, compose(calibrated.event), spec.delta))


def _account(options: argparse.Namespace) -> None:
    if options.source:
        _check(options)
        return
    if options.digest:
        raise UsageError("--digest is compared with a file: name it with --from FILE.")
    spec, plan = _planned(options)
    check_noise(spec, required=True)
    given = spec.made_mechanism.for_plan(plan)
    show(options, _cost(given, plan, _composition(options, plan, spec.delta)(given.event), spec.delta))


def _planned(options: argparse.Namespace) -> tuple[RunSpec, SamplingPlan]:
    spec = spec_of(options, **_USUAL)
    if reason := mechanism_class(spec.mechanism).not_private:
        raise UsageError(f"There is nothing to account: '{spec.mechanism}' is {reason}.")
    return spec, spec.with_(written=spec.shots).sampling()


def _composition(options: argparse.Namespace, plan: SamplingPlan, delta: float) -> Compose:
    """The composition of a run of one label, from --rate, or --size with --expected-sample.

    With --size alone the batch's capacity follows from the plan, and the probability of its overflow is part of the
    event.

    Raises:
        UsageError: no rate is given, or two that disagree.
    """
    size, expected, rate = options.size, options.expected_sample, options.rate
    if size is not None and size < 1:
        raise UsageError("--size must be at least 1.")
    if expected is not None and not expected > 0:
        raise UsageError("--expected-sample must be a positive number.")
    if expected is not None and size is None:
        raise UsageError("--expected-sample needs --size.")
    if size is not None and rate is None and expected is None:
        return lambda event: plan.compose(event, {_LABEL: size}, delta)
    if size is not None:
        implied = min(1.0, (plan.expected_sample if expected is None else expected) / size)
        if rate is not None and abs(rate - implied) > 1e-9:
            raise UsageError(f"--rate {rate:g} disagrees with --size and --expected-sample, which give {implied:g}.")
        rate = implied
    if rate is None:
        raise UsageError("Give the sampling rate: --rate Q, or --size n (with --expected-sample m).")
    if not 0 < rate <= 1:
        raise UsageError("--rate must lie in (0, 1].")

    def composed(event: EventOfSteps) -> Composed:
        return Composed("label", ((_LABEL, plan.label_events(event, rate) + plan.overflow_allowed(rate, delta)),))

    return composed


def _cost(used: TokenMechanism, plan: SamplingPlan, event: Composed, delta: float) -> dict[str, Any]:
    claimed = claim(event, delta)
    return {
        **{each.flag.replace("-", "_"): getattr(used, each.name) for each in parameters(used)},
        "epsilon": claimed.epsilon,
        "epsilon_check": claimed.check,
        **({"remark": claimed.remark} if claimed.remark else {}),
        "delta": claimed.delta,
        "adjacency": ADJACENCY,
        "unit": RECORD,
        "sensitivity": used.sensitivity(plan.unit_rows).bound,
        "signal_to_noise": used.signal_to_noise(plan),
        "event": event.to_json(),
    }


def _check(options: argparse.Namespace) -> None:
    text = text_of(options.source)
    demo_set = loads(text)
    certificate, found, printed = demo_set.certificate, verify(demo_set), digest(text)
    document = {
        "epsilon": found.claim and finite(found.claim.epsilon),
        "epsilon_check": found.claim and finite(found.claim.check),
        "delta": certificate.claim.delta,
        "stated_epsilon": finite(certificate.claim.epsilon),
        "agrees": not found.problems,
        "problems": list(found.problems),
        "signature": check_signature(text).value,
        "digest": printed,
        "private": certificate.private,
        "adjacency": ADJACENCY,
        "event": certificate.event.to_json(),
    }
    show(options, document)
    if found.problems:
        raise AccountingError(f"The certificate is refused. {found.problems[0]}")
    if options.digest is not None and not same_digest(printed, options.digest):
        raise AccountingError("This is not the file of that certificate page: the digests differ.")


def _add_audit(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    step = verbs.add_parser("mechanism", help="many draws of one step on a worst-case pair of neighbours")
    step.add_argument("name", choices=mechanism_names())
    step.add_argument("--epsilon", type=float, default=2.0, help="what one step is calibrated to cost")
    step.add_argument("--draws", type=int, default=100_000)
    add_json(step)
    step.set_defaults(run=_audit)


def _audit(options: argparse.Namespace) -> None:
    def report(done: int, total: int) -> None:
        if done % (total // 10 or 1) == 0:
            progress(f"{done} of {total}")

    found = audit_mechanism(options.name, options.epsilon, options.draws, report=report)
    document = {
        "mechanism": found.mechanism,
        "epsilon_lower_bound": found.lower_bound,
        "epsilon_claimed": found.claimed if math.isfinite(found.claimed) else None,
        "delta": found.delta,
        "confidence": CONFIDENCE,
        "draws": found.draws,
        "holds": found.holds,
    }
    show(options, document)


_PLANNED = ("epsilon", "delta", "mechanism", "per_subset", "tokens", "shots")
_USUAL_PLAN = {"per_subset": 1, "tokens": SamplingPlan.tokens, "shots": SamplingPlan.written}


def _add_plan_command(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", type=int, required=True, metavar="n", help="units of the smallest label, public")
    parser.add_argument("--prompt-tokens", type=int, required=True, metavar="P", help="of one row's prompt")
    help_text = "prompt tokens through the model for one demonstration"
    parser.add_argument("--max-prompt-tokens", type=float, required=True, metavar="COST", help=help_text)
    add_settings(parser, _PLANNED, _USUAL_PLAN)
    add_json(parser)
    parser.set_defaults(run=_plan)


def cost(plan: SamplingPlan, size: int, prompt_tokens: int, delta: float) -> float:
    """The number of prompt tokens that the model reads for one demonstration, including the batch's spare rows.

    If each token has a new sample, every prompt is read again with the t tokens so far: `rows T (P + (T - 1) / 2)`.
    Otherwise the cache is kept: `rows (P + T)`.
    """
    rows, _ = plan.capacity(size, delta)
    if plan.scheme is Scheme.PER_TOKEN:
        return rows * plan.tokens * (prompt_tokens + (plan.tokens - 1) / 2)
    return rows * (prompt_tokens + plan.tokens)


def plans_within(
    plain: SamplingPlan, size: int, prompt_tokens: int, target: PrivacyTarget, budget: float, mechanism: TokenMechanism
) -> Iterator[dict[str, Any]]:
    """Calibrated plans within a budget: for each scheme the largest M that fits, and that M halved up to four times.
    Each plan takes about two seconds.

    Args:
        plain: gives the tokens, the written demonstrations, and the records in a prompt with subsets.
        size: the number of units of the smallest label.
        prompt_tokens: the tokens of one private prompt; a unit row, which has one record, is assumed to have as many.
        budget: the most prompt tokens that the model may read for one demonstration.
    """
    for scheme in Scheme:
        for unit_rows in (True, False):
            per_subset = 1 if unit_rows else plain.per_subset
            made = partial(SamplingPlan, scheme, per_subset=per_subset, unit_rows=unit_rows)
            of_size = partial(made, tokens=plain.tokens, written=plain.written)
            most = range(1, -(-size // per_subset) + 1)
            largest = bisect.bisect_right(
                most, budget, key=lambda m: cost(of_size(m), size, prompt_tokens, target.delta)
            )
            for rows in filter(None, (largest >> halvings for halvings in range(5))):
                plan = of_size(rows)
                if mechanism.closed(plan) is not None:
                    continue
                compose = partial(plan.compose, sizes={"each label": size}, delta=target.delta)
                try:
                    calibrated = mechanism.for_plan(plan).calibrate(compose, target)
                except AccountingError:
                    continue  # no noise meets the target with that many releases
                yield {
                    "scheme": scheme.value,
                    "unit_rows": unit_rows,
                    "subsets": rows,
                    "per_subset": per_subset,
                    "signal_to_noise": calibrated.signal_to_noise(plan),
                    "prompt_tokens": cost(plan, size, prompt_tokens, target.delta),
                    **{each.flag.replace("-", "_"): getattr(calibrated, each.name) for each in parameters(mechanism)},
                }


def _plan(options: argparse.Namespace) -> None:
    spec = spec_of(options, **_USUAL_PLAN)
    mechanism = mechanism_class(spec.mechanism)
    if not mechanism.uses_private_rows or mechanism.not_private:
        classes = [mechanism_class(name) for name in mechanism_names()]
        known = ", ".join(each.name for each in classes if each.uses_private_rows and each.not_private is None)
        raise UsageError(f"Nothing to plan for '{spec.mechanism}': choose one of {known}.")
    if min(options.size, options.prompt_tokens) < 1:
        raise UsageError("--size and --prompt-tokens must be at least 1.")
    plain = SamplingPlan(tokens=spec.tokens or 1, written=spec.shots, per_subset=spec.per_subset or 1, unit_rows=False)
    target = PrivacyTarget(spec.epsilon, spec.delta)
    found = []
    for each in plans_within(
        plain, options.size, options.prompt_tokens, target, options.max_prompt_tokens, mechanism()
    ):
        progress(_line(each))
        found.append(each)
    if not found:
        raise UsageError("No plan fits: raise --max-prompt-tokens, or epsilon.")
    found.sort(key=lambda each: (-each["signal_to_noise"], each["prompt_tokens"]))
    for i, each in enumerate(found):  # efficient: no plan with as much signal is as cheap
        each["efficient"] = all(each["prompt_tokens"] < better["prompt_tokens"] for better in found[:i])
    if options.json:
        show(options, {"options": found})
        return
    for each in found:
        print(_line(each))


def _line(plan: dict[str, Any]) -> str:
    rows = "unit rows" if plan["unit_rows"] else f"subsets of {plan['per_subset']}"
    return (
        f"{'*' if plan.get('efficient') else ' '} signal-to-noise {plan['signal_to_noise']:7.1f}   "
        f"cost {plan['prompt_tokens']:10.0f}   {plan['scheme']:17}  {rows:14}  M = {plan['subsets']}"
    )


COMMANDS = {"calibrate": _add_calibrate, "account": _add_account, "audit": _add_audit, "plan": _add_plan_command}
