"""Formats in which a demo set leaves: a file a format, found by the registry."""
