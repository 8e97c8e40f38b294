"""Kills, mutated files and hostile clients in numbers that no test has the time for."""
