"""`plan`: the scheme and the M that give the most signal for a privacy target and a budget of compute."""

from __future__ import annotations

import argparse
import bisect
from collections.abc import Iterator
from functools import partial
from typing import Any

from mechanisms.accounting import PrivacyTarget
from mechanisms.cli.options import add_settings, spec_of
from mechanisms.cli.output import add_json, progress, show
from mechanisms.discovery import parameters
from mechanisms.errors import AccountingError, UsageError
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import TokenMechanism, mechanism_class, mechanism_names

_SETTINGS = ("epsilon", "delta", "mechanism", "per_subset", "tokens", "shots")
_USUAL = {"per_subset": 1, "tokens": SamplingPlan.tokens, "shots": SamplingPlan.shots}


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", type=int, required=True, metavar="n", help="units of the smallest label, public")
    parser.add_argument("--prompt-tokens", type=int, required=True, metavar="P", help="of one row's prompt")
    help_text = "prompt tokens through the model for one demonstration"
    parser.add_argument("--max-prompt-tokens", type=float, required=True, metavar="COST", help=help_text)
    add_settings(parser, _SETTINGS, _USUAL)
    add_json(parser)
    parser.set_defaults(run=_plan)


def cost(plan: SamplingPlan, size: int, prompt_tokens: int, delta: float) -> float:
    """Prompt tokens through the model for one demonstration, spare rows of the batch included.

    Per token every prompt is run again with the t tokens so far, `rows T (P + (T - 1) / 2)`; otherwise the cache is
    kept, `rows (P + T)`.
    """
    rows, _ = plan.capacity(size, delta)
    if plan.scheme is Scheme.PER_TOKEN:
        return rows * plan.tokens * (prompt_tokens + (plan.tokens - 1) / 2)
    return rows * (prompt_tokens + plan.tokens)


def plans_within(
    plain: SamplingPlan, size: int, prompt_tokens: int, target: PrivacyTarget, budget: float, mechanism: TokenMechanism
) -> Iterator[dict[str, Any]]:
    """Calibrated plans of a budget, of each scheme the largest M that fits, and up to four halves; two seconds each.

    Args:
        plain: has tokens, shots, and records a prompt with subsets.
        size: units of the smallest label.
        prompt_tokens: of one private prompt; a unit row, which holds one record, is counted as long.
        budget: prompt tokens through the model for one demonstration.
    """
    for scheme in Scheme:
        for unit_rows in (True, False):
            per_subset = 1 if unit_rows else plain.per_subset
            made = partial(SamplingPlan, scheme, per_subset=per_subset, unit_rows=unit_rows)
            of_size = partial(made, tokens=plain.tokens, shots=plain.shots)
            most = range(1, -(-size // per_subset) + 1)
            largest = bisect.bisect_right(
                most, budget, key=lambda m: cost(of_size(m), size, prompt_tokens, target.delta)
            )
            for subsets in filter(None, (largest >> halvings for halvings in range(5))):
                plan = of_size(subsets)
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
                    "subsets": subsets,
                    "per_subset": per_subset,
                    "signal_to_noise": calibrated.signal_to_noise(plan),
                    "prompt_tokens": cost(plan, size, prompt_tokens, target.delta),
                    **{each.flag.replace("-", "_"): getattr(calibrated, each.name) for each in parameters(mechanism)},
                }


def _plan(options: argparse.Namespace) -> None:
    spec = spec_of(options, **_USUAL)
    mechanism = mechanism_class(spec.mechanism)
    if not mechanism.uses_private_rows or mechanism.not_private:
        classes = [mechanism_class(name) for name in mechanism_names()]
        known = ", ".join(each.name for each in classes if each.uses_private_rows and each.not_private is None)
        raise UsageError(f"Nothing to plan for '{spec.mechanism}': choose one of {known}.")
    if min(options.size, options.prompt_tokens) < 1:
        raise UsageError("--size and --prompt-tokens must be at least 1.")
    plain = SamplingPlan(tokens=spec.tokens or 1, shots=spec.shots, per_subset=spec.per_subset or 1, unit_rows=False)
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
    for i, each in enumerate(found):  # efficient: none that is as good is as cheap
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


COMMANDS = {"plan": _add_options}
