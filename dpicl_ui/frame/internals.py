"""Every use of Gradio's internals, which a minor release may change: no other module of the app uses them.

`RELEASE` is the Gradio release that they were checked against. After an upgrade, check them again and update it.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

import gradio as gr
import gradio.queueing
import gradio.route_utils
import gradio.routes
import gradio.utils
import gradio_client.utils  # type: ignore[import-untyped]
from gradio.route_utils import GradioMultiPartParser
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException

from mechanisms.errors import place_of

RELEASE = "6.31"

ASKED = tuple(f"/gradio_api/{route}" for route in ("queue/", "run/", "api/", "call/", "cancel", "reset"))
"""Routes that start or cancel a handler."""
UPLOAD = "/gradio_api/upload"
UNUSED = tuple(
    f"/gradio_api/{route}"
    for route in (
        "file", "proxy", "deep_link", "stream", "vibe", "process_recording", "component_server", "custom_component",
        "token", "run-history",
    )
)  # fmt: skip
"""Routes that this app does not use: for uploaded files, pages of other hosts, the state of a tab, the token of a
signed-in user, and features that it does not have."""
CHANGING = ("/logout", "/gradio_api/heartbeat")
"""Routes whose GET changes state: signing out, and the connection of an open page."""
TOO_LARGE = "Refused: larger than the maximum allowed size."
"""Gradio answers with status 413 if the error has exactly these words."""


def forget_shown(page: gr.Blocks, tab: str) -> None:
    """Drop Gradio's copy of the values that a tab has shown, which include preview rows and typed queries.

    Gradio keeps the copy of a closed tab until 10,000 other tabs were opened, so that a link can open the page again.
    """
    held = page.state_holder
    with held.lock:
        held.session_data.pop(tab, None)
        held.time_last_used.pop(tab, None)


def progress_on(page: gr.Blocks, component: gr.HTML) -> None:
    """Make all handlers send their progress to one component, which should be the page's first and not display it.

    Otherwise every update of a handler makes Gradio write the progress into each component that any handler has
    changed, and search the tree of the whole page for each of these components.
    """
    for handler in page.fns.values():
        handler.show_progress_on = [component]


# Gradio sends the page only the difference between what a handler yields and what it yielded before.
_edits = gradio.utils.diff


def difference(old: Any, new: Any) -> list[Any]:
    """Gradio's edits if they lead from the old value to the new one, otherwise one edit that replaces the whole value.

    When two lists inside a value become shorter, Gradio's edits delete the wrong elements.
    """
    edits: list[Any] = _edits(old, new)  # type: ignore[no-untyped-call]
    try:
        right = gradio_client.utils.apply_diff(old, edits) == new
    except (IndexError, KeyError, TypeError):
        right = False
    return edits if right else [["replace", [], new]]


def is_upload(path: Path) -> bool:
    """Whether a path is a plain file that arrived as an upload. A request may name any path."""
    try:
        plain = path.is_file() and not path.is_symlink()
        return plain and path.resolve().parent.parent == Path(gradio.utils.get_upload_folder()).resolve()
    except (OSError, ValueError):  # no path at all
        return False


class TidyParser(GradioMultiPartParser):
    """Gradio's parser of uploads, which also deletes each file that it does not pass on.

    Gradio writes every part with a file name to the disk, even if no handler requested it, and leaves it there.
    """

    async def parse(self) -> FormData:
        """Parse a form; one that cannot be read is refused (400)."""
        taken = list[Any]()
        try:
            form = await super().parse()
            taken = [part.file for part in map(_file, form.getlist("files"))]
            return form
        except MultiPartException:
            raise
        except Exception:
            raise MultiPartException("The upload cannot be read.") from None
        finally:
            for file in self._files_to_close_on_error:
                if file not in taken:
                    file.close()
                    with suppress(OSError):
                        os.unlink(file.name)


def _file(part: UploadFile | str) -> UploadFile:
    if isinstance(part, str):
        raise MultiPartException("An uploaded file must have a name.")
    if part.filename and PurePath(part.filename).name in ("", ".."):
        raise MultiPartException("This is not a file name.")
    return part


# Errors in one line. Gradio and uvicorn log tracebacks with exception messages, which may quote a cell, and give the
# sender of the request no message.

_log = logging.getLogger(__name__)
_payload = gradio.utils.error_payload
_MISFIT = "Nothing was done: the request does not fit the page. Reload the page, and try again."


class _OneLine:
    """Replaces the module `traceback` in Gradio's modules."""

    @staticmethod
    def print_exc() -> None:
        error = sys.exception()
        if isinstance(error, Exception):
            _log.error("a request failed: %s", place_of(error))


class _WithoutTraceback(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, Exception):
            record.msg, record.args = "a request failed: %s", (place_of(error),)
            record.exc_info = record.exc_text = None
        return True


def error_answer(error: BaseException | None, show_error: bool) -> dict[str, Any]:
    """Gradio's answer to the sender of a request; if it has no error message, one is added."""
    content = dict(_payload(error, show_error))
    if isinstance(error, Exception) and content["error"] is None:
        content["error"] = _MISFIT
    return content


def replace_in_gradio() -> None:
    """Install these replacements in Gradio, for this process."""
    gradio.route_utils.GradioMultiPartParser = TidyParser  # type: ignore[misc]
    gradio.utils.diff = difference
    gradio.utils.error_payload = error_answer
    gradio.queueing.error_payload = error_answer  # type: ignore[attr-defined]
    for module in (gradio.queueing, gradio.routes, gradio.route_utils):
        module.traceback = _OneLine  # type: ignore[attr-defined]
    logging.getLogger("uvicorn.error").addFilter(_WithoutTraceback())
