"""DP-ICL Studio: settings, build, launch."""

import os
import sys

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.theme import look
from dpicl_ui.page import build
from dpicl_ui.server.elsewhere import reader_elsewhere
from dpicl_ui.server.serving import serving
from mechanisms.errors import StudioError
from mechanisms.studio.data.table import MAX_BYTES


def main() -> int:
    """Serve the app; the model loads meanwhile. Gives the exit code."""
    os.umask(0o077)  # an upload is on the disk for a moment: for this account alone
    try:
        served, elsewhere = serving(), reader_elsewhere()
    except StudioError as error:
        sys.stderr.write(f"app: {error}\n")
        return error.exit_code
    loader = ModelLoader(os.environ.get("DPICL_MODEL", "embedded"), served.choosable)
    loader.start()
    build(served.ledgers, loader, elsewhere).launch(
        **served.arguments,
        **look(),
        show_error=False,
        run_history=False,
        enable_monitoring=False,
        ssr_mode=False,
        max_file_size=MAX_BYTES,
        quiet=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
