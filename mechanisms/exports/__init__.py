"""Export formats of a demo set: one file for each format, found by the registry."""
