"""The planned run's settings as a file, for the same run from the command line."""

from __future__ import annotations

from typing import Any

import gradio as gr

from dpicl_ui.frame.downloads import File, download, sink
from dpicl_ui.frame.guard import PRIVATE, guarded
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.sessions import Sessions
from dpicl_ui.frame.tree import notice, panel
from dpicl_ui.privacy.state import PrivacyState
from mechanisms.errors import UsageError
from mechanisms.inference.models.listing import available_models
from mechanisms.runs.settings import settings

FILE_NAME = "settings.yaml"
NO_RUN = "No run with these settings yet: change them, or wait until they are calibrated."
"""Why nothing of the plan can be written down."""
_SAVED = (
    f"Saved by your browser. synthesize FILE --config {FILE_NAME} asks for the same run, which is charged as one of "
    "its own. The file names your columns and labels, and holds no row."
)


class SettingsFile:
    """A button, and what it says below it."""

    def __init__(self, sessions: Sessions, loader: ModelLoader) -> None:
        self._sessions, self._loader = sessions, loader
        with gr.Row(elem_classes="actions"):
            save = gr.Button("Settings for the command line", size="sm", elem_id="save-settings")
        self.notice = panel(elem_id="settings-notice")
        self.sink = sink()
        save.click(guarded(self.notice)(self.saved), None, [self.sink, self.notice], **PRIVATE)

    def saved(self, request: gr.Request) -> dict[Any, Any]:
        """The file of the run that is planned now.

        Raises:
            UsageError: no run is planned, or the command line cannot name one of its labels.
        """
        session = self._sessions.of(request)
        planned = session.of(PrivacyState).planned
        if planned is None:
            raise UsageError(NO_RUN)
        confirmed, name = planned.confirmed, self._loader.name
        named = name if name in [each.name for each in available_models()] else None
        text = settings(planned.request, confirmed.columns.mapping, confirmed.dataset.name, named)
        return {
            self.sink: download(session, File(FILE_NAME, "application/yaml", text.encode())),
            self.notice: notice(_SAVED, "good"),
        }
