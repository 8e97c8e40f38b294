"""What experts may say of a run in step 2: a control for each setting of the spec, by its groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gradio as gr

from dpicl_ui.frame.controls import control, described, in_field, said
from dpicl_ui.frame.guard import PRIVATE
from dpicl_ui.frame.inputs import number
from dpicl_ui.frame.tree import el, panel
from mechanisms.data.headers import field_name
from mechanisms.discovery import Parameter, parameters
from mechanisms.runs.plan import Plan
from mechanisms.runs.spec import FLAGGED, Group, Recipe, RunSpec, Split
from mechanisms.sampling import Scheme
from mechanisms.steps import (
    TokenMechanism,
    Transform,
    mechanism_class,
    mechanism_names,
    transform_class,
    transform_names,
)

_ELSEWHERE = {
    "epsilon", "sizes", "count_epsilon", "kind", "writer", "reader", "relation", "label_words", "sentence", "shots",
    "mechanism", "transform", "parameters",
}  # fmt: skip
"""Settings that step 1 asks for, or that stand elsewhere in step 2."""
_NAMES = ("text_field", "label_field")
_TITLES = {
    Group.PRIVACY: "Delta",
    Group.TASK: "The prompt that classifies",
    Group.STAGES: "Stages",
    Group.TOKENS: "Token by token",
    Group.CAPS: "How much is read",
}
CHOICES: dict[str, list[tuple[str, str]]] = {
    "recipe": [
        ("Both: rows write with noise, token by token, and vote on drafts", Recipe.BOTH.value),
        ("Drafts: rows vote, with noise, on texts that the model wrote without them", Recipe.VOTE.value),
        ("Token by token, and nothing else: no vote, no score", Recipe.TOKENS.value),
    ],
    "split": [
        ("Rows: each takes part in one stage, and every stage has the whole epsilon", Split.ROLES.value),
        ("Epsilon: all rows take part in all stages", Split.EPSILON.value),
    ],
    "scheme": [
        ("One sample of rows for each demonstration (fast)", Scheme.PER_DEMONSTRATION.value),
        ("A new sample for every token (slow; amplifies privacy token by token)", Scheme.PER_TOKEN.value),
    ],
}
"""What the values of a setting are called here."""


def private_mechanisms() -> list[type[TokenMechanism]]:
    """The mechanisms that a curator may choose from; baselines do not look at the data, or do not protect it."""
    every = [mechanism_class(name) for name in mechanism_names()]
    return [each for each in every if each.uses_private_rows and not each.not_private]


def transforms() -> list[type[Transform]]:
    """The transforms that a curator may choose from, the one that does nothing first."""
    return [transform_class(name) for name in transform_names()]


def asked_parameters(owner: Any) -> list[Parameter]:
    """An owner's parameters but the one that is solved for, which is shown among the results instead."""
    return [each for each in parameters(owner) if each.name != getattr(owner, "calibrated", None)]


class ExpertSettings:
    """The components inside the accordion. `fields` are those of the spec's settings, by their names."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self._own: dict[str, dict[str, Any]] = {}
        self._groups: dict[str, gr.Column] = {}
        for group in (Group.STAGES, Group.TOKENS, Group.TASK, Group.CAPS, Group.PRIVACY):
            panel(el("p.small-head", _TITLES[group]))
            if group is Group.TOKENS:
                self._build_mechanisms()
            names = [each.name for each in FLAGGED if each.group is group and each.name not in _ELSEWHERE]
            with gr.Row(elem_classes="settings"):
                for name in names:
                    self.fields[name] = control(name, CHOICES.get(name, ()))
        shown = [self._of_transform, *self._groups.values()]
        for each in (self.mechanism, self.transform):
            each.input(self._showing, [self.mechanism, self.transform], shown, **PRIVATE)

    def _build_mechanisms(self) -> None:
        usual = RunSpec.model_fields["mechanism"].default
        self.mechanism = self._choice("mechanism", private_mechanisms())
        for mechanism in private_mechanisms():
            cited = f"{mechanism.citation}. Its noise is solved for and shown among the results."
            self._own_parameters(mechanism, cited, mechanism.name == usual)
        with gr.Column(visible=mechanism_class(usual).takes_transform) as self._of_transform:
            self.transform = self._choice("transform", transforms())
            for transform in transforms():
                self._own_parameters(transform, f"{transform.citation}. It costs no privacy.", False)

    def _choice(self, name: str, every: list[Any]) -> gr.Radio:
        usual = RunSpec.model_fields[name].default
        self.fields[name] = made = gr.Radio([(each.title, each.name) for each in every], value=usual, **described(name))
        return made

    def _own_parameters(self, owner: Any, cited: str, visible: bool) -> None:
        with gr.Column(visible=visible, elem_classes="own-parameters") as self._groups[owner.name]:
            panel(el("p.muted", cited))
            self._own[owner.name] = {each.flag: _component(each) for each in asked_parameters(owner)}

    def _showing(self, mechanism: str, transform: str) -> dict[Any, Any]:
        """Which components the present choice shows and hides."""
        takes = mechanism_class(mechanism).takes_transform
        shown = {mechanism, transform if takes and transform != "none" else mechanism}
        groups = {group: gr.Column(visible=name in shown) for name, group in self._groups.items()}
        return {self._of_transform: gr.Column(visible=takes), **groups}

    @property
    def inputs(self) -> list[Any]:
        return [*self.fields.values(), *(each for own in self._own.values() for each in own.values())]

    @property
    def outputs(self) -> list[Any]:
        """The components of `fresh`."""
        return [*self.inputs, self._of_transform, *self._groups.values()]

    @property
    def settled(self) -> list[Any]:
        return [event for each in self.inputs for event in settled(each)]

    def fresh(self) -> dict[Any, Any]:
        """Every setting as it is at first: for another data set."""
        return {each: each.value for each in self.inputs} | self._showing(self.mechanism.value, self.transform.value)

    def asked(self, values: Mapping[Any, Any]) -> dict[str, Any]:
        """Fields for `RunSpec.of`, of the components' values; what is left open, or hidden, is left out.

        Raises:
            UsageError: a parameter is no number, the shares are no pairs, or a name in prompts is too long.
        """
        chosen = {name: values[each] for name, each in self.fields.items()}
        chosen |= {name: field_name(chosen[name]) for name in _NAMES if str(chosen[name] or "").strip()}
        mechanism = mechanism_class(chosen["mechanism"])
        if not mechanism.takes_transform:
            chosen["transform"] = "none"
        own = {}
        for owner in (mechanism, transform_class(chosen["transform"])):
            for each in asked_parameters(owner):
                value = values[self._own[owner.name][each.flag]]
                if value not in ("", None) and value != each.default:
                    own[each.flag] = each.typed(number(each.label, value))
        return said(chosen) | ({"parameters": own} if own else {})

    def left_open(self, plan: Plan) -> dict[Any, Any]:
        """The empty fields with what a plan takes in their place."""
        values = {name: getattr(plan.spec, name) for name in self.fields} | {"instruction": plan.template.instruction}
        typed = ((name, each) for name, each in self.fields.items() if isinstance(each, gr.Textbox))
        return {each: gr.Textbox(placeholder=in_field(values[name])) for name, each in typed}


def settled(component: Any) -> list[Any]:
    if isinstance(component, gr.Textbox):
        return [component.blur, component.submit]
    return [component.release if isinstance(component, gr.Slider) else component.input]


def _component(each: Parameter) -> Any:
    words: dict[str, Any] = {"label": each.label, "info": f"{each.help} ({each.citation})"}
    if isinstance(each.default, bool):
        return gr.Checkbox(each.default, **words)
    return gr.Textbox("", placeholder=f"{each.default:g}", **words)
