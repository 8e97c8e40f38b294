"""`plan`: schemes and M for a budget of compute, ranked by signal-to-noise."""

from __future__ import annotations

import argparse
from typing import Any

from mechanisms import api
from mechanisms.accounting import PrivacyTarget
from mechanisms.cli.output import add_json, progress, show
from mechanisms.discovery import parameters
from mechanisms.runs.defaults import MECHANISM
from mechanisms.runs.planner import Option, Task


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mechanism", default=MECHANISM, choices=api.noisy_mechanisms())
    parser.add_argument("--size", type=int, required=True, metavar="n", help="units of the smallest label, public")
    parser.add_argument("--tokens", type=int, required=True, metavar="T")
    parser.add_argument("--prompt-tokens", type=int, required=True, metavar="P")
    parser.add_argument("--per-subset", type=int, default=1, metavar="N")
    parser.add_argument("--shots-per-label", "--shots", type=int, default=1, metavar="S")
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    cost = parser.add_argument("--max-prompt-tokens", type=float, required=True, metavar="COST")
    cost.help = "prompt tokens through the model for one demonstration"
    add_json(parser)
    parser.set_defaults(run=_plan)


def _plan(options: argparse.Namespace) -> None:
    task = Task(options.size, options.tokens, options.prompt_tokens, options.per_subset, options.shots_per_label)
    target = PrivacyTarget(options.epsilon, options.delta)
    found = api.planned(
        options.mechanism, task, target, options.max_prompt_tokens, told=lambda each: progress(_line(each))
    )
    if options.json:
        show(options, {"options": [in_json(each) for each in found]})
        return
    for each in found:
        print(_line(each))


def in_json(option: Option) -> dict[str, Any]:
    """A plan, calibrated."""
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
