"""Parameters of mechanisms and transforms in a form: their components, their values, and what is made of these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import gradio as gr

from dpicl_ui.frame.inputs import number
from mechanisms.discovery import Parameter, parameters

Described = Sequence[tuple[type[Any], Parameter]]
"""Parameters with their owners, in the order of a form."""
T = TypeVar("T")


def described(owners: Iterable[type[Any]]) -> list[tuple[type[Any], Parameter]]:
    """All parameters of the owners."""
    return [(owner, each) for owner in owners for each in parameters(owner)]


def components(owner: type[Any], asked: Described) -> list[gr.Number | gr.Checkbox]:
    """The components for an owner's parameters."""
    return [_component(each) for of, each in asked if of is owner]


def _component(each: Parameter) -> gr.Number | gr.Checkbox:
    words: dict[str, Any] = {"label": each.label, "info": f"{each.help} ({each.citation})"}
    if isinstance(each.default, bool):
        return gr.Checkbox(each.default, **words)
    return gr.Number(float(each.default), **words)


def numbers(asked: Described, values: Sequence[Any]) -> tuple[float, ...]:
    """The components' values as numbers.

    Raises:
        UsageError: one is missing or not a number.
    """
    return tuple(number(each.label, value) for (_, each), value in zip(asked, values, strict=True))


def made(owner: type[T], asked: Described, values: Sequence[float]) -> T:
    """The owner with its own parameters' values.

    Raises:
        UsageError: a value is out of range.
    """
    pairs = zip(asked, values, strict=True)
    return owner(**{each.name: type(each.default)(value) for (of, each), value in pairs if of is owner})
