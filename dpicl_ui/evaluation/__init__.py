"""Step 4: how well the demonstrations work."""
