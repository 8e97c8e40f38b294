"""Private answers to single questions: units near the question are charged, shards answer, and noise is added."""
