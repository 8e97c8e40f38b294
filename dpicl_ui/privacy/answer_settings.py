"""Step 2's question who writes the answers, where rows are texts with answers."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.frame.guard import PRIVATE
from mechanisms.demos.demo_set import Answers, Outputs

_WHO = [
    ("Your rows, like the texts and within the same epsilon", Answers.PRIVATE.value),
    ("The model itself, from each released text: free, and your answers are not read", Answers.MODEL.value),
]
_SHORT = "A text that ends early leaves its answer more."


class AnswerSettings:
    """Components; `inputs` are what `PrivacyForm.read` reads."""

    def __init__(self) -> None:
        usual = Outputs()
        with gr.Column(visible=False) as self.body:
            self.answers = gr.Radio(_WHO, value=usual.answers.value, label="Who writes the answers?", elem_id="answers")
            self.tokens = gr.Slider(
                1,
                usual.max_tokens,
                usual.tokens,
                step=1,
                label="Of these tokens, kept for the answer",
                info=_SHORT,
                elem_id="answer-tokens",
            )
        self.answers.input(self._shown, self.answers, self.tokens, **PRIVATE)

    @property
    def inputs(self) -> list[Any]:
        """Who writes them, and their tokens."""
        return [self.answers, self.tokens]

    @property
    def settled(self) -> list[Any]:
        """Events after which there are new values."""
        return [self.answers.input, self.tokens.release]

    def _shown(self, answers: str) -> Any:
        return gr.Slider(visible=answers == Answers.PRIVATE)
