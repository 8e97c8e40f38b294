"""What Gradio remembers of a tab: all that its page has shown, rows of a preview and typed questions among it.

It keeps that after the tab has closed, for the next 10,000 tabs, so that a page could be opened again by a link. Here
no page can, and a closed tab's rows have no business in memory.
"""

from __future__ import annotations

import threading

import gradio as gr

_LATE = 30.0
"""Seconds after which what was still under way when the tab closed has ended."""


def forget_shown(page: gr.Blocks, tab: str) -> None:
    """Drop what Gradio remembers of a tab, now and again after half a minute."""
    _drop(page, tab)
    late = threading.Timer(_LATE, _drop, (page, tab))
    late.daemon = True
    late.start()


def _drop(page: gr.Blocks, tab: str) -> None:
    held = page.state_holder
    with held.lock:
        held.session_data.pop(tab, None)
        held.time_last_used.pop(tab, None)
