"""Measures of synthetic texts."""
