"""Runs as files: the events that a run released, and what can be seen of them again without data or model."""
