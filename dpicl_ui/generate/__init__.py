"""Step 3: the run."""
