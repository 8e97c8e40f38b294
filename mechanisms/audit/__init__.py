"""Attacks on releases, black-box tests of privacy claims, and the benchmark of the engine."""
