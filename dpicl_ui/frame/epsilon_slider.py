"""A logarithmic slider for epsilon, between better privacy and better accuracy."""

from __future__ import annotations

import gradio as gr

from dpicl_ui.assets import asset

LOWEST, HIGHEST = 0.1, 10.0
"""What the slider settles on, in `assets/epsilon.js`."""
_TEMPLATE = """
<div class="epsilon">
  <div class="epsilon-value"><label for="NAME-number">epsilon</label>
    <input id="NAME-number" type="number" min="0.1" max="10" step="any" inputmode="decimal">
    <span class="epsilon-word"></span></div>
  <input type="range" min="0" max="200" step="1" aria-label="Epsilon, logarithmic from 0.1 to 10">
  <div class="epsilon-ticks"><span>0.1</span><span>0.3</span><span>1</span><span>3</span><span>10</span></div>
  <div class="epsilon-ends"><span>better privacy</span><span>better accuracy</span></div>
</div>
"""


def epsilon_slider(value: float = 1.0, name: str = "epsilon") -> gr.HTML:
    """The slider with the element id `name`; its value is epsilon, and it fires `release` when a new one is settled."""
    return gr.HTML(
        value=value,
        html_template=_TEMPLATE.replace("NAME", name),
        js_on_load=asset("epsilon.js"),
        apply_default_css=False,
        elem_id=name,
    )
