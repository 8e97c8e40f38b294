"""What comes and goes again soon stays in the page, without a face.

Gradio takes what is not visible out of the page and builds it anew later. Where one call hides it and shows it within
moments, the browser now and then loses the second: what must be there in the end is said once more by a call of its
own.
"""

from __future__ import annotations

from typing import Literal


def seen(yes: bool) -> bool | Literal["hidden"]:
    """The `visible` of a component that may change at any moment."""
    return True if yes else "hidden"
