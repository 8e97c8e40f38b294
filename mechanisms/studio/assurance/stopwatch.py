"""A language model that counts the seconds spent in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class _Timed:
    """Passes everything on; calls that run the model are timed."""

    def __init__(self, inner: Any, count: Callable[[float], None]) -> None:
        self._inner, self._count = inner, count

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("open", "logits", "advance", "keep", "score"):
            return found

        def timed(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                result = found(*arguments, **named)
            finally:
                self._count(time.perf_counter() - started)
            return _Timed(result, self._count) if name == "open" else result

        return timed


class TimedModel(_Timed):
    """A `LanguageModel` whose `seconds` are those of its sessions, opening included; encoding and decoding text are not
    the model."""

    def __init__(self, model: Any) -> None:
        self.seconds = 0.0
        self.stop_tokens: frozenset[int] = model.stop_tokens
        super().__init__(model, self._add)

    def _add(self, seconds: float) -> None:
        self.seconds += seconds
