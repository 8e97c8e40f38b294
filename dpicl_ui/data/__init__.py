"""Step 1: the private file."""
