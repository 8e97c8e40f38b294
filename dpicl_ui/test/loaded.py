"""A set out of an exported file: its text, and what to say of its claim and its signature."""

from __future__ import annotations

from pathlib import Path

from mechanisms.accounting import rounded_up
from mechanisms.demos.demo_set import DemoSet
from mechanisms.demos.signature import Signature, check_signature
from mechanisms.errors import UsageError
from mechanisms.runs.verification import verify

_LARGEST_DEMO_SET = 16 * 2**20
_SIGNATURES = {
    Signature.VALID: ("Written by this installation and unchanged.", "good"),
    Signature.CHANGED: ("Changed since this installation wrote it.", "bad"),
    Signature.FOREIGN: ("Written elsewhere: its signature cannot be checked here.", "info"),
    Signature.ABSENT: ("Without a signature.", "info"),
}


def verified(demo_set: DemoSet) -> tuple[str, str]:
    """What to say of a loaded set: whether its certificate, built anew from its parameters, fits."""
    certificate, found = demo_set.certificate, verify(demo_set)
    if found.problems:
        return f"Loaded, but its certificate is wrong: {found.problems[0]}", "bad"
    if (reason := certificate.why_not_private) is not None:
        return f"Loaded. This set is not private: {reason}.", "warn"
    claim = certificate.claim
    cost = f"epsilon {rounded_up(claim.epsilon, 4)} at delta {claim.delta:g}"
    return f"Loaded. Its claim was accounted anew and holds: {cost}.", "good"


def origin(text: str) -> tuple[str, str]:
    """What to say of a loaded file's signature."""
    return _SIGNATURES[check_signature(text)]


def text_in(path: Path) -> str:
    """The text of a file.

    Raises:
        UsageError: it is too large, or not text.
    """
    if path.stat().st_size > _LARGEST_DEMO_SET:
        raise UsageError("This file is too large for a demo set.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("This is not a demo set: the file is not text.") from error
