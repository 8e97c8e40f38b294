"""Durations in words."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A rough duration in words."""
    if seconds < 50:
        return f"about {max(5, 5 * round(seconds / 5))} seconds"
    if seconds < 90:
        return "about a minute"
    return f"about {round(seconds / 60)} minutes" if seconds < 5400 else f"about {seconds / 3600:.1f} hours"
