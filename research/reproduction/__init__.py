"""The grid of the papers: its cells, runs and tables."""
