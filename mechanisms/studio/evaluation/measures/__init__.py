"""How good synthetic demonstrations are for a reader that learns from all of them, not from a few in its prompt."""
