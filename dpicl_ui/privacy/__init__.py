"""Step 2: how much privacy."""
