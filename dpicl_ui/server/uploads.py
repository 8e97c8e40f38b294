"""What arrives as an upload and is none: files under another name, without an end, or in a form that is no form.

Gradio's reader puts every part that has a file's name on the disk, hands on those it has been asked for, and forgets
the others there.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import PurePath
from typing import Any

import gradio.route_utils
from gradio.route_utils import GradioMultiPartParser
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException

_FIELD = "files"
"""The one under which Gradio's page sends files."""


class TidyParser(GradioMultiPartParser):
    """Gradio's reader of uploads, which leaves on the disk what it hands on, and nothing else."""

    async def parse(self) -> FormData:
        """See Gradio; a form that cannot be read is refused (400)."""
        taken = list[Any]()
        try:
            form = await super().parse()
            taken = [part.file for part in map(_file, form.getlist(_FIELD))]
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
        raise MultiPartException("A file has a name.")
    if part.filename and PurePath(part.filename).name in ("", ".."):
        raise MultiPartException("That is no name of a file.")
    return part


def leave_no_parts() -> None:
    """From now on, in this process, uploads are read in this way."""
    gradio.route_utils.GradioMultiPartParser = TidyParser  # type: ignore[misc]
