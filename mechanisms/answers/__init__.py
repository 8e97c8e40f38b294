"""Private answers to single questions: near units are charged first, the shards answer, and noise is added."""
