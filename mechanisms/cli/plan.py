"""`plan`: schemes and M for a budget of compute, ranked by signal-to-noise."""

from __future__ import annotations

import argparse
from typing import Any

from mechanisms.accounting import PrivacyTarget
from mechanisms.cli.options import add_settings, spec_of
from mechanisms.cli.output import add_json, progress, show
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.runs.planner import Option, Task, ranked
from mechanisms.runs.planner import options as found_by
from mechanisms.sampling import SamplingPlan
from mechanisms.steps import mechanism_class, mechanism_names

_SETTINGS = ("epsilon", "delta", "mechanism", "per_subset", "tokens", "shots")
_USUAL = {"per_subset": 1, "tokens": SamplingPlan.tokens, "shots": SamplingPlan.shots}


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", type=int, required=True, metavar="n", help="units of the smallest label, public")
    parser.add_argument("--prompt-tokens", type=int, required=True, metavar="P", help="of one row's prompt")
    cost = parser.add_argument("--max-prompt-tokens", type=float, required=True, metavar="COST")
    cost.help = "prompt tokens through the model for one demonstration"
    add_settings(parser, _SETTINGS, _USUAL)
    add_json(parser)
    parser.set_defaults(run=_plan)


def _plan(options: argparse.Namespace) -> None:
    spec = spec_of(options, **_USUAL)
    assert spec.tokens is not None
    mechanism = mechanism_class(spec.mechanism)
    if not mechanism.uses_private_rows or mechanism.not_private:
        noisy = [name for name in mechanism_names() if mechanism_class(name).uses_private_rows]
        known = ", ".join(name for name in noisy if mechanism_class(name).not_private is None)
        raise UsageError(f"Nothing to plan for '{spec.mechanism}': choose one of {known}.")
    task = Task(options.size, spec.tokens, options.prompt_tokens, spec.per_subset or 1, spec.shots)
    target, found = PrivacyTarget(spec.epsilon, spec.delta), []
    for each in found_by(mechanism(), task, target, options.max_prompt_tokens):
        progress(_line(each))
        found.append(each)
    if not found:
        raise UsageError("No plan fits: raise --max-prompt-tokens, or epsilon.")
    if options.json:
        show(options, {"options": [_in_json(each) for each in ranked(found)]})
        return
    for each in ranked(found):
        print(_line(each))


def _in_json(option: Option) -> dict[str, Any]:
    return {
        "scheme": option.plan.scheme.value,
        "unit_rows": option.plan.unit_rows,
        "subsets": option.plan.subsets,
        "per_subset": option.plan.per_subset,
        "signal_to_noise": option.signal_to_noise,
        "prompt_tokens": option.cost,
        "efficient": option.efficient,
        **{each.flag.replace("-", "_"): getattr(option.mechanism, each.name) for each in parameters(option.mechanism)},
    }


def _line(option: Option) -> str:
    rows = "unit rows" if option.plan.unit_rows else f"subsets of {option.plan.per_subset}"
    return (
        f"{'*' if option.efficient else ' '} signal-to-noise {option.signal_to_noise:7.1f}   "
        f"cost {option.cost:10.0f}   {option.plan.scheme.value:17}  {rows:14}  M = {option.plan.subsets}"
    )


COMMANDS = {"plan": _add_options}
