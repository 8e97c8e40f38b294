"""Pay-per-query sessions: private answers to single questions."""
