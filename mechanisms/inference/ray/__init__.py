"""The rows of a step over the workers of a cluster."""
