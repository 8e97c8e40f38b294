"""The app as it is, but for its gate: what a model of random weights writes is no text, and stands all the same."""

from __future__ import annotations

import runpy

from mechanisms.runs import decoding
from mechanisms.runs.gate import Gate

if __name__ == "__main__":
    Gate.reason = lambda gate, text: None  # type: ignore[method-assign]
    decoding.whole_sentences = lambda text: text
    runpy.run_path("app.py", run_name="__main__")
