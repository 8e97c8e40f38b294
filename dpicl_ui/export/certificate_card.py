"""The privacy certificate of a demo set, for people."""

from __future__ import annotations

from dpicl_ui.frame.cards import fact
from dpicl_ui.frame.tree import Tree, el, notice
from mechanisms.records import PromptTemplate, unit_in_words
from mechanisms.steps import mechanism_class, mechanism_names
from mechanisms.studio.synthesis.demo_set import DemoSet
from mechanisms.studio.synthesis.preview import guarantee

_SHARED = {"roles": "units, each has one role for good", "epsilon": "epsilon, every unit takes part in each"}


def certificate(demo_set: DemoSet) -> list[Tree]:
    """What is claimed, on what it rests, and what a reader should know."""
    held = demo_set.certificate
    claim = held.claim
    before_epsilon, before_delta = held.spent_before
    spent = f"epsilon {before_epsilon:.3g}, delta {before_delta:.2g}" if before_epsilon else "nothing"
    shown = f"yes ({'; '.join(held.shown)}): later choices may depend on the data" if held.shown else "no"
    private = [] if held.private else notice(f"Not private: {held.reason}.", "bad")
    return [
        *private,
        el("p.guarantee", guarantee(claim, held.by_user)),
        el(
            "dl.facts.two",
            fact("Epsilon", f"{claim.epsilon:.4g}", f"claimed by {claim.accountant}"),
            fact("Checked", f"{claim.check:.4g}", f"second accountant, {claim.check_accountant}"),
            fact("Delta", f"{claim.delta:.2g}"),
            fact("Protected unit", unit_in_words(held.unit), "neighbouring data sets differ by adding or removing it"),
            fact("Mechanism", _mechanism(held.mechanism)),
            *_division(demo_set),
            fact("Taken as public", ", ".join(held.public_inputs), "besides the parameters and the prompt"),
            fact("Clean values known to the curator", shown),
            fact("Spent before on the same data set", spent),
            fact("Model", demo_set.model_id, f"sha256 {demo_set.model_sha256[:16]}…"),
        ),
        el("details", el("summary", "All parameters"), el("dl.facts.two", *_parameters(demo_set))),
    ]


def _division(demo_set: DemoSet) -> list[Tree]:
    held = demo_set.certificate
    if not demo_set.stages:
        return [fact("Sampling", held.scheme, "" if held.transform == "none" else f"transform: {held.transform}")]
    stages = ", ".join(f"{each.name} ({each.role:.0%} of the units)" for each in demo_set.stages)
    return [fact("Stages", stages, f"what they share: {_SHARED.get(held.scheme, held.scheme)}")]


def _mechanism(name: str) -> str:
    return mechanism_class(name).title if name in mechanism_names() else name


def _parameters(demo_set: DemoSet) -> list[Tree]:
    shown = []
    for name, value in demo_set.certificate.parameters.items():
        shown.append(fact(name.replace("_", " "), _value(value)))
    return shown


def _value(value: object) -> str:
    if isinstance(value, dict):
        inner = {name: f"({_value(each)})" if isinstance(each, dict) else _value(each) for name, each in value.items()}
        return ", ".join(f"{name}: {words}" for name, words in inner.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def task(template: PromptTemplate, labels: tuple[str, ...]) -> list[Tree]:
    """The prompt that goes with a set."""
    return [
        el("h3", "The task"),
        el(
            "dl.facts",
            fact("Instruction", template.instruction),
            fact("Labels", ", ".join(labels)),
            *([fact("Answer", template.output)] if template.output else []),
        ),
    ]
