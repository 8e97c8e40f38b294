"""`plan`: schemes and M for a budget of compute, ranked by signal-to-noise."""

from __future__ import annotations

import argparse
from typing import Any

from mechanisms.accounting import PrivacyTarget
from mechanisms.cli.output import add_json, progress, show
from mechanisms.discovery import parameters
from mechanisms.errors import UsageError
from mechanisms.runs.defaults import MECHANISM
from mechanisms.runs.planner import Option, Task, options, ranked
from mechanisms.steps import TokenMechanism, mechanism_class, mechanism_names


def add_commands(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("plan", help="the most signal for a privacy target and a budget of compute")
    parser.add_argument("--mechanism", default=MECHANISM, choices=_private_mechanisms())
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


def _private_mechanisms() -> list[str]:
    return [name for name in mechanism_names() if _has_noise(mechanism_class(name))]


def _has_noise(mechanism: type[TokenMechanism]) -> bool:
    return mechanism.uses_private_rows and mechanism.not_private is None


def _plan(arguments: argparse.Namespace) -> None:
    task = Task(
        arguments.size, arguments.tokens, arguments.prompt_tokens, arguments.per_subset, arguments.shots_per_label
    )
    target = PrivacyTarget(arguments.epsilon, arguments.delta)
    found = []
    for option in options(mechanism_class(arguments.mechanism)(), task, target, arguments.max_prompt_tokens):
        found.append(option)
        progress(_line(option))
    result = _in_order(found)
    if arguments.json:
        show(arguments, {"options": [_document(option) for option in result]})
        return
    for option in result:
        print(_line(option))


def planned(mechanism: str, task: Task, target: PrivacyTarget, max_prompt_tokens: float) -> list[dict[str, Any]]:
    """The plans for a target within a budget of compute, as JSON, the most signal-to-noise first.

    Raises:
        UsageError: no plan fits, or the mechanism has no noise.
    """
    if mechanism not in _private_mechanisms():
        raise UsageError(f"Nothing to plan for '{mechanism}': choose one of {', '.join(_private_mechanisms())}.")
    found = list(options(mechanism_class(mechanism)(), task, target, max_prompt_tokens))
    return [_document(option) for option in _in_order(found)]


def _in_order(found: list[Option]) -> list[Option]:
    if not found:
        raise UsageError("No plan fits: raise --max-prompt-tokens, or epsilon.")
    return ranked(found)


def _document(option: Option) -> dict[str, Any]:
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
