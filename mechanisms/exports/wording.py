"""What is asked and what is answered: the task of a set, as every format of prompts and examples puts it.

A label answers a text. Where the task has outputs an output answers it, and labels are not shown, since a query has
none; a record of a schema answers its kind, and so does a text that stands alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mechanisms.demos.demo_set import DemoSet
from mechanisms.inference import QueryWords
from mechanisms.inference.prompts import one_line
from mechanisms.records import Demonstration, PromptTemplate

_KIND, _RECORD = "kind", "record"


@dataclass(frozen=True)
class Wording:
    """A task as questions and answers.

    Attributes:
        template: `text` names the question's field and `label` the answer's.
        question, answer: identifiers for them, "text" and "label" where the task is to find labels.
        pairs: of every demonstration, in the set's order.
    """

    template: PromptTemplate
    question: str
    answer: str
    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, demo_set: DemoSet) -> Wording:
        """The wording of a set."""
        template, made = demo_set.template, demo_set.demonstrations
        if demo_set.schema is not None or demo_set.completes:
            turned = replace(template, text=template.label, label=template.text, output=None)
            answer = _RECORD if demo_set.schema else "text"
            return cls(turned, _KIND, answer, tuple((each.label, each.text) for each in made))
        if template.output is not None:
            asked = replace(template, label=template.output, output=None)
            return cls(asked, "text", "output", tuple((each.text, each.output or "") for each in made))
        return cls(template, "text", "label", tuple((each.text, each.label) for each in made))

    @property
    def turned(self) -> bool:
        """Whether it is a kind that is answered: with a record, or with a text that stands alone."""
        return self.question == _KIND

    def on_lines(self) -> list[tuple[str, str]]:
        """The pairs for a prompt, where a line break ends a demonstration; a record is a line as it stands."""
        return [
            (one_line(question), answer if self.answer == _RECORD else one_line(answer))
            for question, answer in self.pairs
        ]

    def words(self) -> QueryWords:
        """The prompt that this app itself asks with."""
        return QueryWords(self.template, [Demonstration(*pair) for pair in self.on_lines()])
