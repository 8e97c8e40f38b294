"""The shareable result of a run: a demo set, its certificate and its signature."""
