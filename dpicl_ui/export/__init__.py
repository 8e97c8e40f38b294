"""Step 5: the demo set as a file."""
