"""The privacy certificate of a demo set, for people."""

from __future__ import annotations

from dpicl_ui.frame.cards import fact
from dpicl_ui.frame.tree import Tree, el, notice
from mechanisms.demos.demo_set import DemoSet
from mechanisms.exports.provenance import stated_facts
from mechanisms.records import PromptTemplate
from mechanisms.runs.preview import guarantee


def certificate(demo_set: DemoSet) -> list[Tree]:
    """What is claimed, on what it rests, and what a reader should know."""
    held = demo_set.certificate
    private = [] if held.private else notice(f"Not private: {held.reason}.", "bad")
    return [
        *private,
        el("p.guarantee", guarantee(held.claim, held.by_user)),
        el("dl.facts.two", *(fact(*each) for each in stated_facts(demo_set))),
        el("details", el("summary", "All parameters"), el("dl.facts.two", *_parameters(demo_set))),
    ]


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
