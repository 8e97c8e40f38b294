"""Errors in one line, in the log and in answers.

Gradio and uvicorn log tracebacks with exception messages, which may quote a cell, and answer the sender with nothing.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import gradio.queueing
import gradio.route_utils
import gradio.routes
import gradio.utils

from mechanisms.errors import place_of

_log = logging.getLogger(__name__)
_payload = gradio.utils.error_payload
_SAID = "Nothing was done: the values do not fit what was asked for. Reload the page, and try again."


class _OneLine:
    """Replaces the module `traceback` in Gradio's modules."""

    @staticmethod
    def print_exc() -> None:
        error = sys.exception()
        if isinstance(error, Exception):
            _log.error("a request failed: %s", place_of(error))


class _WithoutTraceback(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the traceback by the place of the error."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, Exception):
            record.msg, record.args = "a request failed: %s", (place_of(error),)
            record.exc_info = record.exc_text = None
        return True


def told(error: BaseException | None, show_error: bool) -> dict[str, Any]:
    """Gradio's answer to the sender, with one sentence if it has none."""
    content = dict(_payload(error, show_error))
    if isinstance(error, Exception) and content["error"] is None:
        content["error"] = _SAID
    return content


def log_in_one_line() -> None:
    """Install the replacements in this process."""
    gradio.utils.error_payload = told
    gradio.queueing.error_payload = told  # type: ignore[attr-defined]
    for module in (gradio.queueing, gradio.routes, gradio.route_utils):
        module.traceback = _OneLine  # type: ignore[attr-defined]
    logging.getLogger("uvicorn.error").addFilter(_WithoutTraceback())
