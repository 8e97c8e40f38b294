"""The papers' grid of data sets, mechanisms and epsilons, with any model."""
