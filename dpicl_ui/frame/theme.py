"""The page's look and its content policy: arguments of `launch()`."""

from __future__ import annotations

import inspect
from typing import Any

import gradio as gr

from dpicl_ui.assets import asset

_POLICY = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self'; "
    "form-action 'self'; base-uri 'self'; object-src 'none'"
)
HEAD = f"""
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="google" content="notranslate">
<script>
document.documentElement.translate = false;
{{
  const page = document.documentElement, english = () => {{ if (page.lang !== "en") page.lang = "en"; }};
  new MutationObserver(english).observe(page, {{ attributeFilter: ["lang"] }});
  english();
}}
</script>
"""
"""The head of the page. It asks the browser not to translate the page: a translation would send private rows to the
maker of the browser.

Gradio sets the page's language to the browser's. The script sets it back to English, because a screen reader would
otherwise read the English text in the pronunciation of another language.
"""

SIGN_IN = f"""
<style>{asset("colours.css")}</style>
DP-ICL Studio. Any name will do; the password is the one that this server was started with.
"""
"""The text above Gradio's sign-in form, which has the theme but none of the page's styles."""


_COLOURS = {
    "--page": "body_background_fill background_fill_secondary",
    "--surface": "background_fill_primary button_primary_text_color button_secondary_background_fill "
    "button_cancel_background_fill",
    "--field": "input_background_fill color_accent_soft checkbox_background_color "
    "button_secondary_background_fill_hover checkbox_label_background_fill_hover "
    "checkbox_label_background_fill_selected",
    "--ink": "body_text_color border_color_accent block_title_text_color input_border_color_focus color_accent "
    "slider_color checkbox_label_text_color checkbox_label_text_color_selected button_primary_background_fill "
    "button_primary_border_color button_secondary_text_color",
    "--ink-soft": "button_primary_background_fill_hover",
    "--muted": "body_text_color_subdued block_label_text_color block_info_text_color input_placeholder_color",
    "--line": "block_border_color border_color_primary panel_border_color",
    "--line-strong": "input_border_color checkbox_border_color checkbox_label_border_color "
    "button_secondary_border_color",
    "--check": "checkbox_background_color_selected checkbox_border_color_selected",
    "--bad": "button_cancel_text_color button_cancel_border_color",
    "--bad-soft": "button_cancel_background_fill_hover",
}
"""Gradio's theme variables, by the custom property of `colours.css` that is their value."""
_OTHERS = {
    "transparent": "block_background_fill block_label_background_fill checkbox_label_background_fill "
    "panel_background_fill",
    "1px": "input_border_width button_border_width checkbox_label_border_width",
}


def theme() -> gr.themes.Base:
    """Neutral colours from the custom properties of `colours.css`, in light and dark; system fonts only."""
    made = gr.themes.Base(
        primary_hue=gr.themes.colors.stone,
        neutral_hue=gr.themes.colors.stone,
        font=["system-ui", "-apple-system", "Segoe UI", "sans-serif"],
        font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "monospace"],
        radius_size=gr.themes.sizes.radius_md,
        spacing_size=gr.themes.sizes.spacing_md,
    )
    values = {f"var({colour})": names for colour, names in _COLOURS.items()} | _OTHERS
    light = {name: value for value, names in values.items() for name in names.split()}
    known = inspect.signature(gr.themes.Base.set).parameters
    return made.set(**light, **{dark: light[each] for each in light if (dark := f"{each}_dark") in known})


def launch_options() -> dict[str, Any]:
    """The arguments of `launch()` that make the page look and behave as it does."""
    return {"theme": theme(), "css": asset("colours.css") + asset("studio.css"), "head": HEAD, "footer_links": []}
