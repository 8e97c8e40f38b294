"""The page's look: its theme and content policy, and what comes and goes."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import gradio as gr

from dpicl_ui.assets import asset

# The page's look and its content policy: arguments of `launch()`.

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
"""The page declines the browser's offer to translate it, which would send private rows to whoever made the browser.

Gradio states the browser's language as the page's, which would have a screen reader read English words as another.
"""

SIGN_IN = f"""
<style>{asset("colours.css")}</style>
DP-ICL Studio. Any name will do; the password is the one that this server was started with.
"""
"""Above Gradio's form for signing in, which knows the theme and none of the page's styles."""


def theme() -> gr.themes.Base:
    """Calm neutrals over the custom properties of `colours.css`, which know light and dark; system fonts only."""
    made = gr.themes.Base(
        primary_hue=gr.themes.colors.stone,
        neutral_hue=gr.themes.colors.stone,
        font=["system-ui", "-apple-system", "Segoe UI", "sans-serif"],
        font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "monospace"],
        radius_size=gr.themes.sizes.radius_md,
        spacing_size=gr.themes.sizes.spacing_md,
    )
    widths = {"input_border_width": "1px", "button_border_width": "1px", "checkbox_label_border_width": "1px"}
    return made.set(**_both(_COLOURS | widths))


_COLOURS = {
    "body_background_fill": "var(--page)",
    "body_text_color": "var(--ink)",
    "body_text_color_subdued": "var(--muted)",
    "background_fill_primary": "var(--surface)",
    "background_fill_secondary": "var(--page)",
    "block_background_fill": "transparent",
    "block_border_color": "var(--line)",
    "border_color_primary": "var(--line)",
    "border_color_accent": "var(--ink)",
    "block_label_background_fill": "transparent",
    "block_label_text_color": "var(--muted)",
    "block_title_text_color": "var(--ink)",
    "block_info_text_color": "var(--muted)",
    "input_background_fill": "var(--field)",
    "input_border_color": "var(--line-strong)",
    "input_border_color_focus": "var(--ink)",
    "input_placeholder_color": "var(--muted)",
    "color_accent": "var(--ink)",
    "color_accent_soft": "var(--field)",
    "slider_color": "var(--ink)",
    "checkbox_background_color": "var(--field)",
    "checkbox_background_color_selected": "var(--check)",
    "checkbox_border_color": "var(--line-strong)",
    "checkbox_border_color_selected": "var(--check)",
    "checkbox_label_background_fill": "transparent",
    "checkbox_label_background_fill_hover": "var(--field)",
    "checkbox_label_background_fill_selected": "var(--field)",
    "checkbox_label_text_color": "var(--ink)",
    "checkbox_label_text_color_selected": "var(--ink)",
    "checkbox_label_border_color": "var(--line-strong)",
    "button_primary_background_fill": "var(--ink)",
    "button_primary_background_fill_hover": "var(--ink-soft)",
    "button_primary_text_color": "var(--surface)",
    "button_primary_border_color": "var(--ink)",
    "button_secondary_background_fill": "var(--surface)",
    "button_secondary_background_fill_hover": "var(--field)",
    "button_secondary_text_color": "var(--ink)",
    "button_secondary_border_color": "var(--line-strong)",
    "button_cancel_background_fill": "var(--surface)",
    "button_cancel_background_fill_hover": "var(--bad-soft)",
    "button_cancel_text_color": "var(--bad)",
    "button_cancel_border_color": "var(--bad)",
    "panel_background_fill": "transparent",
    "panel_border_color": "var(--line)",
}


def _both(colours: dict[str, str]) -> dict[str, Any]:
    known = inspect.signature(gr.themes.Base.set).parameters
    dark = {f"{name}_dark": value for name, value in colours.items()}
    return colours | {name: value for name, value in dark.items() if name in known}


def look() -> dict[str, Any]:
    """The arguments of `launch()` that make the page look and behave as it does."""
    styles = ("colours.css", "studio.css", "recipe.css", "replay.css", "picture.css", "scroll.css", "budget.css")
    css = "".join(map(asset, styles))
    return {"theme": theme(), "css": css, "head": HEAD, "footer_links": []}


# What comes and goes again soon stays in the page, without a face.
#
# Gradio takes what is not visible out of the page and builds it anew later. Where one call hides it and shows it
# within moments, the browser now and then loses the second: what must be there in the end is said once more by a
# call of its own.


def seen(yes: bool) -> bool | Literal["hidden"]:
    """The `visible` of a component that may change at any moment."""
    return True if yes else "hidden"
