"""Reading texts with a set of demonstrations: classification, corrections, metrics, comparisons, prototypes."""
