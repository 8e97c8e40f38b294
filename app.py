"""DP-ICL Studio: settings, build, launch."""

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from dpicl_ui.model_loader import ModelLoader
from dpicl_ui.page import address, build
from dpicl_ui.theme import look
from mechanisms.accounting import PrivacyLedger
from mechanisms.studio.csv_file import MAX_BYTES


def main() -> None:
    """Serve the app; the model loads meanwhile."""
    loader = ModelLoader(os.environ.get("DPICL_MODEL", "embedded"))
    loader.start()
    build(PrivacyLedger(), loader).launch(
        **address(),
        **look(),
        show_error=False,
        run_history=False,
        enable_monitoring=False,
        ssr_mode=False,
        max_file_size=MAX_BYTES,
        quiet=True,
    )


if __name__ == "__main__":
    main()
