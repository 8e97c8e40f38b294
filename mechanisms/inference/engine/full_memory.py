"""What is said when memory runs out in spite of what `device_room` measured: another process took it meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from mechanisms.errors import ModelUnavailable

_FULL = (
    "The memory of this machine ran out while the model computed. Nothing more was released. Close what else uses it, "
    "or take fewer records at each step, shorter records, or a smaller model."
)


@contextmanager
def told_when_full() -> Iterator[None]:
    """Tell of memory that ran out, in one line.

    Shapes are public, and so is how much memory they take: that it ran out tells nothing of the rows.

    Raises:
        ModelUnavailable: it ran out.
    """
    try:
        yield
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise ModelUnavailable(_FULL) from error
    except RuntimeError as error:
        if "allocate memory" not in str(error):  # torch has no type of its own for a processor's memory
            raise
        raise ModelUnavailable(_FULL) from error
