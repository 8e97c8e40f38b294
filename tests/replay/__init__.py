"""Record and replay (after Re:cord-play, arXiv 2602.17454): one contract for every kind of release."""
