"""Telling the C library to keep freed memory.

A forward pass on a CPU asks for large blocks and frees them, layer after layer. By default glibc gives them back to the
kernel each time, which then has to clear them again page by page: up to a third of a pass.
"""

from __future__ import annotations

import ctypes
import sys

import torch

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of mallopt(3)."""
_KEPT = 2**30
_MAPPED = 2**25
"""The largest threshold that glibc takes."""


def keep_freed_memory() -> None:
    """Keep up to 1 GiB of freed memory, in one arena for all threads; does nothing where there is no glibc."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is not None and hasattr(library, "mallopt"):
        for parameter, value in ((_MMAP_THRESHOLD, _MAPPED), (_TRIM_THRESHOLD, _KEPT), (_ARENA_MAX, 1)):
            library.mallopt(parameter, value)


def release_freed_memory() -> None:
    """Give back what was kept: a model that is gone leaves room for the next one, and no rows stay behind a run."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is not None and hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
