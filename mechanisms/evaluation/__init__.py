"""Evaluation of demonstrations: classification, corrections, metrics, comparisons, prototypes."""
