"""Attacks and black-box tests of what the program claims, and the benchmark of the engine."""
