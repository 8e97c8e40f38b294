"""Which models there are, and how each is loaded."""
