"""Step 2's settings for experts: mechanism, transform, sampling; each parameter described by its owner."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.frame.guard import PRIVATE
from dpicl_ui.frame.tree import el, panel
from dpicl_ui.privacy.form import described, private_mechanisms, transforms
from mechanisms.runs.defaults import MECHANISM
from mechanisms.runs.request import SynthesisRequest
from mechanisms.sampling import SamplingPlan, Scheme
from mechanisms.steps import mechanism_class

SCHEMES = {
    Scheme.PER_DEMONSTRATION: "One sample of records for each demonstration (fast)",
    Scheme.PER_TOKEN: "A new sample for every token (slow; amplifies privacy token by token)",
    Scheme.DISJOINT: "Batches without overlap: no record serves twice (fast; good for several demonstrations)",
}
"""What each scheme is called here."""
_ROWS = [("One record a row (less noise)", True), ("Subsets of N records a row, as in Tang et al. 2024", False)]
_DISJOINT = (
    "Batches without overlap: a secret key sends every record to one batch for good, and each demonstration reads one "
    "batch. Nobody is drawn by chance, so sampling hides nobody; but a record pays for one demonstration only: more "
    "demonstrations for a label need no more noise."
)


class ExpertSettings:
    """Components of the accordion's inside; what does not apply to the choice made is hidden."""

    def __init__(self) -> None:
        self.own: list[gr.Number | gr.Checkbox] = []
        self._build_mechanisms()
        self._build_transforms()
        self._build_sampling()
        self._wire()

    def _build_mechanisms(self) -> None:
        mechanisms = private_mechanisms()
        self.mechanism = gr.Radio(
            [(each.title, each.name) for each in mechanisms], value=MECHANISM, label="Mechanism", elem_id="mechanism"
        )
        self._mechanisms: list[gr.Column] = []
        for mechanism in mechanisms:
            with gr.Column(visible=mechanism.name == MECHANISM, elem_classes="own-parameters") as group:
                panel(el("p.muted", f"{mechanism.citation}. Its noise is solved for and shown among the results."))
                self._build_parameters(mechanism)
            self._mechanisms.append(group)

    def _build_transforms(self) -> None:
        with gr.Column(visible=mechanism_class(str(self.mechanism.value)).takes_transform) as self._transform:
            self.transform = gr.Radio(
                [(each.title, each.name) for each in transforms()],
                value="none",
                label="Transform of each row before the noise",
                elem_id="transform",
            )
            self._transforms: list[gr.Column] = []
            for transform in transforms():
                with gr.Column(visible=False, elem_classes="own-parameters") as group:
                    panel(el("p.muted", f"{transform.citation}. It costs no privacy."))
                    self._build_parameters(transform)
                self._transforms.append(group)

    def _build_parameters(self, owner: type[Any]) -> None:
        for of, parameter in described():
            if of is owner:
                words: dict[str, Any] = {"label": parameter.label, "info": f"{parameter.help} ({parameter.citation})"}
                usual = parameter.default
                if isinstance(usual, bool):
                    self.own.append(gr.Checkbox(usual, **words))
                else:
                    self.own.append(gr.Number(float(usual), **words))

    def _build_sampling(self) -> None:
        self.scheme = gr.Radio(
            [(title, scheme.value) for scheme, title in SCHEMES.items()],
            value=SamplingPlan.scheme.value,
            label="Sampling",
            elem_id="scheme",
        )
        self._disjoint = panel(el("p.muted", _DISJOINT), visible=False)
        self.unit_rows = gr.Radio(_ROWS, value=SamplingPlan.unit_rows, label="Rows", elem_id="unit-rows")
        self.per_subset = gr.Number(
            2, label="Records in a subset (N)", precision=0, minimum=1, visible=False, elem_id="per-subset"
        )
        self.candidates = gr.Slider(
            4,
            200,
            SynthesisRequest.candidates,
            step=1,
            label="Candidate tokens (K)",
            info="The likeliest of public text alone. Fewer give noise less to choose from.",
            elem_id="candidates",
        )

    @property
    def settled(self) -> list[Any]:
        """Events after which the settings have new values."""
        typed = (self.per_subset, *(each for each in self.own if isinstance(each, gr.Number)))
        switches = (each for each in self.own if isinstance(each, gr.Checkbox))
        return [
            self.candidates.release,
            *(each.input for each in (self.mechanism, self.transform, self.scheme, self.unit_rows)),
            *(each.input for each in switches),
            *(each.blur for each in typed),
            *(each.submit for each in typed),
        ]

    def _showing(self, mechanism: str, transform: str) -> dict[Any, Any]:
        """What such a choice shows and hides."""
        names = [each.name for each in private_mechanisms()], [each.name for each in transforms()]
        return {
            self._transform: gr.Column(visible=mechanism_class(mechanism).takes_transform),
            **{
                group: gr.Column(visible=name == mechanism)
                for name, group in zip(names[0], self._mechanisms, strict=True)
            },
            **{
                group: gr.Column(visible=name == transform != "none")
                for name, group in zip(names[1], self._transforms, strict=True)
            },
        }

    def _wire(self) -> None:
        shown = [self._transform, *self._mechanisms, *self._transforms]
        for each in (self.mechanism, self.transform):
            each.input(self._showing, [self.mechanism, self.transform], shown, **PRIVATE)
        # `change`, since a plan that was found sets them too.
        self.scheme.change(
            lambda chosen: gr.HTML(visible=chosen == Scheme.DISJOINT.value), self.scheme, self._disjoint, **PRIVATE
        )
        self.unit_rows.change(lambda each: gr.Number(visible=not each), self.unit_rows, self.per_subset, **PRIVATE)
