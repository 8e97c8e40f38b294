"""Step 4: what the demonstrations are worth."""
