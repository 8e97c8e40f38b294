"""The options that fix mechanism, sampling and delta, shared by several commands."""

from __future__ import annotations

import argparse
from dataclasses import MISSING, fields
from typing import Any

from mechanisms.errors import UsageError
from mechanisms.privacy_events import Composed
from mechanisms.sampling import Compose, EventOfSteps, SamplingPlan, Scheme
from mechanisms.steps import TokenMechanism, mechanism_class, mechanism_names
from mechanisms.steps.parameters import parameters


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """Mechanism with its parameters, scheme, rows, tokens, shots, delta."""
    plan = SamplingPlan()
    group = parser.add_argument_group("plan")
    group.add_argument("--mechanism", default="gaussian", choices=mechanism_names())
    group.add_argument("--delta", type=float, required=True, help="failure probability of the claim, well under 1/n")
    group.add_argument("--scheme", default=plan.scheme.value, choices=[s.value for s in Scheme])
    rows = group.add_mutually_exclusive_group()
    rows.add_argument("--unit-rows", action="store_true", help="each sampled unit is a row (default)")
    rows.add_argument("--per-subset", type=int, metavar="N", help="M subsets of N expected records instead")
    group.add_argument("--subsets", type=int, default=plan.subsets, metavar="M", help="expected rows, or subsets")
    group.add_argument("--tokens", type=int, default=plan.tokens, metavar="T", help="tokens of a demonstration")
    group.add_argument("--shots-per-label", "--shots", type=int, default=plan.shots, metavar="S")
    group = parser.add_argument_group("the mechanism's own parameters")
    for name, each in _described().items():
        flag = f"--{name.replace('_', '-')}"
        group.add_argument(flag, type=float, dest=name, help=f"{each.help} ({each.citation})")


def _described() -> dict[str, Any]:
    return {each.name: each for name in mechanism_names() for each in parameters(mechanism_class(name))}


def add_rate_options(parser: argparse.ArgumentParser) -> None:
    """The sampling rate, given directly or through a size."""
    group = parser.add_argument_group("sampling rate")
    group.add_argument("--rate", type=float, metavar="Q", help="probability that a unit joins")
    group.add_argument("--size", type=int, metavar="n", help="units of the largest-rate label, public")
    group.add_argument("--expected-sample", type=float, metavar="m", help="q = m / n (default: M N / n)")


def sampling_plan(options: argparse.Namespace) -> SamplingPlan:
    """The plan that the options describe.

    Raises:
        UsageError: a number is out of range.
    """
    return SamplingPlan(
        scheme=Scheme(options.scheme),
        subsets=options.subsets,
        per_subset=options.per_subset or 1,
        unit_rows=options.per_subset is None,
        tokens=options.tokens,
        shots=options.shots_per_label,
    )


def mechanism(options: argparse.Namespace, required: bool = False) -> TokenMechanism:
    """The mechanism with the parameters given.

    Args:
        required: every parameter must be given (its noise will not be calibrated).

    Raises:
        UsageError: a parameter is out of range, belongs to another mechanism, or is missing.
    """
    chosen = mechanism_class(options.mechanism)
    own = [each.name for each in parameters(chosen)]
    given = {name: getattr(options, name) for name in _described() if getattr(options, name) is not None}
    if foreign := [name for name in given if name not in own]:
        raise UsageError(f"--{foreign[0].replace('_', '-')} is no parameter of '{options.mechanism}'.")
    if required and (missing := [name for name in own if name not in given and not _optional(chosen, name)]):
        raise UsageError(f"'{options.mechanism}' needs --{missing[0].replace('_', '-')}.")
    return chosen(**given)


def _optional(chosen: type[TokenMechanism], name: str) -> bool:
    # The parameter that calibration solves for comes first; the others have defaults that are worth keeping.
    described = [each for each in fields(chosen) if each.metadata]
    return described[0].name != name and next(e for e in described if e.name == name).default is not MISSING


def composition(options: argparse.Namespace, plan: SamplingPlan) -> Compose:
    """How the run composes, from --rate, or --size with --expected-sample.

    Raises:
        UsageError: no rate is given, or two that disagree.
    """
    rate = options.rate
    if options.size is not None:
        implied = min(1.0, (options.expected_sample or plan.expected_sample) / options.size)
        if rate is not None and abs(rate - implied) > 1e-9:
            raise UsageError(f"--rate {rate:g} disagrees with --size and --expected-sample, which give {implied:g}.")
        rate = implied
    elif options.expected_sample is not None:
        raise UsageError("--expected-sample needs --size.")
    if rate is None:
        raise UsageError("Give the sampling rate: --rate Q, or --size n (with --expected-sample m).")
    if not 0 < rate <= 1:
        raise UsageError("--rate must lie in (0, 1].")
    return lambda event: _one_label(plan, event, rate)


def _one_label(plan: SamplingPlan, event: EventOfSteps, rate: float) -> Composed:
    return Composed("label", (("each label", plan.label_events(event, rate)),))
