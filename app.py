"""Entry point of the app: reads the options, builds the page, and serves it."""

import argparse
import os
import sys
from importlib import import_module

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("GRADIO_ANALYTICS_MAX_EVENTS", "100")  # each event builds a table of all kept events

from dpicl_ui.frame.internals import replace_in_gradio
from dpicl_ui.frame.model_loader import ModelLoader
from dpicl_ui.frame.theme import launch_options
from dpicl_ui.page import build
from dpicl_ui.server.serving import TemporaryFolder, serving
from mechanisms.data.table import MAX_BYTES
from mechanisms.errors import StudioError
from mechanisms.inference.engine import DEVICE
from mechanisms.inference.models.listed import default_name

_TABS = 500
"""The most tabs whose state Gradio keeps at once; each takes a megabyte."""


def main() -> int:
    """Serve the app while the model loads in the background; returns the exit code."""
    options = _options()
    if options.device:
        os.environ[DEVICE] = options.device
    os.umask(0o077)  # uploads are briefly on the disk: only this account may read them
    try:
        served = serving(options.host, options.port)
    except StudioError as error:
        sys.stderr.write(f"app: {error}\n")
        return error.exit_code
    replace_in_gradio()
    temporary = TemporaryFolder()
    temporary.use()
    # Import torch in this thread: SciPy fails while another thread is in the middle of importing torch.
    import_module("torch")
    loader = ModelLoader(default_name(), served.locked)
    page = build(served.ledgers, loader)
    try:
        _, url, _ = page.launch(
            **served.arguments,
            **launch_options(),
            show_error=False,
            run_history=False,
            enable_monitoring=False,
            ssr_mode=False,
            max_file_size=MAX_BYTES,
            state_session_capacity=_TABS,
            quiet=True,
            prevent_thread_lock=True,
        )
        loader.start()  # after the launch: a server that cannot start leaves no thread that loads a model
        sys.stdout.write(f"DP-ICL Studio: {url}\n")
        sys.stdout.flush()
        page.block_thread()
    except OSError:  # Gradio's message is the same for all of them and names no reason
        sys.stderr.write("app: the server did not start: choose another address with --host and --port.\n")
        return 1
    finally:
        temporary.remove()
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="app.py", description="Serve DP-ICL Studio to a browser on this machine.")
    parser.add_argument("--host", help="address to listen on (default: the variable HOST, else 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, help="port (default: the variable PORT, else 7860 or the first free one after it)"
    )
    parser.add_argument("--device", metavar="NAME", help="auto, cpu, cuda, cuda:1 or mps (default: DPICL_DEVICE)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
