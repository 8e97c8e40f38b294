"""Durations in words, foreseen and measured."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A rough duration in words."""
    if seconds < 50:
        return f"about {max(5, 5 * round(seconds / 5))} seconds"
    if seconds < 90:
        return "about a minute"
    return f"about {round(seconds / 60)} minutes" if seconds < 5400 else f"about {seconds / 3600:.1f} hours"


def exactly(seconds: float) -> str:
    """A duration that was measured, in words."""
    whole = max(1, round(seconds))
    if whole < 120:
        return "1 second" if whole == 1 else f"{whole} seconds"
    return f"{whole // 60} minutes {whole % 60} seconds" if whole < 3600 else f"{whole / 3600:.1f} hours"
