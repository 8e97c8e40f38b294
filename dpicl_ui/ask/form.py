"""The settings of "Ask privately": one value, the request that it describes, and its panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from dpicl_ui.frame import parameters
from dpicl_ui.frame.guard import PRIVATE
from dpicl_ui.frame.inputs import epsilon_slider, number, whole
from dpicl_ui.frame.tree import el, panel
from mechanisms.accounting import PrivacyTarget
from mechanisms.answers.request import AnswerRequest
from mechanisms.discovery import Parameter
from mechanisms.errors import UsageError
from mechanisms.queries import QueryMechanism, Retrieval, query_mechanism_class, query_mechanism_names
from mechanisms.records import PromptTemplate, answer_template

# The settings of "Ask privately" as one value, and the request that they describe.


def query_mechanisms() -> list[type[QueryMechanism]]:
    """The mechanisms to choose from, those that answer with a label first."""
    return [query_mechanism_class(name) for name in query_mechanism_names()]


def described() -> list[tuple[type[QueryMechanism], Parameter]]:
    """The parameters that are asked for, each with its owner: the order of `AskForm.parameters`.

    The noise is not among them: it follows from epsilon.
    """
    return [(owner, each) for owner, each in parameters.described(query_mechanisms()) if each.name != "noise"]


@dataclass(frozen=True)
class AskForm:
    """Everything that fixes a reservation; public.

    Attributes:
        instruction, text_name, label_name: of the prompt; empty for the usual ones.
        parameters: values of all mechanisms' parameters, in the order of `described`.
    """

    epsilon: float
    mechanism: str
    queries: int
    delta: float
    shards: int
    neighbours: int
    retrieval: str
    answer_tokens: int
    instruction: str
    text_name: str
    label_name: str
    parameters: tuple[float, ...]

    @classmethod
    def read(cls, *values: Any) -> AskForm:
        """The form from its components' values, in the order of the fields.

        Raises:
            UsageError: a number is missing or not a number.
        """
        epsilon, mechanism, queries, delta, shards, neighbours, retrieval, tokens, *rest = values
        instruction, text_name, label_name, *own = rest
        return cls(
            number("Epsilon", epsilon),
            str(mechanism),
            whole("The number of questions", queries),
            number("Delta", delta),
            whole("The number of groups", shards),
            whole("The number of examples", neighbours),
            str(retrieval),
            whole("The length of an answer", tokens),
            str(instruction or "").strip(),
            str(text_name or "").strip(),
            str(label_name or "").strip(),
            parameters.numbers(described(), own),
        )

    @property
    def open_answers(self) -> bool:
        """Answers are words, and labels stay private."""
        return query_mechanism_class(self.mechanism).open_answers

    def request(self, labels: tuple[str, ...], by_user: bool, field_names: tuple[str, str]) -> AnswerRequest:
        """The calibrated request.

        Args:
            labels: the public label set; not used for open answers.
            by_user: the unit is all rows of one user.
            field_names: how prompts call text and label, unless the form says otherwise.

        Raises:
            UsageError: a value is out of range.
        """
        if not self.open_answers and len(labels) < 2:
            raise UsageError("Votes need at least two labels: choose them in step 1, or ask for answers in words.")
        labels = () if self.open_answers else labels
        return AnswerRequest(
            template=self._template(labels, field_names),
            mechanism=parameters.made(query_mechanism_class(self.mechanism), described(), self.parameters),
            target=PrivacyTarget(self.epsilon, self.delta),
            queries=self.queries,
            labels=labels,
            by_user=by_user,
            retrieval=Retrieval.THRESHOLD if self.open_answers else Retrieval(self.retrieval),
            shards=self.shards,
            neighbours=self.neighbours,
            answer_tokens=self.answer_tokens,
        ).calibrated()

    def _template(self, labels: tuple[str, ...], field_names: tuple[str, str]) -> PromptTemplate:
        text = self.text_name or field_names[0]
        label = self.label_name or (field_names[1] if labels else "Answer")
        usual = answer_template(labels, text, label)
        return PromptTemplate(self.instruction or usual.instruction, usual.text, usual.label)


# The settings of "Ask privately": what is asked for, how much privacy, how many questions, and who answers.

_LABELS_PUBLIC = "These label names become public: votes are shown by label. How many rows a label has stays private."
_WHO = [
    ("The language model, from each group's examples", Retrieval.THRESHOLD.value),
    ("The examples' own labels, without any language model (fast)", Retrieval.LABELS_ONLY.value),
]


def _title(mechanism: type[QueryMechanism]) -> str:
    kind = "An answer in words" if mechanism.open_answers else "One of the labels"
    return f"{kind} ({mechanism.title.lower()})"


class AskSettings:
    """Components of the settings; what does not apply to the choice made is hidden. `form` is what `AskForm` reads."""

    def __init__(self) -> None:
        self.own: list[Any] = []
        with gr.Column(elem_classes="card"):
            self._build_budget()
        with gr.Accordion("For experts", open=False, elem_classes="card"):
            self._build_expert()
        with gr.Accordion("The prompt", open=False, elem_classes="card"):
            self._build_prompt()
        self.form = [
            self.epsilon, self.mechanism, self.queries, self.delta, self.shards, self.neighbours, self.retrieval,
            self.tokens, self.instruction, self.text_name, self.label_name, *self.own,
        ]  # fmt: skip
        self._wire()

    def _build_budget(self) -> None:
        mechanisms = query_mechanisms()
        panel(
            el("h2", "Ask your data, one question at a time"),
            el(
                "p.lead",
                "Small groups of your rows (shards) each answer a question; only a noisy summary comes out. Nothing "
                "has to be generated first. All questions share one price, paid in advance.",
            ),
        )
        self.mechanism = gr.Radio(
            [(_title(each), each.name) for each in mechanisms],
            value=mechanisms[0].name,
            label="What should an answer be?",
            elem_id="ask-mechanism",
        )
        with gr.Column(elem_classes="own-parameters") as self._labels:
            self.labels = panel(elem_id="ask-labels")
            self.labels_public = gr.Checkbox(label=_LABELS_PUBLIC, elem_id="ask-labels-public")
        self.epsilon = epsilon_slider(4.0, "ask-epsilon")
        self.queries = gr.Slider(
            1,
            50,
            5,
            step=1,
            label="Questions that every row can pay for",
            info="More questions for the same epsilon mean more noise in each answer.",
            elem_id="ask-queries",
        )

    def _build_expert(self) -> None:
        with gr.Row():
            self.shards = gr.Number(
                AnswerRequest.shards, label="Groups (shards)", info="Each row has one for good.", elem_id="ask-shards"
            )
            self.neighbours = gr.Number(
                AnswerRequest.neighbours,
                label="Examples a group",
                info="The nearest of those that pay.",
                elem_id="ask-neighbours",
            )
            self.delta = gr.Number(1e-5, label="Delta", info="Well under 1 / number of rows.", elem_id="ask-delta")
        self.retrieval = gr.Radio(_WHO, value=_WHO[0][1], label="Who votes?", elem_id="ask-retrieval")
        self.tokens = gr.Number(
            AnswerRequest.answer_tokens, label="Longest answer (tokens)", visible=False, elem_id="ask-tokens"
        )
        self._own_groups: list[gr.Column] = []
        for mechanism in query_mechanisms():
            with gr.Column(visible=mechanism.name == self.mechanism.value, elem_classes="own-parameters") as group:
                self.own += parameters.components(mechanism, described())
            self._own_groups.append(group)

    def _build_prompt(self) -> None:
        usual = "as usual"
        self.instruction = gr.Textbox(label="Instruction", placeholder=usual, lines=2, elem_id="ask-instruction")
        with gr.Row():
            self.text_name = gr.Textbox(label="Name of the text field", placeholder=usual, elem_id="ask-text-name")
            self.label_name = gr.Textbox(label="Name of the answer field", placeholder=usual, elem_id="ask-label-name")
        panel(el("p.muted", "All of this is public. Leave a field empty for the usual words."))

    @property
    def settled(self) -> list[Any]:
        """Events after which the settings have new values."""
        typed = (self.shards, self.neighbours, self.delta, self.tokens, *self.own)
        return [
            self.epsilon.release,
            self.queries.release,
            self.mechanism.input,
            self.retrieval.input,
            *(each.blur for each in typed),
            *(each.blur for each in (self.instruction, self.text_name, self.label_name)),
            *(each.submit for each in typed),
        ]

    def _wire(self) -> None:
        in_words = {each.name for each in query_mechanisms() if each.open_answers}
        self.mechanism.input(
            lambda chosen: [
                gr.Column(visible=chosen not in in_words),
                gr.Radio(visible=chosen not in in_words),
                gr.Number(visible=chosen in in_words),
                *(gr.Column(visible=each.name == chosen) for each in query_mechanisms()),
            ],
            self.mechanism,
            [self._labels, self.retrieval, self.tokens, *self._own_groups],
            **PRIVATE,
        )
