"""One line in the log for a defect: Gradio and its server print tracebacks, with messages that may quote a cell."""

from __future__ import annotations

import logging
import sys

import gradio.queueing
import gradio.route_utils
import gradio.routes

from mechanisms.errors import place_of

_log = logging.getLogger(__name__)


class _OneLine:
    """Stands in the place of the module `traceback` where Gradio prints."""

    @staticmethod
    def print_exc() -> None:
        error = sys.exception()
        if isinstance(error, Exception):
            _log.error("a request failed: %s", place_of(error))


class _WithoutTraceback(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        """Says where it broke, in the record's own line."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, Exception):
            record.msg, record.args = "a request failed: %s", (place_of(error),)
            record.exc_info = record.exc_text = None
        return True


def log_in_one_line() -> None:
    """From now on, in this process."""
    for module in (gradio.queueing, gradio.routes, gradio.route_utils):
        module.traceback = _OneLine  # type: ignore[attr-defined]
    logging.getLogger("uvicorn.error").addFilter(_WithoutTraceback())
