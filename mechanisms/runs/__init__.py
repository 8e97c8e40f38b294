"""A run: its settings, its stages, its events, its certificate, its files, and how it is resumed."""
