"""German beside English: a button, and a catalogue for the browser, which translates what it shows.

The words come from every layer, with numbers in them, and the command line says the same ones: they are made in English
once, and translated where they are read. No other service sees the page: the browser's own offer to translate would
send it, private rows included, to whoever made the browser, and is turned off (`theme.HEAD`).
"""

from __future__ import annotations

import gradio as gr

from dpicl_ui.frame.guard import PRIVATE
from dpicl_ui.frame.tree import drawn
from dpicl_ui.languages import german


def language_switch() -> gr.HTML:
    """The button; it asks for the catalogue when it is first needed."""
    switch = drawn("language.js", None, elem_id="language")
    switch.expand(german, None, switch, queue=False, **PRIVATE)
    return switch
