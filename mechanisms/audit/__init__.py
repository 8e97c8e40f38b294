"""Black-box tests of privacy claims, and the benchmark of the engine."""
