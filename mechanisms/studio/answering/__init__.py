"""Private answers to single questions."""
