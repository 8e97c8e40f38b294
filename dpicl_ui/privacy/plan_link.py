"""A plan as a link: the settings of step 2, as they stand in the page's form, behind a `#` that no server is sent.

The names are those of the settings file. What names columns, labels or the data set, and the prompt that lists them,
is left out: a link is pasted into letters, and serves other data as well.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

import gradio as gr

from dpicl_ui.frame.epsilon_slider import HIGHEST, LOWEST
from dpicl_ui.frame.numbers import number
from dpicl_ui.privacy.form import PrivacyForm, described
from mechanisms.accounting import PrivacyTarget
from mechanisms.errors import UsageError
from mechanisms.parameters import Parameter
from mechanisms.runs.recipe import Stage

LONGEST = 4000
"""Characters of a link's plan."""
MOST_SUBSETS = 10_000
"""The slider of M grows with a plan that was found, up to here in a link."""
_VERSION = ("plan", "1")
_PROMPT = ("instruction", "text-field", "label-field")
_WRITING = (
    "epsilon", "delta", "mechanism", "scheme", "unit-rows", "subsets", "per-subset", "tokens", "shots-per-label",
    "best-of", "candidates", "max-record-tokens", *_PROMPT, "answers", "output-tokens", "transform",
)  # fmt: skip
_STAGES = ("split", "drafts", "rounds", "sets", "draft-tokens", *(f"share.{stage}" for stage in Stage))
_UNREADABLE = "This link cannot be read, and nothing was taken from it: ask for it again, or for the settings file."


def names() -> list[str]:
    """What a link calls each component of `PrivacyStep.form`, in its order."""
    return [*_WRITING, *_own(), "recipe", "no-score", "by-hand", *_STAGES]


def written(values: Sequence[Any]) -> str:
    """The plan of the form's values: what they have no use for is left out, and the prompt.

    Raises:
        UsageError: a number is missing or not a number.
    """
    form = PrivacyForm.read(*values)
    given = dict(zip(names(), values, strict=True))
    unused = {*_PROMPT, *(() if form.recipe.stages else _STAGES)}
    used = {form.mechanism, form.transform}
    unused |= {name for name, (owner, _) in _own().items() if owner not in used}
    return urlencode([_VERSION, *((name, _text(value)) for name, value in given.items() if name not in unused)])


def read(plan: object, form: Sequence[Any]) -> dict[str, Any]:
    """The values that a plan names, by the names of `names`; checked like what is typed into the form.

    Args:
        plan: what came with the page's address; anything at all.
        form: the components.

    Raises:
        UsageError: it is no plan, or a value is none that the form takes; nothing of it is to be used.
    """
    if not isinstance(plan, str) or len(plan) > LONGEST:
        raise UsageError(_UNREADABLE)
    try:
        version, *pairs = parse_qsl(plan, strict_parsing=True, errors="strict", max_num_fields=len(form) + 1)
    except ValueError:
        raise UsageError(_UNREADABLE) from None
    components = {name: each for name, each in zip(names(), form, strict=True) if name not in _PROMPT}
    given = dict(pairs)
    if version != _VERSION or len(given) < len(pairs) or not components.keys() >= given.keys():
        raise UsageError(_UNREADABLE)
    values = {name: _value(name, components[name], text) for name, text in given.items()}
    _check([values.get(name, each.value) for name, each in zip(names(), form, strict=True)])
    return values


def _own() -> dict[str, tuple[str, Parameter]]:
    """Parameters of mechanisms and transforms by their names here, each with its owner's."""
    return {f"{owner.name}.{each.flag}": (owner.name, each) for owner, each in described()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _value(name: str, component: Any, text: str) -> Any:
    """What a component would hold."""
    if isinstance(component, gr.Radio):
        known = {_text(value): value for _, value in component.choices}
        if text not in known:
            raise UsageError(f"The link's '{name}' is not among the choices here, so nothing was taken from it.")
        return known[text]
    if isinstance(component, gr.Checkbox):
        if text not in ("true", "false"):
            raise UsageError(f"The link's '{name}' is neither true nor false, so nothing was taken from it.")
        return text == "true"
    value = number(f"The link's '{name}'", text)
    lowest, highest = _bounds(name, component)
    if not lowest <= value <= highest:
        raise UsageError(f"The link's '{name}' is not in {lowest:g} to {highest:g}: nothing was taken from it.")
    return value


def _bounds(name: str, component: Any) -> tuple[float, float]:
    if name == "epsilon":
        return LOWEST, HIGHEST
    if name == "subsets":
        return 1, MOST_SUBSETS
    if isinstance(component, gr.Slider):
        return component.minimum, component.maximum
    if name in (own := _own()):
        return own[name][1].low, own[name][1].high
    return -1e9, 1e9


def _check(values: list[Any]) -> None:
    """Refuse what no data set could be planned with.

    Raises:
        UsageError: a value is out of range.
    """
    form = PrivacyForm.read(*values)
    PrivacyTarget(form.epsilon, form.delta)
    form.chosen_mechanism()
    form.chosen_transform()
